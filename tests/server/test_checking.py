"""What the server takes, and what it says of what it does not take."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core import limits
from memd.core.names import check_name
from memd.projects.remotes import normalised
from memd.server import checking
from memd.server.errors import EntriesRefusedError, MalformedRequestError, RequestPart
from memd.server.values import PutEntry
from tests.core.test_names import REFUSED
from tests.documents.secret_samples import TOKENS
from tests.server.desk import entry, memory

BOMBS = (
    "a: " + "[" * 30_000,
    "a: &a [x]\nb: [*a, *a]",
    "x: {<<: {b: c}}",
    "a: !!python/object/apply:os.system [id]",
    "\n".join(f"k{number}: v" for number in range(600)),
)


def rules(*entries: PutEntry) -> list[tuple[str, str, int]]:
    """Return the rules that entries break."""
    try:
        checking.check_entries(entries, limits.MEMORY_BYTES)
    except EntriesRefusedError as error:
        return [(e["key"], e["rule"], e["line"]) for e in error.details["entries"]]
    return []


@pytest.mark.parametrize("kind", ["feedback", "project", "reference"])
def test_shared_types_are_taken(kind: str) -> None:
    """A memory of each shared type passes, up to 64 KiB and in folders."""
    content = memory("", kind)
    full = content + b"x" * (limits.MEMORY_BYTES - len(content))
    assert rules(entry("a.md", content), entry("x/y/b.md", full)) == []


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (memory(kind="user"), "type"),
        (memory(kind="gossip"), "type"),
        (b"---\nname: a\ndescription: d\n---\n\ntext\n", "type"),
        (b"no frontmatter", "type"),
        (b"", "type"),
        (b"---\nname: a\nmetadata:\n  type: project\n---\n\nno description\n", "format"),
        (b"---\nname: a\ndescription: d\nmetadata:\n  type: project\n", "format"),
        *(
            (b"---\nname: a\ndescription: d\ntype: project\n%s\n---\n" % bomb.encode(), "format")
            for bomb in BOMBS
        ),
        (memory() + b"\xff", "encoding"),
        (memory("x" * limits.MEMORY_BYTES), "size"),
    ],
)
def test_other_contents_are_refused(content: bytes, rule: str) -> None:
    """Private, untyped, malformed, foreign and large contents are refused by their rule."""
    assert rules(entry("a.md", content), entry("b.md")) == [("a.md", rule, 0)]


def test_a_hash_is_that_of_the_content() -> None:
    """An entry whose hash is another text's is refused."""
    assert rules(PutEntry("a.md", memory(), "0" * 64, None)) == [("a.md", "hash", 0)]


def test_a_key_stands_once() -> None:
    """A key that comes twice in a write is refused."""
    assert rules(entry("a.md"), entry("a.md", "other")) == [("a.md", "duplicate", 0)]


@pytest.mark.parametrize("key", [*REFUSED, "a/b/c/d.md", "x.md/a.md", "x.MD/a.md"])
def test_hostile_keys_are_refused(key: str) -> None:
    """A key outside the rule for names, or deeper than three parts, is refused printably."""
    [(shown, rule, _)] = rules(entry(key))
    assert rule == "name"
    assert shown.isprintable()
    assert len(shown) < 1500


@given(st.text(max_size=40))
def test_keys_are_a_part_of_names(key: str) -> None:
    """What passes as a key passes as a name of a memory below team/."""
    if checking.is_key(key):
        assert check_name(f"team/{key}") == f"team/{key}"


@pytest.mark.parametrize("shape", TOKENS)
def test_a_secret_is_named_and_not_repeated(shape: str) -> None:
    """A credential in a text or a key is refused by rule and line; no byte of it is repeated."""
    secret = TOKENS[shape](random.Random(shape))  # noqa: S311 - made up
    [(key, rule, line)] = rules(entry("a.md", f"one\n\ntoken = {secret}"))[:1]
    assert key == "a.md"
    assert rule.startswith("secret:")
    assert line == 10
    named = rules(entry(f"{secret}.md"))
    assert named
    assert secret not in repr(named)


def test_what_is_said_of_people_is_short() -> None:
    """Names of members and devices and reasons are one printable line without credentials."""
    secret = TOKENS["github"](random.Random(1))  # noqa: S311 - made up
    for text in ("", " ", "a\nb", "a\0", "\ud800", "<b>", "x" * 65, "-x", secret):
        with pytest.raises(MalformedRequestError):
            checking.label(text, RequestPart.DEVICE)
    assert checking.label("Anna's".replace("'", "-") + " Laptop 2", RequestPart.DEVICE)
    assert checking.label("Ånna Müller", RequestPart.MEMBER)
    for text in ("", "  ", "a\nb", "a\0", "\ud800", "x" * 501):
        with pytest.raises(MalformedRequestError):
            checking.reason(text)
    with pytest.raises(EntriesRefusedError) as error:
        checking.reason(f"it has {secret}")
    assert secret not in repr(error.value.details)
    assert checking.reason("it has a key in it") == "it has a key in it"


def test_remotes_are_what_clients_send() -> None:
    """Each remote as clients normalise it may be a repository's."""
    for url in ("git@a.org:Acme/App.git", "ssh://h:2222/a", "https://[::1]/x/y%20z", "müll.de:é"):
        assert checking.remote(normalised(url)) == normalised(url)


@pytest.mark.parametrize(
    "remote",
    ["", "app", "A.org/a/b", "https://a.org/a/b", "a.org/a/b/", "a.org/b\0", "a.org/b\nc", "/a/b",
     "a.org/a/b.git", "../app", "a.org/..", "git@a.org:a/b", "a.org//b", "a.org/a?b", "\ud800/a"],
)  # fmt: skip
def test_a_remote_is_normalised(remote: str) -> None:
    """What no client sends as its remote is no repository's."""
    with pytest.raises(MalformedRequestError):
        checking.remote(remote)

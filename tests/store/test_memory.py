"""Memories: lenient reading, strict writing, changes that touch their lines only."""

import base64
import json

import frontmatter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.base.errors import Invalid
from memd.base.values import MemoryType
from memd.store.memory import (
    HEAD_BYTES,
    Memory,
    new,
    parse,
    validate,
    with_body,
    with_fields,
    with_standard_head,
)
from tests.corpora import PLACE

CASES = PLACE / "yaml" / "yaml_cases.json"
STAMP = "2026-11-20T23:18:09.458Z"
CLAUDE = b"""---
name: uses-pnpm
description: User prefers pnpm over npm
metadata:
  node_type: memory
  type: feedback
  originSessionId: aa3faf1b-637c-4c1f-9119-ab2a9fc5580b
  modified: 2026-11-20T23:18:09.458Z
---

Use pnpm.
**Why:** monorepo.
**How to apply:** always.
"""


def test_a_new_memory_has_the_layout_of_claude_code() -> None:
    """The bytes are those that Claude Code leaves, key for key."""
    content = new(
        "uses-pnpm",
        "User prefers pnpm over npm",
        MemoryType.FEEDBACK,
        "Use pnpm.\n**Why:** monorepo.\n**How to apply:** always.",
        session="aa3faf1b-637c-4c1f-9119-ab2a9fc5580b",
        modified=STAMP,
    )
    assert content == CLAUDE
    assert validate(content, "uses-pnpm.md").type is MemoryType.FEEDBACK
    assert b"originSessionId" not in new("a", "b", MemoryType.USER, "", session="", modified=STAMP)


@given(
    st.text(min_size=1, max_size=30).filter(lambda text: bool(text.split())),
    st.text(max_size=60),
    st.sampled_from(MemoryType),
    st.text(max_size=80),
    st.text(max_size=10),
)
def test_what_is_written_is_read(
    name: str, description: str, kind: MemoryType, body: str, session: str
) -> None:
    """Any name, description and body survive, white space folded, by us and by the library."""
    content = new(name, description, kind, body, session=session, modified=STAMP)
    document = parse(content, "other.md")
    assert document.name == " ".join(name.split())
    assert document.description == " ".join(description.split())
    assert document.type is kind
    assert document.body == (body if body.endswith("\n") or not body else body + "\n")
    assert not document.damaged
    assert list(document.metadata)[:2] == ["node_type", "type"]
    assert document.metadata["modified"] == STAMP
    library = frontmatter.loads(content.decode())
    assert library["description"] == document.description
    assert library["name"] == document.name


@pytest.mark.parametrize(
    "content",
    [
        b"---\nname: a\n",
        b"---\nname: a\n" + b"x: y\n" * 40 + b"---\n",
        b"---\n- a\n- b\n---\nx",
        b"---\njust text\n---\nx",
        b"---\nname: a\nodd line\n---\nx",
        b"---\nname: a\n<<: *b\n---\nx",
        b"---\nname: a\nx: " + b"y" * limits.FRONTMATTER_BYTES + b"\n---\nx",
        b"---\nname: a\n? [x]\n: y\n---\nx",
        b"---",
        b"---\n\x00\x07\x80\n---\n",
    ],
)
def test_broken_frontmatter_makes_a_damaged_memory(content: bytes) -> None:
    """It is readable whole as raw Markdown, keeps what could be read, and says it is damaged."""
    document = parse(content, "sub/file-name.md")
    assert document.damaged
    assert document.body == content.decode("utf-8", errors="replace")
    assert document.name == ("a" if b"name: a" in content else "file-name")


BOMBS = [
    *(f"a: {'[' * n}" for n in (10**3, 10**4, 3 * 10**4, 10**5)),
    *(f"a: {'[' * n}{']' * n}" for n in (10**3, 3 * 10**4)),
    *(f"a: {'{b: ' * n}" for n in (10**3, 3 * 10**4)),
    "- " * 10_000 + "a",
    "a: &a [x]\n" + "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(9)),
    "a: &a {x: y}\n" + "\n".join(f"k{n}: &b{n} {{<<: [*a, *a]}}" for n in range(24)),
    "a: &a [*a]",
    *(f"a: !!{tag} x" for tag in ("python/object/apply:os.system [id]", "binary", "set", "omap")),
    *(f"a: {v}" for v in ("2024-13-45", "0000-01-01", "2024-01-01T00:00:00+99:99", "9" * 5000)),
    *(f"a: {v}" for v in ("0x" + "f" * 6000, ":".join(["59"] * 2000), "!!timestamp x")),
    "=: x",
    "{}: x",
    "? {a: b}\n: c",
    "a: b\na: c",
    "k" * 200_000 + ": v",
    "a: &" + "k" * 100_000 + " v",
    "a: \0",
    "a: \x07",
    "a: \x85\x9f",
    "a:\tb",
    "a: \u2028b",
    "a: |\n  ---\n  x",
    "a: b\n...\nc: d",
    "a: b\n--- \nc: d\n--- \ne: f",
    "\n".join(f"k{n}: v" for n in range(100_000)),
    *(f"name: {v}" for v in ("no", "123", "2024-01-01", "{}", '""')),
    "metadata:" + " " * 16_000 + "x",
    "a: " + " " * 8_000 + "x" + " " * 8_000,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BOMBS)))
def test_no_bomb_goes_off(number: int) -> None:
    """A planted file is read as some memory, with no error, whole and as a head."""
    for content in (
        f"---\n{BOMBS[number]}\n---\nbody\n".encode(),
        f"---\n{BOMBS[number]}\nbody".encode(),
        f"---  \r\n{BOMBS[number]}\r\n---\t\r\nbody\r\n".encode(),
    ):
        whole = parse(content, "a.md")
        assert whole.name
        head = parse(content[: HEAD_BYTES + 1], "a.md")
        assert header(head) == header(whole)


def header(document: Memory) -> tuple[object, ...]:
    """Return everything but the body."""
    return (document.name, document.description, document.type, document.damaged, document.metadata)


@given(st.binary(max_size=80))
def test_reading_never_fails(noise: bytes) -> None:
    """Any bytes, alone or between fences, are a memory."""
    for content in (noise, b"---\n" + noise + b"\n---\n" + noise):
        assert parse(content, "a.md").name


@pytest.mark.skipif(not CASES.exists(), reason=f"the corpus {CASES} is missing")
def test_the_yaml_conformance_cases_are_memories() -> None:
    """Each case of the YAML test suite as frontmatter is read without an error."""
    for case in json.loads(CASES.read_bytes()):
        raw = base64.b64decode(case["yaml_b64"])
        document = parse(b"---\n" + raw + b"\n---\nbody", "a.md")
        assert document.name
        if not document.damaged and not raw.startswith(b"---"):
            assert document.body.endswith("body")


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (CLAUDE.replace(b"uses-pnpm", b"Uses pnpm"), ["slug"]),
        (CLAUDE.replace(b"name: uses-pnpm\n", b""), ["no name"]),
        (CLAUDE.replace(b"description: User prefers pnpm over npm\n", b""), ["no description"]),
        (CLAUDE.replace(b"type: feedback", b"type: idea"), ["user, feedback, project, reference"]),
        (CLAUDE.replace(b"  type: feedback\n", b""), ["type is not one of"]),
        (CLAUDE.replace(b"User prefers", b"a: b"), ["not valid YAML in line 3"]),
        (CLAUDE.replace(b"Use pnpm", b"\xff"), ["not UTF-8 at byte"]),
        (CLAUDE + b"x" * limits.MEMORY_BYTES, ["the limit is 65536"]),
        (CLAUDE.replace(b"---\n\nUse", b"\n\nUse"), ["not closed"]),
        (b"# Title", ["no frontmatter"]),
        (b"---\n---\n", ["no name", "no description", "type is not one of"]),
        (b"---\n? [x]\n: y\n---\n", ["not valid YAML"]),
    ],
)
def test_writing_is_strict(content: bytes, problems: list[str]) -> None:
    """What breaks the format is refused, and everything that is wrong is named at once."""
    with pytest.raises(Invalid) as caught:
        validate(content, "a.md")
    for words in problems:
        assert words in caught.value.sentence
    assert caught.value.code == -32602


def test_a_change_touches_its_line_only() -> None:
    """Every other byte stays: line ends, BOM, order, comments, foreign bytes."""
    content = b"\xef\xbb\xbf" + CLAUDE.replace(b"Use pnpm", b"caf\xe9").replace(b"\n", b"\r\n")
    fields = {"description": "new: text", "metadata.modified": "2027-01-01T00:00:00.000Z"}
    assert with_fields(content, fields) == content.replace(
        b"User prefers pnpm over npm", b'"new: text"'
    ).replace(STAMP.encode(), b"2027-01-01T00:00:00.000Z")


@given(
    st.text(max_size=30),
    st.sampled_from(["name", "description", "metadata.type", "metadata.modified", "metadata.x"]),
    st.sampled_from(
        [
            CLAUDE,
            CLAUDE.replace(b"\n", b"\r\n"),
            b"---\ntype: user\nname: x\n# c\ndescription: |\n  a\n\n  b\n---\nbody",
            b"no frontmatter",
            b"---\nmetadata:\n    # c\n    x: 'y'\nname: z\n---\n",
        ]
    ),
)
def test_a_changed_field_is_read_back(value: str, field: str, content: bytes) -> None:
    """The new value is read, the others are as before, the body's bytes are the same."""
    changed = with_fields(content, {field: value})
    key = field.removeprefix("metadata.")
    before, after = parse(content, ""), parse(changed, "")
    facts = dict(after.metadata) | {"name": after.name, "description": after.description}
    assert facts[key] == " ".join(value.split())
    old = dict(before.metadata) | {"name": before.name, "description": before.description}
    assert {k: v for k, v in facts.items() if k != key} == {
        k: v for k, v in old.items() if k != key
    }
    assert after.body == before.body
    assert with_fields(changed, {field: value}) == changed


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_another_body_leaves_the_head_as_it_was(eol: str) -> None:
    """Replacing the text keeps every byte of the frontmatter and its line ends."""
    head = eol.join(["---", "name: a   # why", "metadata:", "  type: user", "---", ""])
    changed = with_body((head + eol + "old").encode(), "new")
    assert changed == (head + eol + "new\n").encode()


@pytest.mark.parametrize("line", ["", "# mine\n"])
@pytest.mark.parametrize("kind", ["user", "user # the person's", "'user'"])
def test_a_sharp_cuts_nothing_off(line: str, kind: str) -> None:
    """Words behind a channel or a number of an issue stay, however the head is read."""
    for more in ("", "tags:\n  - a\n", "when: [a, b]\n"):
        head = f"{line}{more}name: a\ndescription: post to #releases\ntype: {kind}\n"
        memory = parse(f"---\n{head}---\nbody".encode(), "x.md")
        assert (memory.description, memory.type) == ("post to #releases", MemoryType.USER)
        assert not memory.damaged


@pytest.mark.parametrize(
    "content",
    [
        b"---\nname: [\n- : {\n---\nbroken\n",
        b"---\nname: a\nmetadata: {type: user}\n---\nflow\n",
        b"---\nname: a\nnever closed\n",
    ],
)
def test_what_cannot_be_set_line_by_line_is_refused(content: bytes) -> None:
    """A damaged head, or one whose fields are no lines, is not guessed at."""
    with pytest.raises(Invalid):
        with_fields(content, {"metadata.origin": "user"})


def test_new_fields_stand_before_the_stamps() -> None:
    """A field that a head lacks gets a line of its own, and the stamps stay last."""
    changed = with_fields(CLAUDE, {"metadata.origin": "user", "metadata.when": "always"})
    added = b"  origin: user\n  when: always\n  originSessionId"
    assert changed == CLAUDE.replace(b"  originSessionId", added)


def test_what_a_model_writes_gets_the_usual_head() -> None:
    """Name, type and order are put right, values stay whole, and old fields are not lost."""
    written = b"---\nname: Uses PNPM\ndescription: pnpm: never npm #1\ntype: Feedback\n---\nBody.\n"
    content = with_standard_head(written, CLAUDE, "uses-pnpm.md")
    assert (
        content
        == CLAUDE[: CLAUDE.index(b"---\n\n") + 4].replace(
            b"User prefers pnpm over npm", b'"pnpm: never npm #1"'
        )
        + b"Body.\n"
    )
    assert with_standard_head(CLAUDE, None, "a.md") == CLAUDE
    assert with_standard_head(CLAUDE + b"more", CLAUDE, "a.md") == CLAUDE + b"more"
    damaged = b"---\nname: [\n- : {\n---\nbroken\n"
    assert with_standard_head(damaged, CLAUDE, "a.md") == damaged

"""What people, other programs and models write: memories, the index, settings, notes, commands."""

import tomllib
from collections.abc import Callable

from memd.agent import shell
from memd.agent.refusals import CommandRefusedError
from memd.base.errors import MemdError
from memd.base.options import Layer
from memd.base.settings import parse
from memd.base.values import Pointer
from memd.memories import tool_files
from memd.notes import sections
from memd.store import index, secret
from memd.store import memory as memories
from memd.store.merge import merge_index, merge_memory
from tests.fuzz.target import Target, plain
from tests.store.test_memory import BOMBS

_NOW = "2026-01-01T00:00:00.000Z"
_HEAD = b"name: a\ndescription: d\nmetadata:\n  type: user\n  modified: " + _NOW.encode()
_MEMORY = b"---\n" + _HEAD + b"\n---\n\ntext\n"
_INDEX = b"# Mine\r\n- [A](a.md) \xe2\x80\x94 hook\n- [B](sub/b.md)\n```\n- [C](c.md)\n```\n"
_MARKS = (
    b"---\n", b"\n", b"\r\n", b": ", b"metadata:", b"  type: ", b"](", b")", b"- [", b"|", b"&a ",
    b"*a", b"<<: ", b"!!bool x", b"\xef\xbb\xbf", b"\x00", b"\xff", b"'", b'"', b"# ", b"```\n",
    b"<!-- ", b" -->", b"%2e", b"\\", b"description: ", b"name: ", b"a.md", b"\xe2\x80\x94",
)  # fmt: skip


def memory(content: bytes) -> None:
    """Check that a memory is read, and written anew so that it is read as the same."""
    memories.parse(content, "a.md")
    text = content.decode(errors="replace")
    made = tool_files.stored("a.md", text, None, session="", modified=_NOW)
    assert tool_files.shown(made) == text
    memories.with_body(content, "body")
    _refusable(lambda: memories.validate(content, "a.md"))
    fields = {"metadata.modified": "now", "description": "x: y"}
    _refusable(lambda: memories.with_fields(content, fields))
    half = content[: len(content) // 2]
    assert merge_memory(content, content, half, "a.md") in (None, half)
    merge_memory(half, content, _MEMORY, "a.md")


def pointers(content: bytes) -> None:
    """Check that an index is brought into order once; the second time there is nothing to do."""
    index.load(content)
    index.entries(content)
    parsed = index.Index(content)
    parsed.reconcile({"a.md"}, {"a.md": Pointer("t", "h")})
    once = b"".join(parsed.lines)
    again = index.Index(once)
    assert not again.reconcile({"a.md"}, {})
    assert b"".join(again.lines) == once
    assert "a.md" in {entry.path for entry in index.entries(once)}
    index.with_pointer(content, "a.md", Pointer("new", "hook"))
    assert merge_index(content, content, once) in (None, once)


def settings(content: bytes) -> None:
    """Options are taken or named as a problem."""
    try:
        options = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return
    _, problems = parse([Layer("memd.toml", options)])
    assert all(problem.startswith("memd.toml: ") for problem in problems)


def notes(content: bytes) -> None:
    """Check that notes are read to the byte, and so are those that a model edited."""
    text = content.decode(errors="replace")
    read = sections.parse(text)
    if read.cursor is None:
        assert sections.rendered(read) == text
    assert sections.rendered(sections.parse(sections.rendered(read))) == sections.rendered(read)
    checked, _ = sections.checked_edit(read, text[: len(text) // 2])
    assert [each.title for each in checked.sections] == [each.title for each in read.sections]
    assert len(sections.shortened(read, "/p", characters=500)) <= 500


def command(content: bytes) -> None:
    """Check that a command line is words or refused."""
    try:
        piped = shell.split(content.decode(errors="replace"))
    except CommandRefusedError:
        return
    assert all(piped)


def credentials(content: bytes) -> None:
    """Check that a text with a finding is scrubbed, and that lines keep their numbers."""
    text = content.decode(errors="replace")
    found = secret.find(text)
    assert not found or secret.scrub(text) != text
    assert secret.blank(text).count("\n") == text.count("\n")
    assert all(1 <= finding.line <= text.count("\n") + 1 for finding in found)


def _refusable(act: Callable[[], object]) -> None:
    try:
        act()
    except MemdError:
        return


_BOMBS = tuple(b"---\n" + bomb.encode()[:300] + b"\n---\n" for bomb in BOMBS)
_SETTINGS = (
    b'enabled = true\n[recall]\nlimit = 3\n[model]\nname = "m"\n[spend]\nusd_per_day = 0.5\n',
    b'base_dir = "/x"\n[dream]\nmin_hours = 1\n[notes]\n[agents]\nroles = {a = "user"}\n',
)
_NOTES = (
    b"# Title\n_one line_\n\nWork on it\n\n# State\n_guide_\n\n- done\n\n# Files\n\n- a.py\n",
    b"head\n# A\n```\n# B\n```\n<!-- memd notes session=s covers=m tokens=3 hash=ab at=x -->\n",
)
_LINES = (
    b"grep -rn 'a b' sub | head -3", b'cat "a.md" 2>/dev/null | wc',
    b"find . -name '*.md' ! -type f",
    b"ls -la *.md; rm x", b"cat `id` $(id) $x ${y} a\\ b",
)  # fmt: skip
_TOKEN = b"gh" + b"p_" + b"a7Kx92LmQw84ErTy61UiOp30AsDf57GhJk2Z"
_SECRETS = (
    b"token: " + _TOKEN, b"password = 'S7mple-Kx92LmQw84'", b"postgres://u:Kx92LmQw84@h/db",
    b"-----BEGIN RSA PRIV" + b"ATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n",
)  # fmt: skip
TARGETS = {
    "memory": Target(plain(memory), (_MEMORY, *_BOMBS), _MARKS, longest=20_000),
    "index": Target(plain(pointers), (_INDEX, _MEMORY), _MARKS, longest=20_000),
    "settings": Target(plain(settings), _SETTINGS, (b"[", b"]", b" = ", b'"', b"{", b"\n", b"1e9")),
    "notes": Target(plain(notes), _NOTES, (*_MARKS, b"\n# ", b"\n_x_\n", b"~~~")),
    "command line": Target(plain(command), _LINES, (b"'", b'"', b"\\", b"|", b"$", b"2>&1", b"*")),
    "credentials": Target(plain(credentials), _SECRETS, (_TOKEN, b"key=", b"\xe2\x80\x8b", b"://")),
}

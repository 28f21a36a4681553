"""The headers of a directory, and the manifest."""

import os
from pathlib import Path

import pytest

from memd.core import limits
from memd.core.text import sha256
from memd.files.directory import Directory
from memd.store import catalogue

NESTED = (
    "---\nname: topic-{n}\ndescription: About topic {n}\nmetadata:\n  node_type: memory\n"
    "  type: feedback\n  originSessionId: s\n  modified: 2026-11-20T23:18:09.458Z\n---\n"
    "\nBody {n}.\n"
)


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    """Make a memory directory as Claude Code, people and accidents leave it."""
    root = tmp_path / "memory"
    (root / "area" / "deep").mkdir(parents=True)
    for n in range(250):
        folder = ("", "area/", "area/deep/")[n % 3]
        path = root / f"{folder}topic_{n}.md"
        path.write_bytes(NESTED.format(n=n).encode())
        os.utime(path, ns=(n * 10**9, n * 10**9))
    flat = b"---\nname: flat\ndescription: a: b\ntype: user\n---\ntext"
    odd = {
        "crlf.md": NESTED.format(n="crlf").replace("\n", "\r\n").encode(),
        "bom.md": b"\xef\xbb\xbf" + NESTED.format(n="bom").encode(),
        "flat.md": flat,
        "broken.md": b"---\nname: broken\n[[[\n---\ntext",
        "unclosed.md": b"---\nname: unclosed\n" + b"x: y\n" * 60,
        "bare.md": b"# Just Markdown\n",
        "empty.md": b"",
        "utf16.md": "---\nname: x\n---\n".encode("utf-16"),
        "latin.md": b"---\nname: latin\ndescription: caf\xe9\n---\n\xff",
        "line.md": b"x" * 40_000,
        "big.md": flat + b"x" * (limits.READ_BYTES + 1),
        "Über mich.md": flat,
        "MEMORY.md": b"".join(b"- [T %d](topic_%d.md)\r\n" % (n, n) for n in range(299))
        + b"x" * 40_000,
        ".consolidate-lock": b"123",
        "notes.txt": b"no memory",
    }
    for name, content in odd.items():
        (root / name).write_bytes(content)
        os.utime(root / name, ns=(10**15, 10**15))
    return root


def state(root: Path) -> dict[str, tuple[str, int]]:
    """Return hash and mtime of every file."""
    return {
        str(path.relative_to(root)): (sha256(path.read_bytes()), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_one_bad_file_spoils_nothing(tmp_path: Path) -> None:
    """A file that cannot be opened when its turn comes is a sentence, the rest is listed."""

    class Refusing(Directory):
        def peek(self, folder: int, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
            if name == "worse.md":
                raise PermissionError(13, "no entry")
            return None if name in ("bad.md", "gone.md") else super().peek(folder, name, limit)

        def read_head(self, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
            return None if name == "gone.md" else super().read_head("link.md", limit)

    for name in ("bad.md", "gone.md", "good.md", "worse.md"):
        (tmp_path / name).touch()
    (tmp_path / "link.md").symlink_to("good.md")
    with Refusing(str(tmp_path)) as directory:
        scan = catalogue.scan(directory, {})
    assert list(scan.headers) == ["good.md"]
    assert "link" in scan.troubles["bad.md"][0]
    assert "no entry" in scan.troubles["worse.md"][0]


def test_a_peek_sees_only_what_is_usual(tmp_path: Path) -> None:
    """A regular file of ours is read; a link, a folder and nothing at all are left to others."""
    (tmp_path / "usual.md").write_bytes(b"12345")
    (tmp_path / "aside.md").symlink_to("usual.md")
    (tmp_path / "shelf.md").mkdir()
    with Directory(str(tmp_path)) as directory:
        peeked = directory.peek(directory.fd, "usual.md", 3)
        assert peeked is not None
        assert (peeked[0], peeked[1].st_size) == (b"123", 5)
        for name in ("aside.md", "shelf.md", "none.md"):
            assert directory.peek(directory.fd, name, 3) is None
        names = ("usual.md", "aside.md", "shelf.md", "none.md", "none/x.md", "../x")
        assert [name for name in names if directory.holds(name)] == ["usual.md"]

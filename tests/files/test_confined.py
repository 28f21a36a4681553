"""Reading beneath a folder for somebody who is not trusted."""

import os
import socket
from pathlib import Path

import pytest

from memd.base.errors import MemdError
from memd.files.confined import LINE_BYTES, PIECE_BYTES, Confined
from memd.files.directory import FileUnreadableError, PathRefusedError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a folder with ordinary and with hostile contents."""
    (tmp_path / "outside.txt").write_text("secret")
    folder = tmp_path / "root"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo")
    (folder / "sub" / "b.txt").write_text("b\n")
    (folder / "link").symlink_to("a.txt")
    (folder / "out").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    os.link(tmp_path / "outside.txt", folder / "hard.txt")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{folder}/s")
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff")).write_text("x")
    return folder


def test_listings_show_what_can_be_read(root: Path) -> None:
    """Folders and plain files are listed by name, and nothing else is."""
    with Confined(str(root)) as confined:
        results = confined.entries("", 99)
        assert [(seen.name, seen.folder, seen.size) for seen in results] == [
            ("a.txt", False, 7),
            ("sub", True, 0),
        ]
        assert [seen.name for seen in confined.entries("sub", 99)] == ["b.txt", "deep"]
        assert confined.entries("sub", 0) == []
        assert confined.entries("nothing", 9) == []
        assert confined.entries("a.txt", 9) == []


@pytest.mark.parametrize(
    "name",
    ["link", "out", "up", "up/outside.txt", "hard.txt", "fifo", "s", "..", "../outside.txt",
     "sub/../a.txt", "sub//b.txt", "./a.txt", "a\0b", "x\ud800"],
)  # fmt: skip
def test_what_leads_out_is_refused(root: Path, name: str) -> None:
    """Links, several names, FIFOs, sockets and paths that go up are refused in every way."""
    with Confined(str(root)) as confined:
        for ask in (confined.inspect, confined.pieces):
            with pytest.raises(MemdError):
                ask(name)
        try:
            listed = confined.entries(name, 9)
        except PathRefusedError:
            listed = []
    assert listed == []


def test_text_comes_in_pieces_of_whole_lines(tmp_path: Path) -> None:
    """Pieces are bounded, end at line ends, and together are the file."""
    lines = b"".join(b"%06d\n" % number for number in range(PIECE_BYTES // 4))
    (tmp_path / "f").write_bytes(lines + b"end")
    with Confined(str(tmp_path)) as confined:
        pieces = list(confined.pieces("f") or ())
        assert confined.pieces("none") is None
    assert b"".join(pieces) == lines + b"end"
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    assert max(map(len, pieces)) <= PIECE_BYTES + 7


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    """What follows in a line that is too long is passed over, and the next line is whole."""
    (tmp_path / "f").write_bytes(b"x" * (5 * LINE_BYTES) + b"\nnext\n")
    with Confined(str(tmp_path)) as confined:
        first, *rest = list(confined.pieces("f") or ())
    assert len(first) < LINE_BYTES
    assert b"".join(rest) == b"next\n"


def test_a_file_that_cannot_be_read_says_so() -> None:
    """An error of the system while reading is an error of ours, and the file is closed."""
    before = len(os.listdir("/proc/self/fd"))
    with Confined("/proc/self") as confined:
        pieces = confined.pieces("mem")
        assert pieces is not None
        with pytest.raises(FileUnreadableError):
            list(pieces)
    assert len(os.listdir("/proc/self/fd")) == before

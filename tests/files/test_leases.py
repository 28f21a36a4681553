"""Asking who has a file open for writing."""

import os
from pathlib import Path

import pytest

from memd.files.directory import Directory
from memd.files.kernel import open_for_writing


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """Return a memory directory with one file."""
    (tmp_path / "a.md").write_bytes(b"text")
    return Directory(str(tmp_path))


def test_a_file_is_open_for_writing_until_it_is_closed(directory: Directory) -> None:
    """Any open descriptor that may write counts, whether it has written or not; readers do not."""
    with directory:
        assert directory.open_for_writing("a.md") is False
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_TRUNC):
            file = os.open(f"{directory.path}/a.md", flags)
            assert directory.open_for_writing("a.md") is True
            os.close(file)
            assert directory.open_for_writing("a.md") is False
        with open(f"{directory.path}/a.md", "rb"):
            assert directory.open_for_writing("a.md") is False


def test_a_renamed_file_is_still_open(directory: Directory) -> None:
    """It is the file that is asked about, whatever name it has by now."""
    with directory, open(f"{directory.path}/a.md", "ab"):
        os.rename(f"{directory.path}/a.md", f"{directory.path}/b.md")
        assert directory.open_for_writing("b.md") is True


def test_nobody_writes_to_what_is_not_there(directory: Directory) -> None:
    """A name without a file, a link and a folder are open to nobody."""
    with directory:
        os.symlink("a.md", f"{directory.path}/link.md")
        os.mkdir(f"{directory.path}/folder")
        for path in ("none.md", "link.md", "folder", "none/a.md"):
            assert directory.open_for_writing(path) is False


def test_where_there_are_no_leases_nobody_can_know() -> None:
    """What is no file of a file system with leases is no answer and no error."""
    reading, writing = os.pipe()
    assert open_for_writing(reading) is None
    os.close(reading)
    os.close(writing)

"""A memory directory as a plan sees it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core import limits
from memd.core.names import INDEX
from memd.core.text import sha256
from memd.files.directory import Directory
from memd.store.tree import LiveTree
from tests.store.bench import topic


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    """Open a directory with one memory."""
    (tmp_path / "a.md").write_bytes(topic("a"))
    with Directory(str(tmp_path)) as opened:
        yield opened


def test_what_was_read_stays_as_it_was(directory: Directory) -> None:
    """A plan sees one text of a file, however often it looks and whoever saves meanwhile."""
    tree = LiveTree(directory)
    first = tree.read("a.md")
    absent = tree.read("b.md")
    Path(directory.path, "a.md").write_bytes(b"newer")
    Path(directory.path, "b.md").write_bytes(b"new")
    assert tree.read("a.md") == first
    assert tree.read("b.md") is absent is None
    assert tree.index() is None
    assert first is not None
    assert (first.hash, first.header.name, first.body) == (sha256(topic("a")), "a", "text\n")


def test_a_folder_that_is_closed_hides_files_without_removing_them(directory: Directory) -> None:
    """Where a folder cannot be looked into, files below it may be there all the same."""
    tree = LiveTree(directory)
    assert tree.among({"sub/x.md", "a.md"}) == {"a.md"}
    deep = "/".join(["d"] * 17)
    os.makedirs(f"{directory.path}/{deep}")
    tree = LiveTree(directory)
    assert tree.among({"sub/x.md", "x.md", "a.md"}) == {"sub/x.md", "a.md"}


def test_an_index_that_is_too_large_to_be_loaded_is_none(directory: Directory) -> None:
    """Nobody edits what was not loaded; the tree says why, and keeps saying it."""
    with open(f"{directory.path}/{INDEX}", "wb") as file:
        file.truncate(limits.READ_BYTES + 1)
    tree = LiveTree(directory)
    assert tree.index() is None
    assert "at most 4194304 are loaded" in tree.index_trouble()
    os.truncate(f"{directory.path}/{INDEX}", 0)
    assert tree.index() is None
    assert LiveTree(directory).index_trouble() == ""

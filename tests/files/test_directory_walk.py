"""Listing a memory directory: what is a memory, and what is left out in words."""

import os
import shutil
from pathlib import Path

import pytest

from memd.files import directory as paths
from memd.files.directory import Directory, FileUnreadableError
from tests.files.hostile import both_ways, hostile

as_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """Make a memory directory with ordinary, foreign and hostile contents."""
    return hostile(tmp_path)


@both_ways
def test_the_walk_finds_the_memories(memories: Path, *, kernel: bool) -> None:
    """Each regular memory is found once with its status; links, FIFOs and hidden files never."""
    problems: list[str] = []
    with Directory(str(memories), openat2=kernel) as directory:
        results = {path: entry.stat() for path, entry, _ in directory.walk(problems)}
    assert sorted(results) == ["a.md", "sub/b.md", "sub/deep/c.md", "Über mich.md"]
    assert results["a.md"].st_size == 4
    assert problems == []


def test_the_walk_stops_in_the_deep(tmp_path: Path) -> None:
    """Folders nested deeper than anybody needs are named and left alone."""
    deep = tmp_path
    for _ in range(paths.WALK_DEPTH + 3):
        deep /= "d"
        deep.mkdir()
    (deep / "a.md").touch()
    (tmp_path / "b.md").touch()
    problems: list[str] = []
    with Directory(str(tmp_path)) as directory:
        assert [path for path, *_ in directory.walk(problems)] == ["b.md"]
    assert len(problems) == 1
    assert "too deep" in problems[0]


def test_a_name_that_is_no_text_is_a_problem_in_words(tmp_path: Path) -> None:
    """A file whose name is not UTF-8 cannot be sent; it is named and left out."""
    try:
        os.close(os.open(os.fsencode(tmp_path) + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    problems: list[str] = []
    with Directory(str(tmp_path)) as directory:
        assert list(directory.walk(problems)) == []
    assert "not UTF-8" in problems[0]


def test_what_vanishes_during_the_walk(tmp_path: Path) -> None:
    """What another program deletes while we look is simply not there."""
    for number in range(20):
        (tmp_path / f"{number}.md").touch()
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "a.md").touch()
    problems: list[str] = []
    with Directory(str(tmp_path)) as directory:
        walk = directory.walk(problems)
        next(walk)
        shutil.rmtree(tmp_path)
        assert [entry.stat() for _, entry, _ in walk if (tmp_path / entry.name).exists()] == []
    assert problems == []


def test_a_folder_that_becomes_a_link_is_not_entered(memories: Path, tmp_path: Path) -> None:
    """A folder swapped for a link during the walk is refused in words."""
    problems: list[str] = []
    with Directory(str(memories)) as directory:
        walk = directory.walk(problems)
        next(walk)
        (memories / "sub").rename(tmp_path / "was")
        (memories / "sub").symlink_to(tmp_path / "was")
        assert all(not path.startswith("sub/") for path, *_ in walk)
    assert ["link" in problem for problem in problems] == [True]


@as_user
def test_what_may_not_be_read_spoils_nothing(memories: Path) -> None:
    """A folder and a file without permission are reported; the rest is found."""
    (memories / "sub").chmod(0)
    (memories / "a.md").chmod(0)
    problems: list[str] = []
    try:
        with Directory(str(memories)) as directory:
            results = {path for path, *_ in directory.walk(problems)}
            with pytest.raises(FileUnreadableError):
                directory.read("a.md", 10)
    finally:
        (memories / "sub").chmod(0o700)
    assert results == {"a.md", "Über mich.md"}
    assert len(problems) == 1


def test_a_folder_that_cannot_be_listed(memories: Path) -> None:
    """A folder that fails while it is listed is named; the walk goes on."""
    problems: list[str] = []
    with Directory(str(memories)) as directory:
        assert list(directory._list_memories(1 << 20, "sub", [], problems)) == []
    assert problems[0].startswith("sub cannot be read")

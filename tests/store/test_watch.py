"""Hints that something below a directory was changed."""

import os
import threading
from pathlib import Path
from typing import Any, Self

import pytest
from watchdog.events import FileModifiedEvent, FileMovedEvent

from memd.store.watch import Watch, _events, _Handler

PATIENCE = 10.0  # seconds that a hint may take on a busy machine


class Hints:
    """A watch with an event that is set by its call."""

    def __init__(self, **options: Any) -> None:
        self.called = threading.Event()
        self.watch = Watch(self.called.set, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()

    def wait(self, directory: Path) -> None:
        """Wait for a hint at a directory, and at no other."""
        assert self.called.wait(PATIENCE)
        self.called.clear()
        assert self.watch.take() == {str(directory)}


@pytest.mark.parametrize(
    "act",
    [
        lambda d: (d / "a.md").write_bytes(b"new"),
        lambda d: os.replace(d / "b.md", d / "a.md"),
        lambda d: (d / "a.md").unlink(),
        lambda d: (d / "sub" / "c.md").write_bytes(b"new"),
        lambda d: (d / "made").mkdir(),
        lambda d: (d / "sub").rename(d / "bus"),
    ],
    ids=["written", "replaced", "removed", "below", "folder", "folder moved"],
)
def test_a_change_is_hinted_at(tmp_path: Path, act: Any) -> None:
    """Whatever is done to a memory or a folder, its directory is named."""
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "sub").mkdir()
    with Hints() as hints:
        hints.watch.add(str(tmp_path))
        hints.watch.add(str(tmp_path))
        act(tmp_path)
        hints.wait(tmp_path)
        assert hints.watch.problems() == ()


def test_other_files_are_no_change(tmp_path: Path) -> None:
    """What an editor keeps beside a memory wakes nobody; the rename that ends its save does."""
    with Hints() as hints:
        handler = _Handler(hints.watch, str(tmp_path))
        for name in (".a.md.swp", "4913", "a.md~", "#a.md#", ".memd-1-0-00000000.tmp"):
            handler.dispatch(FileModifiedEvent(f"{tmp_path}/{name}"))
        assert not hints.called.is_set()
        handler.dispatch(FileMovedEvent(f"{tmp_path}/4913", f"{tmp_path}/a.md"))
        hints.wait(tmp_path)


def test_reading_is_no_change() -> None:
    """No event that reading makes is among those that are asked for."""
    wanted = {kind.__name__ for kind in _events()}
    assert wanted.isdisjoint({"FileOpenedEvent", "FileClosedNoWriteEvent"})


def test_a_directory_that_is_not_there_is_watched_later(tmp_path: Path) -> None:
    """Neither a missing directory nor one that was made anew keeps a watch from working."""
    directory = tmp_path / "memory"
    with Hints() as hints:
        hints.watch.add(str(directory))
        assert hints.watch.problems() == ()
        for _ in range(2):
            directory.mkdir()
            hints.watch.add(str(directory))
            (directory / "a.md").write_bytes(b"new")
            hints.wait(directory)
            (directory / "a.md").unlink()
            directory.rename(tmp_path / f"old{len(list(tmp_path.iterdir()))}")
            hints.called.clear()
            hints.watch.take()


def test_the_directory_not_used_for_longest_is_let_go(tmp_path: Path) -> None:
    """Only so many directories are watched; using one keeps it."""
    places = [tmp_path / name for name in "abc"]
    with Hints(directories=2) as hints:
        for place in (*places[:2], places[0], places[2]):
            place.mkdir(exist_ok=True)
            hints.watch.add(str(place))
        assert list(hints.watch._watched) == [str(places[0]), str(places[2])]
        (places[0] / "x.md").write_bytes(b"new")
        hints.wait(places[0])


def test_what_cannot_be_watched_is_said(tmp_path: Path) -> None:
    """A path that is no directory, as a limit of the system, is a sentence and no failure."""
    (tmp_path / "file").write_bytes(b"")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with Hints() as hints:
        hints.watch.add(str(loop))
        (problem,) = hints.watch.problems()
        assert problem.startswith(f"{loop} is not watched: ")
        loop.unlink()
        loop.mkdir()
        hints.watch.add(str(loop))
        assert hints.watch.problems() == ()


def test_a_closed_watch_is_quiet(tmp_path: Path) -> None:
    """After the end nothing is watched any more, and ending an idle one is fine."""
    with Hints() as hints:
        hints.watch.close()
        hints.watch.add(str(tmp_path))
        (tmp_path / "a.md").write_bytes(b"new")
        assert hints.watch.take() == frozenset()

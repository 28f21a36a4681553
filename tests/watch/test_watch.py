"""Which paths are told of, and when nothing can have been missed."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from watchdog.events import DirCreatedEvent, FileModifiedEvent, FileMovedEvent

from memd.watch.watch import Dirty, Watch, _Handler, observer

PATIENCE = 10.0  # seconds that a hint may take on a busy machine


class Told:
    """A watch, what it told, and an event that is set when it wakes somebody."""

    def __init__(self, **options: Any) -> None:
        self.woken = threading.Event()
        self.dirty = Dirty()
        self.watch = Watch(self.dirty.note, self.woken.set, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()

    def paths(self, directory: Path) -> set[str] | None:
        """Return what was told of a directory up to now."""
        self.watch.catch_up()
        paths = self.dirty.take(str(directory))
        return None if paths is None else set(paths)

    def wait(self) -> None:
        """Wait until somebody is woken."""
        assert self.woken.wait(PATIENCE)
        self.woken.clear()


@pytest.mark.parametrize(
    ("act", "paths"),
    [
        (lambda d: (d / "a.md").write_bytes(b"new"), {"a.md"}),
        (lambda d: (d / "a.md").chmod(0o600), {"a.md"}),
        (lambda d: os.utime(d / "a.md", (1, 1)), {"a.md"}),
        (lambda d: os.replace(d / "b.md", d / "a.md"), {"a.md", "b.md"}),
        (lambda d: os.replace(d / "x~", d / "MEMORY.md"), {"MEMORY.md"}),
        (lambda d: (d / "a.md").unlink(), {"a.md"}),
        (lambda d: (d / "sub" / "c.md").write_bytes(b"new"), {"sub/c.md"}),
        (lambda d: (d / "made").mkdir(), None),
        (lambda d: (d / "sub").rename(d / "bus"), None),
        (lambda d: (d / "sub").rmdir(), None),
        (lambda d: d.chmod(0o700), None),
        (lambda d: (d / ".hidden").mkdir(), set()),
        (lambda d: (d / "logs").mkdir(), set()),
        (lambda d: (d / "a.md~").write_bytes(b"new"), set()),
        (lambda d: (d / ".a.md.swp").write_bytes(b"new"), set()),
        (lambda d: (d / "a.md").read_bytes(), set()),
    ],
)
def test_a_change_names_its_paths(tmp_path: Path, act: Any, paths: set[str] | None) -> None:
    """Whatever is done to a memory is named before anybody asks; of a folder, all is in doubt."""
    for name in ("a.md", "b.md", "x~"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "sub").mkdir()
    with Told() as reported:
        number = reported.watch.add(str(tmp_path))
        reported.watch.enter(str(tmp_path), "")
        reported.watch.enter(str(tmp_path), "sub")
        act(tmp_path)
        assert reported.paths(tmp_path) == paths
        assert reported.watch.add(str(tmp_path)) == number is not None
        if paths != set():
            reported.wait()
        assert reported.watch.problems() == ()


def test_other_systems_only_hint(tmp_path: Path) -> None:
    """An observer of watchdog names paths when it does, and nothing is believed for it."""
    with Told(source=observer) as reported:
        assert reported.watch.add(str(tmp_path)) is None
        assert reported.watch.add(str(tmp_path)) is None
        reported.watch.enter(str(tmp_path), "sub")
        (tmp_path / "a.md").write_bytes(b"new")
        reported.wait()
        assert reported.paths(tmp_path) == {"a.md"}
        (tmp_path / "a.md").unlink()
        tmp_path.rename(tmp_path.with_name("moved"))
        assert reported.watch.add(str(tmp_path)) is None
        assert reported.watch.problems() == ()


def test_an_event_of_an_observer_is_understood(tmp_path: Path) -> None:
    """What an editor keeps beside a memory is nothing; the rename that ends its save is."""
    dirty, woken = Dirty(), threading.Event()
    handler = _Handler(str(tmp_path), dirty.note, woken.set)
    for name in (".a.md.swp", "4913", "a.md~", "#a.md#", ".memd-1-0-00000000.tmp"):
        handler.dispatch(FileModifiedEvent(f"{tmp_path}/{name}"))
    assert not woken.is_set()
    handler.dispatch(FileMovedEvent(f"{tmp_path}/4913", f"{tmp_path}/sub/a.md"))
    assert (woken.is_set(), dirty.take(str(tmp_path))) == (True, frozenset({"sub/a.md"}))
    handler.dispatch(DirCreatedEvent(f"{tmp_path}/new"))
    assert dirty.take(str(tmp_path)) is None


def test_a_directory_that_is_not_there_is_watched_later(tmp_path: Path) -> None:
    """Neither a missing directory nor one that was made anew keeps a watch from working."""
    directory = tmp_path / "memory"
    numbers: list[int | None] = []
    with Told() as reported:
        assert reported.watch.add(str(directory)) is None
        assert reported.watch.problems() == ()
        for turn in range(2):
            directory.mkdir()
            numbers.append(reported.watch.add(str(directory)))
            reported.paths(directory)
            (directory / "a.md").write_bytes(b"new")
            assert reported.paths(directory) == {"a.md"}
            directory.rename(tmp_path / f"old{turn}")
        (directory).mkdir()
        numbers.append(reported.watch.add(str(directory)))
        directory.rmdir()
        reported.watch.catch_up()
        directory.mkdir()
        numbers.append(reported.watch.add(str(directory)))
    assert None not in numbers
    assert len(set(numbers)) == 4


def test_the_directory_not_used_for_longest_is_let_go(tmp_path: Path) -> None:
    """Only so many directories are watched; using one keeps it; one that comes back is anew."""
    places = [tmp_path / name for name in "abc"]
    for place in places:
        place.mkdir()
    with Told(directories=2) as reported:
        first, second = (reported.watch.add(str(place)) for place in places[:2])
        assert reported.watch.add(str(places[0])) == first
        reported.watch.add(str(places[2]))
        reported.watch.enter(str(places[1]), "sub")
        for place in places:
            (place / "x.md").write_bytes(b"new")
        assert [reported.paths(place) for place in places] == [{"x.md"}, set(), {"x.md"}]
        assert reported.watch.add(str(places[1])) not in (None, second)


def test_a_directory_below_another_is_told_of_in_both(tmp_path: Path) -> None:
    """One folder may belong to two directories; ending one of them leaves the other."""
    below = tmp_path / "team"
    below.mkdir()
    with Told() as reported:
        reported.watch.add(str(tmp_path))
        reported.watch.enter(str(tmp_path), "team")
        reported.watch.add(str(below))
        (below / "a.md").write_bytes(b"new")
        assert (reported.paths(tmp_path), reported.paths(below)) == ({"team/a.md"}, {"a.md"})


def test_what_cannot_be_watched_is_said(tmp_path: Path) -> None:
    """A path that is no directory, as a limit of the system, is a sentence and no failure."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with Told() as reported:
        assert reported.watch.add(str(loop)) is None
        (problem,) = reported.watch.problems()
        assert problem.startswith(f"{loop} is not watched: ")
        loop.unlink()
        loop.mkdir()
        assert reported.watch.add(str(loop)) is not None
        assert reported.watch.problems() == ()
        (loop / "file").touch()
        reported.watch.enter(str(loop), "none")
        assert reported.watch.add(str(loop)) is not None
        reported.watch.enter(str(loop), "file")
        assert reported.watch.add(str(loop)) is None
        assert reported.watch.problems() == (
            f"{loop}/file is not watched: [Errno {errno.ENOTDIR}] Not a directory",
        )


def test_without_watchdog_there_is_no_watch(tmp_path: Path) -> None:
    """A source that cannot be made is a sentence, too."""

    def missing(_tell: Callable[[str, str | None], None], _wake: Callable[[], None]) -> Any:
        raise ImportError(name="watchdog")

    with Told(source=missing) as reported:
        assert reported.watch.add(str(tmp_path)) is None
        assert len(reported.watch.problems()) == 1
        reported.watch.catch_up()


def test_a_closed_watch_is_quiet(tmp_path: Path) -> None:
    """After the end nothing is watched any more, and ending an idle one is fine."""
    with Told() as reported:
        reported.watch.add(str(tmp_path))
        reported.watch.close()
        assert reported.watch.add(str(tmp_path)) is None
        (tmp_path / "a.md").write_bytes(b"new")
        assert reported.paths(tmp_path) == set()


def test_everything_stays_everything() -> None:
    """Once all is in doubt, or too much is, no single path makes it less."""
    dirty = Dirty(2)
    dirty.note("/a", None)
    dirty.note("/a", "x")
    for path in "xyz":
        dirty.note("/b", path)
    assert (dirty.take("/a"), dirty.take("/b")) == (None, None)
    assert dirty.take("/b") == frozenset()

"""Reading memory directories, and knowing whether there is news."""

import threading
from pathlib import Path

import pytest
from msgspec import structs
from watchdog.observers import inotify_c

from memd.core.names import concerns
from memd.files.directory import DirectoryUnusableError, PathRefusedError
from memd.store.headers_file import HeadersFiles
from memd.store.reading import DIRECTORIES, UNUSED_SECONDS, DirectoryReader
from memd.watch.inotify import Inotify
from memd.watch.watch import Watch
from tests.store.bench import topic
from tests.store.watched import Copy, open_watched
from tests.support.clock import FakeClock


def test_under_a_watch_only_what_is_named_is_asked_for(tmp_path: Path) -> None:
    """A change that is not told stays unseen until everything is in doubt: nothing else is read."""

    class Deaf(Inotify):
        """A queue that tells of one name alone."""

        def _on_name(self, directory: str, folder: str, mask: int, name: bytes) -> None:
            if name == b"told.md":
                super()._on_name(directory, folder, mask, name)

    clock, here = FakeClock(2e10), str(tmp_path)
    reading = DirectoryReader(clock)
    watch = Watch(
        reading.dirty.note,
        lambda: None,
        source=lambda tell, wake: Deaf(inotify_c, tell, wake, concerns),
    )
    reading.use_watch(watch)
    copy = Copy(reading, here)
    copy.follow()
    for name in ("told.md", "untold.md"):
        (tmp_path / name).write_bytes(topic("a"))
    assert copy.follow().keys() == {"told.md"}
    assert copy.wholes == 1
    reading.dirty.note(here, None)
    assert copy.follow().keys() == {"told.md", "untold.md"}
    watch.close()


def test_a_catalogue_that_nobody_uses_is_dropped_and_comes_back(tmp_path: Path) -> None:
    """After half an hour a catalogue goes; its marks are unknown then, and odd names still work."""
    with open_watched(tmp_path) as watched:
        watched.bench.save("über.md", topic("u"))
        mark = watched.reading.catalogue(watched.real).mark
        watched.clock.advance(UNUSED_SECONDS - 1)
        watched.reading.tend()
        assert watched.reading.in_use() == (watched.real,)
        watched.clock.advance(1)
        watched.reading.tend()
        assert watched.reading.in_use() == ()
        assert watched.reading.live_bytes(watched.real, "über.md") == topic("u")
        assert watched.reading.catalogue(watched.real, mark).whole


def test_the_catalogues_used_last_are_kept(tmp_path: Path) -> None:
    """Only so many are in memory, and one that somebody is using now is not dropped."""
    reading = DirectoryReader(FakeClock())
    places = [tmp_path / str(number) for number in range(DIRECTORIES + 2)]
    for place in places:
        place.mkdir()
    with reading._locked_catalogue(str(places[0])):
        for place in places[1:]:
            reading.catalogue(str(place))
        assert len(reading.in_use()) == DIRECTORIES + 1
        assert str(places[0]) in reading.in_use()
    reading.catalogue(str(places[-1]))
    assert reading.in_use() == tuple(str(place) for place in places[2:])


def test_headers_outlive_the_process_and_are_checked(tmp_path: Path) -> None:
    """A later process takes over what is still so, and reads what differs."""
    with open_watched(tmp_path) as watched:
        for name in "abc":
            watched.bench.save(f"{name}.md", topic(name))
        watched.reading.catalogue(watched.real)
        watched.reading.tend()
        watched.reading.tend()
    files = HeadersFiles(str(tmp_path / "headers"))
    kept = files.load(watched.real)
    assert kept.keys() == {"a.md", "b.md", "c.md"}
    wrong = {**kept, "a.md": structs.replace(kept["a.md"], name="believed")}
    files.save(watched.real, list(wrong.values()))
    (watched.path / "b.md").write_bytes(topic("new", "of another length"))
    (watched.path / "c.md").unlink()
    results = DirectoryReader(FakeClock(), files=files).catalogue(watched.real)
    assert {h.path: h.name for h in results.changed} == {"a.md": "believed", "b.md": "new"}


def test_a_directory_that_cannot_be_used_is_looked_at_again(tmp_path: Path) -> None:
    """A failure is told each time, and costs nothing of what is there afterwards."""
    with open_watched(tmp_path) as watched:
        watched.bench.save("a.md", topic("a"))
        mark = watched.reading.catalogue(watched.real).mark
        away = watched.path.rename(tmp_path / "away")
        watched.path.touch()
        for _ in range(2):
            with pytest.raises(DirectoryUnusableError):
                watched.reading.catalogue(watched.real)
        watched.path.unlink()
        away.rename(watched.path)
        watched.bench.save("b.md", topic("b"))
        results = watched.reading.catalogue(watched.real, mark)
        assert ([header.path for header in results.changed], results.whole) == (["b.md"], False)
        with pytest.raises(PathRefusedError):
            watched.reading.catalogue("relative")


def test_many_threads_read_one_catalogue(tmp_path: Path) -> None:
    """Whoever saves finds it in the next answer, whatever others ask at the same time."""
    with open_watched(tmp_path) as watched:
        wrong: list[str] = []

        def work(name: str) -> None:
            copy = Copy(watched.reading, watched.real)
            for number in range(30):
                (watched.path / f"{name}{number}.md").write_bytes(topic(f"{name}{number}"))
                if f"{name}{number}.md" not in copy.follow():
                    wrong.append(name)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(watched.reading.listed(watched.real)) == 120

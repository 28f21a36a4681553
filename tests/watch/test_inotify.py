"""The kernel's queue of changes."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from watchdog.observers import inotify_c

from memd.base.names import concerns
from memd.watch.inotify import Inotify, file_system_of, reports_all_changes
from memd.watch.watch import Dirty

_OVERFLOW = 0x4000


class Queue:
    """An inotify with what it told."""

    def __init__(self) -> None:
        self.dirty = Dirty()
        self.woken = threading.Event()
        self.inotify = Inotify(inotify_c, self.dirty.note, self.woken.set, concerns)

    def paths(self, directory: Path) -> set[str] | None:
        """Return what was told of a directory up to now."""
        self.inotify.catch_up()
        paths = self.dirty.take(str(directory))
        return None if paths is None else set(paths)


@pytest.fixture
def queue() -> Iterator[Queue]:
    """Open a queue."""
    opened = Queue()
    yield opened
    opened.inotify.close()


def test_an_overflow_puts_everything_in_doubt(tmp_path: Path, queue: Queue) -> None:
    """After events were lost, every directory is to be looked at as a whole."""
    for name in "ab":
        (tmp_path / name).mkdir()
        queue.inotify.add(str(tmp_path / name))
    (tmp_path / "a" / "x.md").touch()
    queue.inotify._on_event(-1, _OVERFLOW, b"")
    assert queue.paths(tmp_path / "a") is None
    assert queue.paths(tmp_path / "b") is None


def test_all_of_a_burst_is_told(tmp_path: Path, queue: Queue) -> None:
    """Whoever catches up has every path of more events than one reading takes."""
    queue.inotify.add(str(tmp_path))
    names = {f"{'x' * 200}{number}.md" for number in range(600)}
    for name in names:
        (tmp_path / name).touch()
    assert queue.paths(tmp_path) == names


def test_a_folder_is_followed_to_its_new_name(tmp_path: Path, queue: Queue) -> None:
    """A folder that moved is told of by its new name once it was entered there."""
    here = str(tmp_path)
    (tmp_path / "old").mkdir()
    queue.inotify.add(here)
    queue.inotify.enter(here, "old")
    queue.inotify.enter(here, "old")
    (tmp_path / "old").rename(tmp_path / "new")
    assert queue.paths(tmp_path) is None
    queue.inotify.enter(here, "new")
    (tmp_path / "new" / "a.md").touch()
    assert queue.paths(tmp_path) == {"new/a.md"}


def test_another_folder_in_its_place_is_told_of(tmp_path: Path, queue: Queue) -> None:
    """Where a folder was replaced, the one that is there now is watched."""
    here = str(tmp_path)
    for name in ("sub", "other"):
        (tmp_path / name).mkdir()
    queue.inotify.add(here)
    queue.inotify.enter(here, "sub")
    (tmp_path / "sub").rename(tmp_path / ".away")
    (tmp_path / "other").rename(tmp_path / "sub")
    assert queue.paths(tmp_path) is None
    queue.inotify.enter(here, "sub")
    (tmp_path / ".away" / "x.md").touch()
    (tmp_path / "sub" / "a.md").touch()
    assert queue.paths(tmp_path) == {"sub/a.md"}


def test_a_folder_that_is_gone_is_let_go(tmp_path: Path, queue: Queue) -> None:
    """The end of a folder, and of the directory, is told and ends its watch."""
    here, sub = str(tmp_path / "m"), tmp_path / "m" / "sub"
    sub.mkdir(parents=True)
    queue.inotify.add(here)
    queue.inotify.enter(here, "sub")
    sub.rmdir()
    assert queue.paths(tmp_path / "m") is None
    assert queue.inotify.is_watched(here)
    (tmp_path / "m").rmdir()
    assert queue.paths(tmp_path / "m") is None
    assert not queue.inotify.is_watched(here)
    queue.inotify.drop(here)
    queue.inotify.enter(here, "sub")
    assert not queue.inotify.is_watched(here)


def test_many_readers_share_one_queue(tmp_path: Path, queue: Queue) -> None:
    """Whoever catches up after a save has its path, or another reader has told it already."""
    queue.inotify.add(str(tmp_path))

    def save(name: str) -> None:
        for number in range(50):
            (tmp_path / f"{name}{number}.md").touch()
            queue.inotify.catch_up()
            reported.update(queue.dirty.take(str(tmp_path)) or ())

    reported: set[str] = set()
    threads = [threading.Thread(target=save, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.inotify.catch_up()
    reported.update(queue.dirty.take(str(tmp_path)) or ())
    assert len(reported) == 200


def test_the_queue_is_not_inherited(queue: Queue) -> None:
    """A program that the daemon starts gets none of its descriptors, and no reader waits."""
    assert not os.get_inheritable(queue.inotify._queue)
    assert not os.get_blocking(queue.inotify._queue)


LINES = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:40 / /home rw shared:1 - nfs4 server:/home rw
41 40 0:41 / /home/me/local\\040disk rw - xfs /dev/sdb rw
42 41 0:42 / /home/me/local\\040disk/far rw - fuse.sshfs far: rw
43 27 0:43 / /over rw - ext4 /dev/vdb rw
44 27 0:44 / /over rw - 9p share rw
nonsense
"""


@pytest.mark.parametrize(
    ("directory", "kind", "reported"),
    [
        ("/var/memory", "ext4", True),
        ("/home/me", "nfs4", False),
        ("/homes", "ext4", True),
        ("/home/me/local disk/memory", "xfs", True),
        ("/home/me/local disk/far/memory", "fuse.sshfs", False),
        ("/over", "9p", False),
    ],
)
def test_the_nearest_mount_decides(
    tmp_path: Path,
    directory: str,
    kind: str,
    reported: bool,  # noqa: FBT001 - a table's column
) -> None:
    """The longest mount point above a directory, and the last of two, is where it lies."""
    (tmp_path / "mountinfo").write_text(LINES)
    assert file_system_of(directory, LINES.splitlines()) == kind
    assert reports_all_changes(directory, str(tmp_path / "mountinfo")) is reported


def test_what_is_not_known_does_not_tell(tmp_path: Path) -> None:
    """Without a list of mounts, or with an empty one, nothing is promised."""
    (tmp_path / "empty").touch()
    assert not reports_all_changes("/", str(tmp_path / "none"))
    assert not reports_all_changes("/", str(tmp_path / "empty"))

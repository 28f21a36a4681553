"""Imports on a real store: what they bring, and what stays as it is."""

import errno
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import from_thread, to_thread

from memd.base.errors import MemdError, NotFound
from memd.base.names import INDEX
from memd.base.values import Actor
from memd.portable.manifest import MANIFEST, SUMS
from memd.portable.marking import marked
from memd.portable.service import SourceKind
from memd.store.past import Filter
from tests.portable.archives import MTIME_NS, export_of, sealed
from tests.portable.importing import NOW, Machine, machine, state_of
from tests.portable.test_memd_archive import NEW, PROJECT, WHOLE
from tests.portable.trees import memory
from tests.support.clock import FakeClock
from tests.support.faults import Countdown, FaultyDisk

pytestmark = pytest.mark.anyio


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Machine]:
    """Set up a machine."""
    with machine(tmp_path / "m") as made:
        yield made


def mark(content: bytes) -> bytes:
    """Return a memory with the mark of an import."""
    return marked(content, "a.md") or b""


async def test_an_accepted_import_brings_all(here: Machine) -> None:
    """Memories with their times, agents and notes are there, each directory one change."""
    source = here.archive(WHOLE)
    result = await here.bring(source)
    memories = await here.memory()
    assert (memories / "a.md").read_bytes() == mark(NEW)
    # What the archive's index does not name gets its line, too.
    lines = "- [A](a.md) (outside)\n- [odd näme](odd%20näme.md) (outside)\n"
    assert (memories / INDEX).read_text() == lines
    assert (memories / "odd näme.md").read_bytes() == mark(b"\xff damaged")
    assert {each.stat().st_mtime_ns for each in memories.rglob("*.md")} == {MTIME_NS}
    (project,) = result.projects
    changes = await to_thread.run_sync(partial(here.store.history, str(memories), only=Filter()))
    assert [change.id for change in changes] == [project.change]
    by = changes[0].by
    assert (by.actor, by.origin, by.reason) == (
        Actor.CLIENT,
        "import:memd",
        "import of export (memd)",
    )
    agents = {each.id: Path(each.directory) for each in result.agents}
    assert set(agents) == {"project/reviewer", "local/reviewer", "user/writer"}
    assert (agents["user/writer"] / "w.md").read_bytes() == mark(b"write")
    assert result.notes == 1
    (notes,) = here.folder.rglob("session-memory/summary.md")
    assert (notes.read_bytes(), notes.stat().st_mtime_ns) == (b"# notes", MTIME_NS)


async def test_notes_are_not_written_through_a_link(here: Machine, tmp_path: Path) -> None:
    """Where a link lies in the place of a session's notes, the answer says that it is refused."""
    source = here.archive(WHOLE)
    assert (await here.bring(source)).notes == 1
    (notes,) = here.folder.rglob("session-memory/summary.md")
    elsewhere = tmp_path / "elsewhere.md"
    notes.unlink()
    notes.symlink_to(elsewhere)
    result = await here.bring(source)
    assert result.notes == 0
    assert any("is refused" in left.reason for left in result.left_out)
    assert not elsewhere.exists()


async def test_no_time_of_an_archive_is_too_large(here: Machine) -> None:
    """Memories and notes with a time that no disk can hold come with one of today."""
    files = export_of({"app": PROJECT})
    late = files.pop(MANIFEST).replace(b"%d" % MTIME_NS, b"1%s" % (b"0" * 30))
    del files[SUMS]
    source = here.archive(sealed(late, files))
    assert (await here.bring(source)).notes == 1


async def test_projects_go_where_they_are_sent(here: Machine) -> None:
    """Each project of an archive is one change in its own directory; one without a place waits."""
    files = {name: {"memory/a.md": memory(name)} for name in ("one", "two", "three")}
    source = here.archive(export_of(files))
    result = await here.bring(source, projects={"one": "x", "two": "y"})
    assert [each.id for each in result.projects] == ["one", "two"]
    for key, name in (("one", "x"), ("two", "y")):
        assert ((await here.memory(name)) / "a.md").read_bytes() == mark(memory(key))
    assert [left.name for left in result.left_out] == ["three"]
    assert "--project three=DIR" in result.left_out[0].reason


async def test_team_memories_stay_out_where_a_server_decides(here: Machine) -> None:
    """Where the project joined a team, those below team/ are listed."""
    here.joined = True
    result = await here.bring(here.archive(WHOLE))
    assert not ((await here.memory()) / "team").exists()
    assert [left.name for left in result.left_out if "team" in left.reason] == [
        "app/team/t.md",
        "app/team/MEMORY.md",
    ]


async def test_a_source_without_anything_is_said_to_be_empty(here: Machine) -> None:
    """No kind helps an empty file or folder: the sentence says what is wrong with it."""
    (here.folder / "empty.json").touch()
    (here.folder / "none").mkdir()
    for name, kind in (("empty.json", None), ("empty.json", SourceKind.TEXT), ("none", None)):
        with pytest.raises(NotFound, match=r"is empty|no file in it"):
            await here.bring(here.folder / name, kind=kind)


@pytest.mark.parametrize("call", range(1, 50, 4))
async def test_a_full_disk_leaves_nothing_or_all(tmp_path: Path, call: int) -> None:
    """Whichever call of the disk fails, a directory is as it was or as it shall be."""
    countdown = Countdown(call, errno.ENOSPC)
    with machine(tmp_path / "m", FaultyDisk(countdown)) as here:
        source, memories = here.archive(WHOLE), await here.memory()
        try:
            await here.bring(source)
        except MemdError:
            assert state_of(memories) == {}
        assert len(state_of(memories)) in (0, 5)
        assert countdown.reached
        countdown.fail_at = 0
        here.clock.advance(60)
        await here.bring(source)
        assert len(state_of(memories)) == 5


class _CancellingClock(FakeClock):
    """A clock that cancels a scope when a worker thread asks for the time again.

    The first time is that of the check for external edits, the second that of the import's change.
    """

    scope: anyio.CancelScope | None = None
    asked = 0

    def now(self) -> float:
        """Return the time; cancel the scope if a worker thread asks again."""
        if self.scope and threading.current_thread() is not threading.main_thread():
            self.asked += 1
            if self.asked == 1:
                from_thread.run_sync(self.scope.cancel)
        return super().now()


async def test_an_import_whose_caller_is_gone_takes_nothing(tmp_path: Path) -> None:
    """An import that is cancelled while it plans ends there; the next one brings all."""
    clock = _CancellingClock(now=NOW)
    with machine(tmp_path / "m", clock=clock) as here:
        source = here.archive({f"{name}.md": memory(name) for name in "abc"}, "notes")
        with anyio.CancelScope() as clock.scope:
            await here.bring(source)
        assert clock.scope.cancelled_caught
        memories = await here.memory()
        assert state_of(memories) == {}
        assert (
            await to_thread.run_sync(partial(here.store.history, str(memories), only=Filter()))
            == ()
        )
        clock.scope = None
        (project,) = (await here.bring(source)).projects
        assert len(project.files) == 3

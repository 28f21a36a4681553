"""The door of the crash kit: with its neighbours ``core_*.py`` the one file that knows the core.

Another core brings these files, and nothing else is edited. It steps a countdown, which may raise
or end the process, before each call that changes something: ``create``, ``write``, ``set_mode``,
``set_mtime``, ``fsync``, ``sync_folder``, ``exchange``, ``move``, ``unlink`` for files, ``begin``,
``transaction`` for ``state.db``; ``close`` and ``committed`` are stepped after the call.
"""

import os
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio

from memd.base import errors, values
from memd.base.names import INDEXES
from memd.daemon.app import SCHEMAS
from memd.state.database import Database, StateUnusableError, open_database
from memd.store.disk import Disk, real_disk
from memd.store.log import ChangeLog
from memd.store.past import Filter, Past
from memd.store.read import MemoryReader
from memd.store.store import Store as WholeStore
from memd.store.sync import Rows
from memd.store.watch import Watch
from memd.store.write import ChangeRequest, Writer
from tests.crash.core_effects import EFFECTS, effects_in
from tests.crash.kit import Effect, Memory, Plan
from tests.stores import Sink
from tests.support.clock import FakeClock
from tests.support.countdown import Countdown
from tests.support.faults import FaultyDatabase, FaultyDisk

Result = values.CommitResult
REFUSED = errors.MemdError  # every typed error
CONFLICT = errors.Conflict
FAILED = (errors.Storage, StateUnusableError)  # of the disk or the state file
BY = values.Provenance(values.Actor.CLIENT, client="test")
_UNDO = values.Provenance(values.Actor.UNDO, client="test")


class Core:
    """The commits of a memory directory; each request comes ``pause`` seconds after the last."""

    pause = 1.0

    def __init__(self, root: Path, database: Database, clock: FakeClock, disk: Disk) -> None:
        self.root, self.path = root, root / "memory"
        self.path.mkdir(exist_ok=True)
        self.directory, self.database, self.clock = os.path.realpath(self.path), database, clock
        self.log = ChangeLog(database)
        self._rows = Rows(self.log, clock, Watch())
        self._writer = Writer(self._rows, disk, clock)
        self.past = Past(self.log, MemoryReader(self._rows).content)

    def through(self, countdown: Countdown, portion: int | None = None) -> "Core":
        """Return the core whose calls are counted; ``portion`` bounds the bytes of one write."""
        database = FaultyDatabase(self.database, countdown)
        return Core(self.root, database, self.clock, FaultyDisk(countdown, portion=portion))

    def commit(self, plan: Plan, request: str = "", *effects: Effect) -> str:
        """Commit a plan; return the id of its change, "" if there was nothing to change."""

        def draft(tree: values.Tree) -> values.Draft:
            edits = plan(partial(_memory, tree)) if callable(plan) else plan
            files = [values.FileEdit(*edit[:4]) for edit in edits]
            lines = {edit.path: values.Pointer(*edit.line) for edit in edits if edit.line}
            made = [EFFECTS[each.kind](self.directory, each.key, each.value) for each in effects]
            return values.Draft(tuple(files), lines, tuple(made))

        return self.commit_draft(draft, request).change or ""

    def commit_draft(self, plan: values.Plan, request: str, by: values.Provenance = BY) -> Result:
        """Commit a plan in the core's own words; replaced files go at once."""
        self.clock.advance(self.pause)
        result, _ = self._writer.commit(ChangeRequest(self.directory, plan, by, request))
        self._writer.scan(self.directory, last=True)
        return result

    def undo(self, change: str, request: str = "") -> tuple[str, ...]:
        """Take a change back; return the paths that had to be left alone."""
        plan = self.past.undo(self.directory, change)
        return self.commit_draft(plan, request, _UNDO).conflicts

    def recover(self) -> bool:
        """Do what a start does; say whether there was anything to put right."""
        found = self._writer.recover() != ()
        self._writer.scan(self.directory, last=True)
        return found

    def is_open(self) -> bool:
        """Say whether a change is recorded that is neither done nor taken back."""
        return self.log.open_changes() != ()

    def history(self, path: str = "") -> list[str]:
        """Return the ids of all changes, or of those of a file, newest first."""
        only = Filter(self.directory, path)
        return [change.id for change in self.past.changes(only, limit=50)]

    def effects(self) -> object:
        """Return what became true with changes, in a form that can be compared."""
        return effects_in(self.database, self.directory)

    def read(self) -> dict[str, Memory | None]:
        """Return every file as the core reads it."""
        with MemoryReader(self._rows).tree(self.directory) as tree:
            return {path: _memory(tree, path) for path in tree.rows.keys() - INDEXES}

    def close(self) -> None:
        """Close the state file."""
        self.database.close()


class Store(Core):
    """The same with a look at what other programs did before each commit; only the disk fails."""

    def __init__(self, root: Path, clock: FakeClock, countdown: Countdown) -> None:
        disk, database = FaultyDisk(countdown), open_database(str(root / "state.db"), SCHEMAS)
        super().__init__(root, database, clock, disk)
        self._store = WholeStore(database, clock, Sink(), disk=disk)
        self._rows, self._writer = self._store._rows, self._store._writer

    def commit_draft(self, plan: values.Plan, request: str, by: values.Provenance = BY) -> Result:
        """Commit a plan in the core's own words."""
        self.clock.advance(self.pause)
        commit = partial(self._store.commit, request_id=request)
        return anyio.run(commit, self.directory, plan, by)

    def sync(self) -> None:
        """Let the store look at what other programs did."""
        anyio.run(self._store._scan, self.directory)


def open_core(root: Path) -> closing[Core]:
    """Open the state below a folder for a ``with`` block."""
    database = open_database(str(root / "state.db"), SCHEMAS)
    return closing(Core(root, database, FakeClock(), real_disk()))


def _memory(tree: values.Tree, path: str) -> Memory | None:
    found = tree.read(path)
    return Memory(found.content, found.header.mtime_ns) if found else None

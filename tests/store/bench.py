"""A directory and its log for the tests of the store, and of what stands on one."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memd.base.names import INDEX
from memd.base.values import Actor, CommitResult, Draft, Effect, FileEdit, Pointer, Provenance, Tree
from memd.daemon.app import SCHEMAS as SCHEMAS
from memd.state.database import Database, open_database
from memd.store.disk import Disk, real_disk
from memd.store.log import ChangeLog, ChangeRecord
from memd.store.past import Past
from memd.store.read import MemoryReader
from memd.store.sync import Rows
from memd.store.watch import Watch
from memd.store.write import ChangeRequest, Writer
from tests.support.clock import FakeClock

BY = Provenance(Actor.CLIENT, client="test")


def topic(name: str, body: str = "text") -> bytes:
    """Return a small valid memory."""
    head = f"---\nname: {name}\ndescription: about {name}\nmetadata:\n  type: user\n---\n\n"
    return f"{head}{body}\n".encode()


def edits(*wanted: FileEdit, pointers: Mapping[str, Pointer] | None = None) -> Draft:
    """Return a draft of these edits."""
    return Draft(tuple(wanted), pointers or {})


class Bench:
    """A memory directory, its log, and a way to commit; the clock ticks with every request."""

    def __init__(self, root: Path, database: Database, disk: Disk | None = None) -> None:
        self.root, self.path = root, root / "memory"
        self.path.mkdir(exist_ok=True)
        self.database = database
        self.clock = FakeClock()
        self.log = ChangeLog(database)
        self.rows = Rows(self.log, self.clock, Watch())
        self.reader = MemoryReader(self.rows)
        self.past = Past(self.log, self.reader.content)
        self.writer = Writer(self.rows, disk or real_disk(), self.clock)

    @property
    def directory(self) -> str:
        """The real path of the memory directory."""
        return os.path.realpath(self.path)

    def using(self, disk: Disk, database: Database | None = None) -> "Bench":
        """Return the same bench on another disk or through another state file object."""
        return Bench(self.root, database or self.database, disk)

    def commit(
        self,
        plan: Callable[[Tree], Draft] | Draft,
        request: str = "",
        by: Provenance = BY,
        *,
        wait: bool = False,
    ) -> CommitResult:
        """Commit a plan or a draft."""
        self.clock.advance(1.0)
        chosen = (lambda _: plan) if isinstance(plan, Draft) else plan
        wanted = ChangeRequest(self.directory, chosen, by, request, wait=wait)
        return self.writer.commit(wanted)[0]

    def write(self, path: str, content: bytes | None, *effects: Effect) -> CommitResult:
        """Write or delete one file."""
        return self.commit(Draft((FileEdit(path, content),), effects=effects))

    def undo(self, change: str | None, request: str = "") -> CommitResult:
        """Undo a change; ``None`` is the newest that is neither an undo nor undone."""
        by = Provenance(Actor.UNDO, client="test")
        return self.commit(self.past.undo(self.directory, change), request, by)

    def look(self, *, patient: bool = False, last: bool = False) -> list[ChangeRecord]:
        """Look at what other programs did; with ``last`` replaced files go at once."""
        return self.writer.scan(self.directory, patient=patient, last=last)[0]

    def save(self, path: str, content: bytes) -> None:
        """Save a file as a program does that knows nothing of memd: new file, rename."""
        temp = self.path / "editor~"
        temp.write_bytes(content)
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temp.rename(target)

    def tree(self) -> dict[str, bytes]:
        """Return every file of the directory, hidden ones too."""
        return {
            str(file.relative_to(self.path)): file.read_bytes()
            for file in sorted(self.path.rglob("*"))
            if file.is_file()
        }

    def topics(self) -> dict[str, bytes]:
        """Return every file but the index and memd's own."""
        files = self.tree().items()
        return {path: text for path, text in files if path != INDEX and "/." not in f"/{path}"}


@contextmanager
def open_bench(root: Path, disk: Disk | None = None) -> Iterator[Bench]:
    """Open a bench below a folder, and close its state file at the end."""
    database = open_database(str(root / "state.db"), SCHEMAS)
    try:
        yield Bench(root, database, disk)
    finally:
        database.close()

"""A directory and its journal for the tests of the writing half of the store."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memd.base.names import INDEX
from memd.base.values import Actor, CommitResult, Draft, Effect, FileEdit, Pointer, Provenance, Tree
from memd.files.disk import Disk, real_disk
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.schemas import SCHEMAS as SCHEMAS
from memd.store.changes import ChangeRequest, Changes
from memd.store.replaced import Replaced
from memd.store.undo import UndoPlan

BY = Provenance(Actor.CLIENT, client="test")


def topic(name: str, body: str = "text") -> bytes:
    """Return a small valid memory."""
    head = f"---\nname: {name}\ndescription: about {name}\nmetadata:\n  type: user\n---\n\n"
    return f"{head}{body}\n".encode()


def edits(*wanted: FileEdit, pointers: Mapping[str, Pointer] | None = None) -> Draft:
    """Return a draft of these edits."""
    return Draft(tuple(wanted), pointers or {})


class Bench:
    """A memory directory, a journal, and a way to commit; ``at`` ticks with every request."""

    def __init__(
        self,
        root: Path,
        database: Database,
        disk: Disk | None = None,
        replaced: Replaced | None = None,
    ) -> None:
        self.path = root / "memory"
        self.path.mkdir(exist_ok=True)
        self.root = root
        self.database = database
        self.journal = Journal(database)
        self.changes = Changes(self.journal, disk or real_disk(), replaced=replaced)
        self.at = 1_760_000_000.0
        self.monotonic = 10.0

    @property
    def directory(self) -> str:
        """The real path of the memory directory."""
        return os.path.realpath(self.path)

    def keeping(self, replaced: Replaced) -> "Bench":
        """Return the same bench, whose commits keep the files that they replace."""
        return Bench(self.root, self.database, replaced=replaced)

    def using(self, disk: Disk, database: Database | None = None) -> "Bench":
        """Return the same bench on another disk or through another state file object."""
        return Bench(self.root, database or self.database, disk)

    def commit(
        self, plan: Callable[[Tree], Draft] | Draft, request: str = "", by: Provenance = BY
    ) -> CommitResult:
        """Commit a plan or a draft."""
        self.at += 1
        chosen = (lambda _: plan) if isinstance(plan, Draft) else plan
        return self.changes.commit(
            ChangeRequest(self.directory, chosen, by, self.at, request, self.monotonic)
        )

    def write(self, path: str, content: bytes | None, *effects: Effect) -> CommitResult:
        """Write or delete one file."""
        return self.commit(Draft((FileEdit(path, content),), effects=effects))

    def undo(self, change: str | None, request: str = "") -> CommitResult:
        """Undo a change."""
        record = self.journal.change(self.directory, change or "")
        assert record is not None
        by = Provenance(Actor.UNDO, client="test")
        return self.commit(UndoPlan(record, self.journal.blob), request, by)

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
        """Return every file but the index."""
        return {path: content for path, content in self.tree().items() if path != INDEX}

    def times(self) -> dict[str, int]:
        """Return the mtime of every topic."""
        return {path: (self.path / path).stat().st_mtime_ns for path in self.topics()}


class Slow(Disk):
    """A disk whose first wait for a folder lasts until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def sync_folder(self, folder: int) -> None:
        """Wait, then do it."""
        self.reached.set()
        assert self.go_on.wait(60)
        super().sync_folder(folder)


@contextmanager
def open_bench(root: Path, disk: Disk | None = None) -> Iterator[Bench]:
    """Open a bench below a folder, and close its state file at the end."""
    database = open_database(str(root / "state.db"), SCHEMAS)
    try:
        yield Bench(root, database, disk)
    finally:
        database.close()

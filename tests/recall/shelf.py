"""Memories in memory, read as the store reads them."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

from msgspec import structs

from memd.base.errors import MemdError
from memd.base.settings import Settings
from memd.base.values import (
    Catalogue,
    Header,
    MemoryFile,
    MemoryType,
    Project,
    newest_first,
)
from memd.model.port import ModelSource
from memd.recall.indexes import Indexes
from memd.recall.service import Prefetched, Prompt, Recall
from memd.state.ledger import Ledger
from tests.support.clock import FakeClock

DAY = 86_400
NOW = 1_760_000_000


class RefusedError(MemdError):
    """The directory cannot be read."""

    def __init__(self) -> None:
        super().__init__("no access")


class Shelf:
    """Directories of memories with marks; counts the files that were read.

    ``forgets`` makes every catalogue a whole one, as after a restart.
    """

    def __init__(self, *, forgets: bool = False) -> None:
        self.files: dict[str, dict[str, MemoryFile]] = {}
        self.unreadable: set[str] = set()
        self.read: list[str] = []
        self.refuses = False
        self.forgets = forgets
        self._log: list[tuple[str, str]] = []

    def put(self, path: str, description: str, body: str = "", **facts: object) -> None:
        """Add or change a memory of ``/m``."""
        name = str(facts.pop("directory", "/m"))
        directory = self.files.setdefault(name, {})
        version = directory[path].header.inode + 1 if path in directory else 1
        header = Header(
            path=path,
            name=path.removesuffix(".md"),
            description=description,
            type=MemoryType.PROJECT,
            mtime_ns=(NOW - 3 * DAY) * 1_000_000_000,
            size=len(body),
            damaged=False,
            inode=version,
        )
        header = structs.replace(header, **facts)
        directory[path] = MemoryFile(header, body.encode(), "", body)
        self._log.append((name, path))

    def drop(self, path: str, directory: str = "/m") -> None:
        """Take a memory away."""
        del self.files[directory][path]
        self._log.append((directory, path))

    def catalogue(self, directory: str, since: int = -1) -> Catalogue:
        """Return what changed since a mark."""
        if self.refuses:
            raise RefusedError
        files = self.files.get(directory, {})
        whole = since < 0 or self.forgets
        touched = (
            set(files) if whole else {path for name, path in self._log[since:] if name == directory}
        )
        changed = tuple(files[path].header for path in sorted(touched) if path in files)
        gone = tuple(sorted(touched - set(files)))
        return Catalogue(directory, len(self._log), whole, changed, gone, len(files))

    def headers(self, directory: str) -> dict[str, Header]:
        """Return all headers by path."""
        return {path: file.header for path, file in self.files.get(directory, {}).items()}

    def listed(self, directory: str) -> tuple[Header, ...]:
        """Return all headers, newest first."""
        return tuple(sorted(self.headers(directory).values(), key=newest_first))

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return the memories that can be read."""
        self.read += paths
        files = self.files.get(directory, {})
        return tuple(files[p] for p in paths if p in files and p not in self.unreadable)


PROJECT = Project("/r", "/r", "/m", "default", "/t", enabled=True)
FREEZE = "when does the merge freeze begin?"


def remembering(shelf: Shelf, ledger: Ledger, models: ModelSource | None = None) -> Recall:
    """Return recall over a shelf."""
    return Recall(shelf, ledger, FakeClock(NOW), Indexes(shelf, Lock), models)


async def ask(recall: Recall, project: Project, settings: Settings, **facts: Any) -> Prefetched:
    """Ask as a client does."""
    return await recall.prefetch(project, settings, Prompt(**facts))

"""Reading memory directories: headers, the index, and single memories as they are on the disk.

What an earlier scan has met is kept by the directory's real path. It saves reading files anew, it
lets a person's own file have any name, and it says whether there is news.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memd.core.errors import MemdError
from memd.core.values import Catalogue, Header, MemoryFile, Snapshot
from memd.store import catalogue
from memd.store.marks import Marks
from memd.store.names import INDEX, NameRefusedError, check_name
from memd.store.paths import Directory, DirectoryMissingError
from memd.store.served import Served
from memd.store.tree import Found, memory_file, read_file


@dataclass(frozen=True, slots=True)
class Glance:
    """A snapshot, the real path of its directory, and whether it differs from the last one."""

    snapshot: Snapshot
    real: str
    news: bool


@dataclass(frozen=True, slots=True)
class _Met:
    headers: Mapping[str, Header]
    index: tuple[int, int, int] | None


class Reading:
    """Reads below any memory directory. All methods block and may run in any thread.

    ``served`` are the texts that were read last. ``news`` is called, in the thread that met it,
    with the real path of a directory that is not what it was, and the path that was asked for.
    """

    def __init__(self, news: Callable[[str, str], None] = lambda _real, _directory: None) -> None:
        self._met: dict[str, _Met] = {}
        self._marks: dict[str, Marks] = {}
        self._lock = threading.Lock()
        self._news = news
        self.served = Served()

    def catalogue(self, directory: str, since: int = -1) -> Catalogue:
        """Return what became of a directory's headers since a mark that was given earlier.

        A directory that is not there is an empty one. Raises PathRefusedError and
        DirectoryUnusableError.
        """
        with self._lock:
            before = self.known(os.path.realpath(directory))
            glance = self.snapshot(directory)
            now = self.known(glance.real)
            changed = {path for path, header in now.items() if before.get(path) != header}
            marks = self._marks.setdefault(glance.real, Marks())
            marks.change(changed | (before.keys() - now.keys()))
            paths = marks.since(since)
        if glance.news:
            self._news(glance.real, directory)
        gone = () if paths is None else tuple(path for path in paths if path not in now)
        found = now.values() if paths is None else [now[path] for path in paths if path in now]
        whole, problems = paths is None, glance.snapshot.problems
        return Catalogue(directory, marks.now, whole, tuple(found), gone, len(now), problems)

    def header(self, directory: str, path: str) -> Header | None:
        """Return what is known of one memory; raises what ``catalogue`` does."""
        self.catalogue(directory)
        return self.known(os.path.realpath(directory)).get(path)

    def known(self, real: str) -> Mapping[str, Header]:
        """Return the headers of the last scan by path."""
        met = self._met.get(real)
        return met.headers if met else {}

    def snapshot(self, directory: str) -> Glance:
        """Return headers and index; raises PathRefusedError and DirectoryUnusableError."""
        real = os.path.realpath(directory)
        before = self._met.get(real)
        try:
            with Directory(directory) as opened:
                headers, problems = catalogue.scan(opened, before.headers if before else {})
                index, more = _index(opened)
        except DirectoryMissingError:
            self._met.pop(real, None)
            return Glance(Snapshot(directory, (), None), real, before is not None)
        met = _Met(
            {header.path: header for header in headers}, index.fingerprint if index else None
        )
        self._met[real] = met
        snapshot = Snapshot(directory, headers, index.content if index else None, problems + more)
        return Glance(snapshot, real, met != before)

    def read(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return the memories of these paths that are there; raises what reading raises."""
        try:
            with Directory(directory) as opened:
                found = [(path, self._found(opened, path)) for path in paths]
        except DirectoryMissingError:
            return ()
        there = [(path, file) for path, file in found if file is not None]
        for _, file in there:
            self.served.keep(file.hash, file.content)
        return tuple(memory_file(path, file) for path, file in there)

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return the memories of these paths that can be read."""
        found: list[MemoryFile] = []
        for path in paths:
            try:
                found += self.read(directory, (path,))
            except MemdError:
                continue
        return tuple(found)

    def live(self, directory: str, path: str) -> bytes | None:
        """Return the bytes of a memory, or ``None``; raises what reading raises."""
        found = self.read(directory, (path,))
        return found[0].content if found else None

    def _found(self, directory: Directory, path: str) -> Found | None:
        try:
            check_name(path, index=True)
        except NameRefusedError:
            # A person's own file may have any name, if it is one that a scan has met.
            if path not in self.known(os.path.realpath(directory.path)):
                raise
        return read_file(directory, path)


def _index(directory: Directory) -> tuple[Found | None, tuple[str, ...]]:
    try:
        return read_file(directory, INDEX), ()
    except MemdError as error:
        return None, (error.sentence,)

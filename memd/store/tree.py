"""A memory directory as a plan sees it: each file is read once and stays as it was read.

The change is based on exactly these bytes, so a file that somebody saves after the plan has read it
is noticed when it is exchanged. A file that a program has just emptied, and holds open to fill it
again, still says what its row says.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.errors import TooLarge
from memd.base.names import INDEX, INDEXES, TEAM, check_name, in_catalogue
from memd.base.text import sha256
from memd.base.values import Header, MemoryFile
from memd.store import index, memory
from memd.store.directory import Directory
from memd.store.disk import Content
from memd.store.log import ChangeLog
from memd.store.sync import FileRow, header_of, headers_of


class LiveTree(Struct):
    """The tree of a directory that a plan reads (``Tree`` in ``base/values.py``). Blocks.

    ``directory`` is ``None`` where there is none. Reading raises Refused, TooLarge and Storage.
    """

    path: str
    directory: Directory | None
    rows: Mapping[str, FileRow]
    log: ChangeLog
    unclear: bool = False  # some folder could not be listed, so files may be missing
    # As they were read; ``None`` for no file.
    _files: dict[str, Content | None] = field(default_factory=dict)
    _headers: tuple[Header, ...] | None = None  # until a plan needs them
    _shared: frozenset[str] | None = None  # until somebody needs them

    def headers(self) -> tuple[Header, ...]:
        """Return the headers of all memories, newest first."""
        if self._headers is None:
            self._headers = headers_of(self.rows)
        return self._headers

    def read(self, path: str) -> MemoryFile | None:
        """Return one memory or ``None``. Raises Refused for a name that no memory can have."""
        if not in_catalogue(path):
            check_name(path, index=True)
        file = self.file(path)
        return None if file is None else memory_file(path, file)

    def index(self) -> bytes | None:
        """Return the raw index, or ``None`` if there is none or it is too large to be loaded."""
        with suppress(TooLarge):
            file = self.file(INDEX)
            return None if file is None else file.content
        return None

    def file(self, path: str) -> Content | None:
        """Return a file as it was when this tree first read it, or ``None`` if there was none."""
        if path in self._files:
            return self._files[path]
        directory, row = self.directory, self.rows.get(path)
        result = directory.read(path, limits.READ_BYTES) if directory else None
        if result is None or directory is None:
            self._files[path] = None
            return None
        content, status = result
        mode = status.st_mode & 0o777  # the permissions
        file = Content(sha256(content), content, status.st_mtime_ns, mode)
        is_emptied = not content and row is not None and row.header.size > 0
        if row is not None and is_emptied and directory.is_open_for_writing(path):
            text, header = self.log.body(row.header.hash), row.header
            if text is not None:
                file = Content(header.hash, text, header.mtime_ns, row.mode, emptied=True)
        self._files[path] = file
        return file

    def paths_read(self) -> tuple[str, ...]:
        """Return the paths that this tree has read, also those without a file."""
        return tuple(self._files)

    def shared(self) -> frozenset[str]:
        """Return the paths of the memories below ``team/``."""
        if self._shared is None:
            shared = [path for path in self.rows if path.startswith(TEAM)]
            self._shared = frozenset(shared).difference(INDEXES)
        return self._shared

    def memories(self, named: Iterable[str] = ()) -> set[str]:
        """Return the paths under which memories lie, and those ``named`` under which one may lie.

        If some folder could not be read, any path below a folder counts: the index keeps its line.
        """
        existing = {*self.rows}
        existing.difference_update(INDEXES)
        return existing.union(path for path in named if "/" in path) if self.unclear else existing

    def dangling(self) -> tuple[int, ...]:
        """Return the numbers of the index lines that lead to nothing, from 0.

        What lies there and is no memory (a link, a file that cannot be read) is something.
        """
        entries = index.Index(self.index()).entries
        existing = self.memories(path for entry in entries.values() for path in entry.paths)
        return tuple(
            number
            for number, entry in entries.items()
            if existing.isdisjoint(entry.paths) and not self.lies(entry.paths)
        )

    def lies(self, paths: Collection[str]) -> bool:
        """Return whether anything lies under one of these paths of index lines.

        ``team/`` counts as if it did: its files come and go with its server.
        """
        return any(
            path.startswith(TEAM) or os.path.lexists(f"{self.path}/{path}") for path in paths
        )

    def unknown(self, paths: Collection[str]) -> frozenset[str]:
        """Return those of ``paths`` under which memd never knew of a memory."""
        return frozenset(paths) - self.log.knows(self.path, paths)


def read_memory(opened: Directory, path: str, row: FileRow | None = None) -> MemoryFile | None:
    """Return a memory as it is now, or ``None``; raises Refused, TooLarge and Storage.

    ``row`` is what it said last.
    """
    result = opened.read(path, limits.READ_BYTES)
    if result is None:
        return None
    content, status = result
    file = Content(sha256(content), content, status.st_mtime_ns, status.st_mode & 0o777)
    if row is None or row.header.hash != file.hash:
        return memory_file(path, file)
    header = row.header
    if header.mtime_ns != file.mtime_ns:
        header = replace(header, mtime_ns=file.mtime_ns)
    start = memory.body_start(content, damaged=header.damaged)
    return MemoryFile(header, content, file.hash, start)


def memory_file(path: str, file: Content) -> MemoryFile:
    """Return a stored file as a memory; a damaged head raises no error."""
    parsed = memory.parse(file.content, path)
    header = header_of(path, parsed, file.hash, file.mtime_ns, len(file.content))
    return MemoryFile(header, file.content, file.hash, parsed.start)

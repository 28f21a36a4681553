"""A memory directory as a plan sees it: each file is read once and stays as it was read.

The change set is based on exactly these bytes, so a file that somebody saves after the plan has
read it is noticed when it is exchanged.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory

from msgspec import Struct

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, TEAM, check_name, in_catalogue
from memd.base.text import sha256
from memd.base.values import Header, MemoryFile, newest_first
from memd.files.directory import Directory, DirectoryMissingError, FileTooLargeError
from memd.store import catalogue, memory
from memd.store.index import IndexEntry, entries
from memd.store.index import read as read_index


class StoredFile(Struct, frozen=True):
    """One file: its bytes, their SHA-256, its fingerprint, mtime in nanoseconds and mode."""

    content: bytes
    hash: str
    fingerprint: tuple[int, int, int]
    mtime_ns: int
    mode: int


class Listing(Struct, frozen=True):
    """Functions that return what a directory holds at the time of the call; they block.

    ``headers`` returns all memories, newest first; ``files`` the paths of all memories, and whether
    some may be missing.
    """

    headers: Callable[[], tuple[Header, ...]]
    files: Callable[[], tuple[frozenset[str], bool]]


# Returns those of some paths under which memd knows or once knew a memory.
Known = Callable[[Collection[str]], frozenset[str]]


class LiveTree:
    """The tree of an open directory that a plan reads (``Tree`` in ``core/values.py``). Blocks.

    ``listed`` lists the directory; without one it is scanned. Reading raises PathRefusedError,
    FileTooLargeError and FileUnreadableError.
    """

    def __init__(
        self, directory: Directory, listed: Listing | None = None, known: Known = frozenset
    ) -> None:
        self._directory = directory
        self._known = known
        self._listed = listed or _scanned(directory)
        self._files_read: dict[str, StoredFile | None] = {}  # by path; ``None`` for no file
        # Each of these is ``None`` until a plan needs it.
        self._headers: tuple[Header, ...] | None = None
        self._files: frozenset[str] | None = None
        self._team: tuple[Header, ...] | None = None
        self._index_trouble: str | None = None

    def headers(self) -> tuple[Header, ...]:
        """Return the headers of all memories, newest first."""
        if self._headers is None:
            self._headers = self._listed.headers()
        return self._headers

    def read(self, path: str) -> MemoryFile | None:
        """Return one memory or ``None``. Raises Refused for a name no memory can have."""
        if not in_catalogue(path):
            check_name(path, index=True)
        file = self.file(path)
        return None if file is None else memory_file(path, file)

    def index(self) -> bytes | None:
        """Return the raw index, or ``None`` if there is none or it is too large to be loaded."""
        if self.index_trouble():
            return None
        file = self.file(INDEX)
        return None if file is None else file.content

    def index_trouble(self) -> str:
        """Return why the index cannot be rewritten, or "" if it can."""
        if self._index_trouble is None:
            try:
                self.file(INDEX)
                self._index_trouble = ""
            except FileTooLargeError as error:
                self._index_trouble = error.sentence
        return self._index_trouble

    def file(self, path: str) -> StoredFile | None:
        """Return a file as it was when this tree first read it, or ``None`` if there was none."""
        if path not in self._files_read:
            self._files_read[path] = read_file(self._directory, path)
        return self._files_read[path]

    def paths_read(self) -> tuple[str, ...]:
        """Return the paths that this tree has read, also those without a file."""
        return tuple(self._files_read)

    def is_empty(self, path: str) -> bool:
        """Say whether there was a file of zero bytes when this tree first read it."""
        file = self._files_read.get(path)
        return file is not None and not file.content

    def files(self) -> frozenset[str]:
        """Return the paths of all memories."""
        if self._files is None:
            self._files, _ = self._listed.files()
        return self._files

    def team(self) -> tuple[Header, ...]:
        """Return the headers below ``team/``; without that folder no header is read.

        Reading the headers of a whole directory is slow, and few directories have such a folder.
        """
        if self._team is None:
            self._team = ()
            with suppress(MemdError), self._directory.folder(TEAM.removesuffix("/")) as folder:
                if folder is not None:
                    headers = self.headers()
                    self._team = tuple(each for each in headers if each.path.startswith(TEAM))
        return self._team

    def among(self, paths: Collection[str]) -> frozenset[str]:
        """Return those of ``paths`` under which a memory lies or may lie.

        If some folder could not be read, any path below a folder counts: the index keeps its line.
        """
        files, some_missing = self._listed.files()
        existing = files.intersection(paths)
        if some_missing:
            existing |= {path for path in paths if "/" in path}
        return existing

    def dangling(self) -> tuple[IndexEntry, ...]:
        """Return the entries of the index that lead to nothing, in its order.

        What lies there and is no memory (a link, a file that cannot be read) is something.
        """
        content = self.index() or b""
        lines = {line.number: line.paths for line in read_index(content).lines}
        existing = self.among({path for paths in lines.values() for path in paths})
        return tuple(
            entry
            for entry in entries(content)
            if existing.isdisjoint(lines[entry.line]) and not self.lies(lines[entry.line])
        )

    def lies(self, paths: Collection[str]) -> bool:
        """Return whether anything lies under one of these paths of index lines.

        ``team/`` counts as if it did: its files come and go with its server.
        """
        return any(
            path.startswith(TEAM) or os.path.lexists(f"{self._directory.path}/{path}")
            for path in paths
        )

    def unknown(self, paths: Collection[str]) -> frozenset[str]:
        """Return those of ``paths`` under which memd never knew of a memory."""
        return frozenset(paths) - self._known(paths)


@contextmanager
def opened_or_empty(path: str) -> Iterator[Directory]:
    """Hold a memory directory open for reading; an empty one stands for a missing one.

    Raises PathRefusedError and DirectoryUnusableError.
    """
    with ExitStack() as stack:
        try:
            directory = stack.enter_context(Directory(path))
        except DirectoryMissingError:
            empty = stack.enter_context(TemporaryDirectory())
            directory = stack.enter_context(Directory(empty))
            directory.path = path
        yield directory


def _scanned(directory: Directory) -> Listing:
    """Return a listing that scans the directory at each call."""

    def headers() -> tuple[Header, ...]:
        """Return all headers, newest first."""
        headers_by_path = catalogue.scan(directory, {}).headers
        return tuple(sorted(headers_by_path.values(), key=newest_first))

    def files() -> tuple[frozenset[str], bool]:
        """Return the paths of all memories, and whether some may be missing."""
        problems: list[str] = []
        paths = frozenset(path for path, _, _ in directory.walk(problems))
        return paths, bool(problems)

    return Listing(headers, files)


def read_file(directory: Directory, path: str) -> StoredFile | None:
    """Return a file of a memory directory as it is now, or ``None``."""
    content_and_status = directory.read(path, limits.READ_BYTES)
    if content_and_status is None:
        return None
    content, status = content_and_status
    mode = status.st_mode & 0o777  # the permissions
    fingerprint = catalogue.fingerprint(status)
    return StoredFile(content, sha256(content), fingerprint, status.st_mtime_ns, mode)


def memory_file(path: str, file: StoredFile) -> MemoryFile:
    """Return a file as a memory, with its header and body; a damaged head raises no error."""
    parsed = memory.parse(file.content, path)
    header = catalogue.header_from(path, parsed.fields, file.fingerprint, damaged=parsed.damaged)
    return MemoryFile(header, file.content, file.hash, parsed.body)

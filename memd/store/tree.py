"""A memory directory as a plan sees it: each file is read once and stays as it was read.

The change set is based on exactly these bytes, so a file that somebody saves after the plan has
read it is noticed when it is exchanged.
"""

from collections.abc import Callable, Collection
from contextlib import suppress

from msgspec import Struct

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.names import INDEX, TEAM, check_name, in_catalogue
from memd.core.text import sha256
from memd.core.values import Header, MemoryFile, newest_first
from memd.documents import document
from memd.files.directory import Directory, FileTooLargeError
from memd.store import catalogue


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


Known = Callable[[Collection[str]], frozenset[str]]


class LiveTree:
    """The Tree of ``core/values.py`` over an open directory. Blocks.

    ``listed`` lists it; without one the directory is scanned. ``known`` returns those of some paths
    under which memd knows or once knew a memory. Reading raises PathRefusedError,
    FileTooLargeError and FileUnreadableError.
    """

    def __init__(
        self, directory: Directory, listed: Listing | None = None, known: Known = frozenset
    ) -> None:
        self._directory = directory
        self._known = known
        self._listed = listed or _scanned(directory)
        self._headers: tuple[Header, ...] | None = None
        self._results: dict[str, StoredFile | None] = {}
        self._files: frozenset[str] | None = None
        self._team: tuple[Header, ...] | None = None
        self._trouble: str | None = None  # of the index; ``None`` until it was read

    def headers(self) -> tuple[Header, ...]:
        """Return the headers of all memories, newest first."""
        if self._headers is None:
            self._headers = self._listed.headers()
        return self._headers

    def read(self, path: str) -> MemoryFile | None:
        """Return one memory or ``None``. Raises NameRefusedError for a name no memory can have."""
        if not in_catalogue(path):
            check_name(path, index=True)
        result = self.file(path)
        return None if result is None else memory_file(path, result)

    def index(self) -> bytes | None:
        """Return the raw index, or ``None`` if there is none or it is too large to be loaded."""
        if self.index_trouble():
            return None
        result = self.file(INDEX)
        return None if result is None else result.content

    def index_trouble(self) -> str:
        """Return why the index cannot be rewritten, or "" if it can."""
        if self._trouble is None:
            try:
                self.file(INDEX)
                self._trouble = ""
            except FileTooLargeError as error:
                self._trouble = error.sentence
        return self._trouble

    def file(self, path: str) -> StoredFile | None:
        """Return a file as it was when this tree first read it, or ``None`` if there was none."""
        if path not in self._results:
            self._results[path] = read_file(self._directory, path)
        return self._results[path]

    def paths_read(self) -> tuple[str, ...]:
        """Return the paths that this tree has read, also those without a file."""
        return tuple(self._results)

    def is_empty(self, path: str) -> bool:
        """Say whether there was a file of zero bytes when this tree first read it."""
        result = self._results.get(path)
        return result is not None and not result.content

    def files(self) -> frozenset[str]:
        """Return the paths of all memories."""
        if self._files is None:
            self._files, _ = self._listed.files()
        return self._files

    def team(self) -> tuple[Header, ...]:
        """Return the headers below ``team/``; without that folder no header is read."""
        if self._team is None:
            self._team = ()
            with suppress(MemdError), self._directory.folder(TEAM[:-1]) as folder:
                if folder is not None:
                    self._team = tuple(h for h in self.headers() if h.path.startswith(TEAM))
        return self._team

    def among(self, paths: Collection[str]) -> frozenset[str]:
        """Return those of ``paths`` under which a memory lies or may lie.

        If some folder could not be read, any path below a folder counts: the index keeps its line.
        """
        files, unclear = self._listed.files()
        return files.intersection(paths) | {path for path in paths if unclear and "/" in path}

    def unknown(self, paths: Collection[str]) -> frozenset[str]:
        """Return those of ``paths`` under which memd never knew of a memory."""
        return frozenset(paths) - self._known(paths)


def _scanned(directory: Directory) -> Listing:
    """Return a listing that scans the directory at each call."""

    def headers() -> tuple[Header, ...]:
        result = catalogue.scan(directory, {}).headers
        return tuple(sorted(result.values(), key=newest_first))

    def files() -> tuple[frozenset[str], bool]:
        problems: list[str] = []
        return frozenset(path for path, _, _ in directory.walk(problems)), bool(problems)

    return Listing(headers, files)


def read_file(directory: Directory, path: str) -> StoredFile | None:
    """Return a file of a memory directory as it is now, or ``None``."""
    answer = directory.read(path, limits.READ_BYTES)
    if answer is None:
        return None
    content, status = answer
    key = catalogue.fingerprint(status)
    return StoredFile(content, sha256(content), key, status.st_mtime_ns, status.st_mode & 0o777)


def memory_file(path: str, result: StoredFile) -> MemoryFile:
    """Return a file's bytes as a memory, parsed leniently."""
    parsed = document.parse(result.content, path)
    key = result.fingerprint
    header = catalogue.header_from(path, parsed.fields, key, damaged=parsed.damaged)
    return MemoryFile(header, result.content, result.hash, parsed.body)

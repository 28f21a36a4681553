"""Read the files that a model may see: the run's roots with its own changes on top. Blocks.

Rules of this file
- Every path goes through ``places.locate``, also those that a listing finds.
- Files of a project and transcripts are shown with their credentials blanked out. They are blanked
  in whole files and before any selection, so that neither half a line nor a search reveals them.
- Invisible characters are spelled out, since only the model would read a text hidden in them.
- Each call has a limit of bytes, files and seconds (``Meter``).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from memd.agent import places
from memd.agent.confined import Confined
from memd.agent.places import MEMORY, Place, Root
from memd.agent.refusals import LimitError, NotReachableError, PathMissingError, WrongKindError
from memd.base.errors import MemdError
from memd.base.text import decode
from memd.base.yielding import yield_to_requests
from memd.store import secret
from memd.text import invisible

CALL_BYTES = 64 * 1024 * 1024  # that one call reads
CALL_FILES = 20_000  # that one call looks at
FOLDER_ENTRIES = 10_000  # of a folder; more are not listed
_WHOLE_BYTES = 4 * 1024 * 1024  # a file up to this size is searched for credentials as a whole
_DEPTH = 24  # levels of folders below the one that is walked
_CHARACTERS_AT_ONCE = 64 * 1024  # since a search blocks other threads until its end

_TOO_MANY_BYTES = f"one call reads at most {CALL_BYTES // 1024 // 1024} MB"
_TOO_LATE = "the time for this call is over"
_A_FOLDER, _NO_FOLDER = "a folder", "no folder"


class Meter:
    """Counts the bytes and files that a call reads; ``over`` says whether its time is up.

    Each count yields to requests and checks the time. Raises LimitError.
    """

    def __init__(self, over: Callable[[], bool], files: int = CALL_FILES) -> None:
        self._over = over
        self._most_files = files
        self._bytes = 0  # read so far
        self._files = 0  # counted so far

    def tick(self) -> None:
        """Yield to requests and check the time. Raises LimitError."""
        yield_to_requests()
        if self._over():
            raise LimitError(_TOO_LATE)

    def count_bytes(self, size: int) -> None:
        """Count some bytes."""
        self._bytes += size
        if self._bytes > CALL_BYTES:
            raise LimitError(_TOO_MANY_BYTES)
        self.tick()

    def count_files(self, files: int = 1) -> None:
        """Count some files."""
        self._files += files
        if self._files > self._most_files:
            what = f"one call looks at {self._most_files} files at most"
            raise LimitError(what)
        self.tick()


class FileEntry(Struct, frozen=True):
    """A file or folder: the path shown to the model, its place, size in bytes, mtime in ns."""

    shown: str
    place: Place
    folder: bool
    size: int
    mtime_ns: int

    @property
    def name(self) -> str:
        """The last part of the shown path."""
        return self.shown.rstrip("/").rpartition("/")[2]


class TextPiece:
    """Whole lines of a file, as they are (``raw``) and as they may be shown (``text``)."""

    def __init__(self, raw: str, *, foreign: bool) -> None:
        self.raw = raw
        self._foreign = foreign

    @cached_property
    def text(self) -> str:
        """The lines without credentials and with invisible characters spelled out."""
        text = secret.blank(self.raw) if self._foreign else self.raw
        return "".join(_visible(text))

    def lines(self) -> list[str]:
        """Return the lines that may be shown, without their ends."""
        return self.text.removesuffix("\n").split("\n") if self.raw else []

    def count(self) -> int:
        """Return the number of lines."""
        return self.raw.count("\n") + bool(self.raw and not self.raw.endswith("\n"))


def _visible(text: str) -> Iterator[str]:
    """Yield a text in parts with invisible characters spelled out, yielding to requests."""
    for start in range(0, len(text), _CHARACTERS_AT_ONCE):
        yield_to_requests()
        yield invisible.spelled_out(text[start : start + _CHARACTERS_AT_ONCE])


class AgentView:
    """The files of the roots as one tool call sees them, including the run's changes.

    ``folders`` has the open roots by their real path; a root without one is empty. ``written`` maps
    names in the memory directory to the run's new content, ``None`` if it removed the file.
    ``taken_in`` maps the names that the run has read there to the content that it keeps seeing.
    """

    def __init__(
        self,
        roots: tuple[Root, ...],
        folders: Mapping[str, Confined],
        written: Mapping[str, bytes | None],
        taken_in: Mapping[str, bytes | None],
        *,
        meter: Meter,
        now: float,
    ) -> None:
        self.roots = roots
        self.meter = meter
        self.now = now
        self._folders = folders
        self._written = written
        self._taken_in = taken_in
        self.read: set[FileEntry] = set()  # the files whose text this call has read

    def entry(self, path: str) -> FileEntry:
        """Return the file or folder at a path. Raises NotReachableError and PathMissingError."""
        result = self._entry(path, places.locate(path, self.roots))
        if result is None:
            raise PathMissingError(path)
        return result

    def file(self, path: str) -> FileEntry:
        """Return the file at a path; raises WrongKindError as well."""
        result = self.entry(path)
        if result.folder:
            raise WrongKindError(path, _A_FOLDER)
        return result

    def children(self, folder: FileEntry) -> list[FileEntry]:
        """Return a folder's visible entries, by name. Raises WrongKindError and LimitError."""
        if not folder.folder:
            raise WrongKindError(folder.shown, _NO_FOLDER)
        place = folder.place
        result: dict[str, FileEntry] = {}
        for name in self._entry_names(place):
            self.meter.tick()
            child = self._child(folder, name)
            if child is not None:
                result[name] = child
        self.meter.count_files(len(result) + 1)
        return [result[name] for name in sorted(result)]

    def walk(self, top: FileEntry) -> Iterator[FileEntry]:
        """Yield ``top`` and, if it is a folder, all below it. Raises LimitError."""
        stack = [(0, top)]
        while stack:
            level, entry = stack.pop()
            yield entry
            if entry.folder and level < _DEPTH:
                stack += [(level + 1, child) for child in reversed(self.children(entry))]

    def pieces(self, entry: FileEntry) -> Iterator[TextPiece]:
        """Yield a file's text, in whole lines. Raises LimitError."""
        place = entry.place
        self.read.add(entry)
        in_memory = self._run_content(place)
        if in_memory is not None:
            yield TextPiece(decode(in_memory), foreign=False)
            return
        is_foreign = place.root.kind != MEMORY
        chunks: list[bytes] = []  # of a file that is searched for credentials as a whole
        for chunk in self._chunks(entry):
            self.meter.count_bytes(len(chunk))
            if entry.size <= _WHOLE_BYTES:
                chunks.append(chunk)
            else:
                yield TextPiece(decode(chunk), foreign=is_foreign)
        if chunks:
            yield TextPiece(decode(b"".join(chunks)), foreign=is_foreign)

    def _run_content(self, place: Place) -> bytes | None:
        """Return the content of a memory that the run wrote or read, else ``None``."""
        if place.root.kind != MEMORY:
            return None
        return self._written.get(place.name, self._taken_in.get(place.name))

    def _chunks(self, entry: FileEntry) -> Iterator[bytes]:
        """Yield a file's bytes. Raises NotReachableError where ``Confined`` refuses the file."""
        self.meter.count_files()
        folder = self._folders[entry.place.root.real]
        try:
            yield from folder.pieces(entry.place.name) or ()
        except MemdError as error:
            raise NotReachableError(entry.shown, error.sentence.rstrip(".")) from error

    def _entry_names(self, place: Place) -> list[str]:
        """Return the names in a folder on the disk, with those that the run added to it."""
        folder = self._folders.get(place.root.real)
        entries = folder.entries(place.name, FOLDER_ENTRIES) if folder else []
        names = [entry.name for entry in entries]
        if place.root.kind == MEMORY:
            prefix = f"{place.name}/" if place.name else ""
            below = [path[len(prefix) :] for path in self._written if path.startswith(prefix)]
            names += {path.split("/")[0] for path in below} - set(names)
        return names

    def _child(self, folder: FileEntry, name: str) -> FileEntry | None:
        """Return an entry of a folder by its name, ``None`` if it may not be read or is missing."""
        shown = f"{folder.shown.rstrip('/')}/{name}" if folder.shown else name
        try:
            place = places.locate(f"{folder.place.path}/{name}", self.roots)
            return self._entry(shown, place)
        except NotReachableError:
            return None

    def _entry(self, shown: str, place: Place) -> FileEntry | None:
        """Return the file or folder at a place, ``None`` without one. Raises NotReachableError."""
        folder = self._folders.get(place.root.real)
        if place.root.kind == MEMORY:
            written_entry = self._written_entry(shown, place)
            if written_entry is not None:
                return written_entry
            if place.name in self._written:  # the run removed it
                return None
            if folder is None and not place.name:  # nobody wrote here yet
                return FileEntry(shown, place, folder=True, size=0, mtime_ns=0)
        try:
            status = folder.inspect(place.name) if folder else None
        except MemdError as error:
            raise NotReachableError(shown, error.sentence.rstrip(".")) from error
        if status is None:
            return None
        return FileEntry(shown, place, status.folder, status.size, status.mtime_ns)

    def _written_entry(self, shown: str, place: Place) -> FileEntry | None:
        """Return the file, or the folder of files, that the run wrote at a place, else ``None``."""
        now = int(self.now * 1_000_000_000)
        content = self._written.get(place.name)
        if content is not None:
            return FileEntry(shown, place, folder=False, size=len(content), mtime_ns=now)
        prefix = f"{place.name}/"
        contents = [content for path, content in self._written.items() if path.startswith(prefix)]
        if place.name and any(content is not None for content in contents):
            return FileEntry(shown, place, folder=True, size=0, mtime_ns=now)
        return None


def open_roots(roots: tuple[Root, ...]) -> dict[str, Confined]:
    """Return the opened roots by their real path, which the caller closes; skip unusable ones."""
    result: dict[str, Confined] = {}
    for real in dict.fromkeys(root.real for root in roots):  # two roots may be one folder
        try:
            result[real] = Confined(real)
        except MemdError:
            continue  # a root that is not there, or not ours, is empty
    return result


def root_of(kind: str, path: str) -> Root:
    """Return the root of a folder, with its real path from the file system."""
    plain = path.rstrip("/") or "/"
    return Root(kind, plain, os.path.realpath(plain))

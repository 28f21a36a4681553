"""What a model may look at: the roots of its run, with what it wrote itself on top. Blocks.

Rules of this file
- Every path goes through ``places.locate``, also those that a listing finds.
- What comes from a project or a transcript is shown with its credentials blanked out. They are
  blanked in whole files and before anything is selected, so that neither half a line nor a
  search's answer tells them.
- Characters that show nothing are made visible: text hidden in them would reach the model alone.
- Each call has a number of bytes, files and seconds (``Meter``).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from memd.agent import places
from memd.agent.places import MEMORY, Place, Root
from memd.agent.refusals import LimitError, NotReachableError, PathMissingError, WrongKindError
from memd.core.errors import MemdError
from memd.core.text import decode
from memd.core.yielding import yield_to_requests
from memd.documents import secrets
from memd.files.confined import Confined
from memd.text import invisible

CALL_BYTES = 64 * 1024 * 1024
CALL_FILES = 20_000
FOLDER_ENTRIES = 10_000
WHOLE_BYTES = 4 * 1024 * 1024  # a file up to this is looked at for credentials in one piece
_DEPTH = 24
_AT_ONCE = 64 * 1024  # characters; a search keeps the interpreter until its end

_TOO_MANY_BYTES = f"one call reads at most {CALL_BYTES // 1024 // 1024} MB"
_TOO_LATE = "the time for this call is over"
_A_FOLDER, _NO_FOLDER = "a folder", "no folder"


class Meter:
    """What one call has used of its ``files``; ``over`` says whether its time is up.

    Whenever something is counted prompts go first. Raises LimitError.
    """

    def __init__(self, over: Callable[[], bool], files: int = CALL_FILES) -> None:
        self._over = over
        self._most = files
        self._bytes = 0
        self._files = 0

    def tick(self) -> None:
        """Let prompts go first, and look at the time."""
        yield_to_requests()
        if self._over():
            raise LimitError(_TOO_LATE)

    def read(self, size: int) -> None:
        """Count some bytes."""
        self._bytes += size
        if self._bytes > CALL_BYTES:
            raise LimitError(_TOO_MANY_BYTES)
        self.tick()

    def looked(self, files: int = 1) -> None:
        """Count some files."""
        self._files += files
        if self._files > self._most:
            what = f"one call looks at {self._most} files at most"
            raise LimitError(what)
        self.tick()


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or folder: how the model named it, where it is, its size in bytes, mtime in ns."""

    shown: str
    place: Place
    folder: bool
    size: int
    mtime_ns: int

    @property
    def name(self) -> str:
        """The last part of how it is shown."""
        return self.shown.rstrip("/").rpartition("/")[2]


class TextPiece:
    """Whole lines of a file, as they are (``raw``) and as they may be shown (``text``)."""

    def __init__(self, raw: str, *, foreign: bool) -> None:
        self.raw = raw
        self._foreign = foreign

    @cached_property
    def text(self) -> str:
        """The lines without credentials and with everything visible."""
        text = secrets.blank(self.raw) if self._foreign else self.raw
        return "".join(_visible(text))

    def lines(self) -> list[str]:
        """Return the lines that may be shown, without their ends."""
        return self.text.removesuffix("\n").split("\n") if self.raw else []

    def count(self) -> int:
        """Return the number of lines."""
        return self.raw.count("\n") + bool(self.raw and not self.raw.endswith("\n"))


def _visible(text: str) -> Iterator[str]:
    """Yield a text in parts, with what shows nothing spelled out; between them prompts go first."""
    for start in range(0, len(text), _AT_ONCE):
        yield_to_requests()
        yield invisible.spelled_out(text[start : start + _AT_ONCE])


class AgentView:
    """The roots as one call sees them.

    ``folders`` are the open roots by their real path; a root without one is empty. ``written``
    maps names in the memory directory to new text, ``None`` where the file is gone; ``taken_in``
    maps what the run has read there to the text that it stays for the run.
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
        self.read: set[FileEntry] = set()  # whose text this call has seen

    def entry(self, path: str) -> FileEntry:
        """Return what stands at a path. Raises NotReachableError and PathMissingError."""
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
        """Return what may be seen in a folder, by name. Raises WrongKindError and LimitError."""
        if not folder.folder:
            raise WrongKindError(folder.shown, _NO_FOLDER)
        place = folder.place
        result: dict[str, FileEntry] = {}
        for seen in self._listed(place):
            self.meter.tick()
            child = self._child(folder, seen)
            if child is not None:
                result[seen] = child
        self.meter.looked(len(result) + 1)
        return [result[name] for name in sorted(result)]

    def walk(self, top: FileEntry, depth: int = _DEPTH) -> Iterator[tuple[int, FileEntry]]:
        """Yield a file, or a folder with all below it, each with its depth. Raises LimitError."""
        waiting = [(0, top)]
        while waiting:
            level, entry = waiting.pop()
            yield level, entry
            if entry.folder and level < min(depth, _DEPTH):
                waiting += [(level + 1, child) for child in reversed(self.children(entry))]

    def pieces(self, entry: FileEntry, start: int = 0) -> Iterator[TextPiece]:
        """Yield a file's text from a byte on, in whole lines. Raises LimitError."""
        place = entry.place
        self.read.add(entry)
        own = self._known(place)
        if own is not None:
            yield TextPiece(decode(own[start:]), foreign=False)
            return
        foreign = place.root.kind != MEMORY
        gathered: list[bytes] = []
        for chunk in self._chunks(entry, start):
            self.meter.read(len(chunk))
            if entry.size <= WHOLE_BYTES:
                gathered.append(chunk)
            else:
                yield TextPiece(decode(chunk), foreign=foreign)
        if gathered:
            yield TextPiece(decode(b"".join(gathered)), foreign=foreign)

    def _known(self, place: Place) -> bytes | None:
        """Return what a memory is to this run, ``None`` where only the disk says it."""
        if place.root.kind != MEMORY:
            return None
        return self._written.get(place.name, self._taken_in.get(place.name))

    def _chunks(self, entry: FileEntry, start: int) -> Iterator[bytes]:
        """Yield bytes; what ``confined`` refuses becomes words for the model."""
        self.meter.looked()
        try:
            chunks = self._folders[entry.place.root.real].pieces(entry.place.name, start)
            yield from chunks or ()
        except MemdError as error:
            raise NotReachableError(entry.shown, error.sentence.rstrip(".")) from error

    def _listed(self, place: Place) -> list[str]:
        folder = self._folders.get(place.root.real)
        seen = folder.entries(place.name, FOLDER_ENTRIES) if folder else []
        listed = [item.name for item in seen]
        if place.root.kind == MEMORY:
            above = f"{place.name}/" if place.name else ""
            below = [path[len(above) :] for path in self._written if path.startswith(above)]
            listed += {path.split("/")[0] for path in below} - set(listed)
        return listed

    def _child(self, folder: FileEntry, name: str) -> FileEntry | None:
        shown = f"{folder.shown.rstrip('/')}/{name}" if folder.shown else name
        try:
            place = places.locate(f"{folder.place.path}/{name}", self.roots)
            return self._entry(shown, place)
        except NotReachableError:
            return None

    def _entry(self, shown: str, place: Place) -> FileEntry | None:
        if place.root.kind == MEMORY and (new := self._own(shown, place)) is not None:
            return new
        if place.root.kind == MEMORY and place.name in self._written:
            return None
        folder = self._folders.get(place.root.real)
        if folder is None and place.root.kind == MEMORY and not place.name:
            return FileEntry(shown, place, folder=True, size=0, mtime_ns=0)  # nobody wrote here yet
        try:
            seen = folder.inspect(place.name) if folder else None
        except MemdError as error:
            raise NotReachableError(shown, error.sentence.rstrip(".")) from error
        if seen is None:
            return None
        return FileEntry(shown, place, seen.folder, seen.size, seen.mtime_ns)

    def _own(self, shown: str, place: Place) -> FileEntry | None:
        """Return what the run itself has put at a place of the memory directory."""
        now = int(self.now * 1_000_000_000)
        content = self._written.get(place.name)
        if content is not None:
            return FileEntry(shown, place, folder=False, size=len(content), mtime_ns=now)
        above = f"{place.name}/"
        new = [text for path, text in self._written.items() if path.startswith(above)]
        if place.name and any(text is not None for text in new):
            return FileEntry(shown, place, folder=True, size=0, mtime_ns=now)
        return None


def open_roots(roots: tuple[Root, ...]) -> dict[str, Confined]:
    """Open the roots that are there, by their real path; the caller closes them."""
    result: dict[str, Confined] = {}
    for real in dict.fromkeys(root.real for root in roots):  # two ways may lead to one folder
        try:
            result[real] = Confined(real)
        except MemdError:
            continue  # a root that is not there, or not ours, is empty
    return result


def root_of(kind: str, path: str) -> Root:
    """Return a root for a folder as a caller spells it. Asks the file system where it is."""
    plain = path.rstrip("/") or "/"
    return Root(kind, plain, os.path.realpath(plain))

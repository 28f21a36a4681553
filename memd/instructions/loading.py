"""Collect the files of a view in the order of loading, and why others are not loaded. Pure.

Rules of this file
- A file is known by its real path and listed once. One that was not loaded when it was met first
  is loaded when it is met again where it may be
  (tests/instructions/test_claude.py::test_a_file_is_listed_once).
- What holds credentials, or leads out of the project without a yes, is never loaded, whatever
  links lead there (tests/instructions/test_hostile.py).
- Each file, folder and mention costs, and each has a bound. What is beyond it is a problem.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from memd.core import globs
from memd.core.names import is_text, printable
from memd.core.regex import PatternRefusedError
from memd.core.yielding import yield_to_requests
from memd.instructions.values import (
    FOLDER_ENTRIES,
    LISTED_FILES,
    LONG_CHARACTERS,
    TOUCHED_FILES,
    VIEW_CHARACTERS,
    DiskEntry,
    InstructionDisk,
    InstructionFile,
    Resolution,
    ViewRequest,
)

EXTERNAL = "it lies outside of the project, and nobody has allowed that"
MISSING = "there is no such file"
_CREDENTIALS = "it may hold credentials, and is never loaded"
_EXCLUDED = "it is excluded by instructions.exclude"
EMPTY = "it is empty"
_MOVED = "it was moved while it was read"
_FULL = f"the files before it have {VIEW_CHARACTERS:,} characters together"
_PATH_CHARACTERS = 1000  # of a path in a sentence
# Folders and files of credentials, keys, and what the system shows of processes and devices.
NEVER = re.compile(
    r"/\.(?:ssh|gnupg|aws|azure|kube|password-store|config/(?:gcloud|gh|memd))(?:/|\Z)"
    r"|/\.(?:docker/config|claude)\.json\Z"
    r"|/\.env[^/]*(?:/|\Z)"
    r"|/(?:\.netrc|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.git-credentials|\.htpasswd)\Z"
    r"|/(?:auth\.json|oauth_creds\.json|\.?credentials(?:\.(?:json|toml|ya?ml|xml))?)\Z"
    r"|/id_(?:rsa|dsa|ecdsa|ed25519)[^/]*\Z"
    r"|\.(?:pem|key|p12|pfx|ppk|jks|keystore|kdbx|gpg|asc)\Z"
    r"|\A/(?:proc|sys|dev)/",
    re.IGNORECASE,
)


Folders = tuple[str, ...]


@dataclass(slots=True)
class Loading:
    """Collects the files of one view, by real path. Not for several threads.

    ``within``, wherever it is asked for, are the folders that a file of the project may lie in
    unless the user allowed others; empty for a file of the user or the machine.
    """

    request: ViewRequest
    disk: InstructionDisk
    files: dict[str, InstructionFile] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    external: bool = False  # allowed, as in the request unless a view changes it
    full: bool = False
    _problems: dict[str, None] = field(default_factory=dict)
    _reals: dict[str, str] = field(default_factory=dict)
    _unreadable: set[str] = field(default_factory=set)
    _characters: int = 0
    _entries: int = 0
    _exclude: list[Callable[[str], bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.external = self.request.external
        for glob in self.request.exclude:
            try:
                # Without the first slash, so that "**/" matches from there on.
                self._exclude.append(globs.compiled(glob.removeprefix("/")))
            except PatternRefusedError as error:
                self.problem(glob, f"excludes nothing: {error.facts['why']}")

    def fetch(self, file: InstructionFile, within: Folders = (), why_not: str = "") -> str | None:
        """Return the text of a file that is to be loaded now, ``None`` if it is not.

        Why not is listed then, but for a file that is loaded already, and for one that is not there
        and that no other file names. ``why_not`` is a reason of the view's own.
        """
        yield_to_requests()
        real = self.real(file.path)
        known = self.files.get(real)
        if real in self._unreadable or (known and known.loaded):
            return None
        why = self._refusal(file, within) or why_not
        if (known and why) or (not known and self._is_full(file.path)):
            return None
        text = ""
        if why not in (_CREDENTIALS, _EXCLUDED):  # what is not there needs no yes
            read = self.disk.read(real)
            wrong = MISSING if read.missing else read.why_not or self._refusal_of_text(read.text)
            wrong = wrong if wrong or read.real == real else _MOVED
            if wrong:
                self._unreadable.add(real)
            text, why = read.text, wrong if wrong == MISSING else why or wrong
        if not why:
            return text
        if why != MISSING or file.included_by:
            self.refuse(file, why)
        return None

    def load(self, file: InstructionFile, text: str) -> None:
        """Load a file that was fetched; ``text`` is what a model gets of it."""
        self.files.pop(self.real(file.path), None)  # it is listed where it is loaded
        self.fill(file, text)

    def fill(self, file: InstructionFile, text: str) -> None:
        """Set the text of a loaded file, which stays where it is listed."""
        self.files[self.real(file.path)] = replace(file, chars=len(text))
        self.texts[file.path] = text
        self._characters += len(text)
        if len(text) > LONG_CHARACTERS:
            self.problem(file.path, f"has {len(text):,} characters; {LONG_CHARACTERS:,} are many")

    def refuse(self, file: InstructionFile, why: str) -> None:
        """List a file as not loaded, unless it is listed already."""
        refused = replace(file, loaded=False, why_not=why)
        self.files.setdefault(self.real(file.path), refused)

    def file(self, path: str) -> InstructionFile | None:
        """Return what is listed under a path, by whatever path it was met."""
        return self.files.get(self.real(path))

    def real(self, path: str) -> str:
        """Return the real path of a path."""
        real = self._reals.get(path)
        if real is None:
            self._reals[path] = real = self.disk.real(path)
        return real

    def problem(self, path: str, why: str) -> None:
        """Name a problem of a file, once; ``why`` is what is wrong with it."""
        self._problems[f"{printable(path, _PATH_CHARACTERS)}: {why}"] = None

    def walk(self, folder: str, suffix: str, within: Folders = ()) -> Iterator[str]:
        """Yield the paths of files below a folder: those of a folder by name, then its folders'.

        Links are followed, circles end.
        """
        walked: set[str] = set()
        folders = [(folder, self.real(folder))]
        while folders:
            path, real = folders.pop()
            if real in walked:
                continue
            walked.add(real)
            if self._is_outside(real, within):
                self.problem(path, "leads out of the project, and is not followed")
                continue
            below = []
            for entry in self._listed(path):
                inner = f"{path}/{entry.name}"
                self._reals[inner] = entry.real
                if entry.folder:
                    below.append((inner, entry.real))
                elif entry.name.endswith(suffix):
                    yield inner
            folders += reversed(below)

    def touched(self) -> Iterator[str]:
        """Yield the paths of the files that were touched, up to the bound."""
        for number, name in enumerate(self.request.touched):
            path = posixpath.normpath(posixpath.join(self.request.cwd, name))
            if number >= TOUCHED_FILES:
                why = f"and later touched files are passed over: {TOUCHED_FILES} are before it"
                self.problem(path, why)
                return
            yield_to_requests()
            yield path

    def result(self) -> Resolution:
        """Return what was collected."""
        files = tuple(self.files.values())
        external = tuple(file.path for file in files if file.why_not == EXTERNAL)
        return Resolution(files, self.texts, tuple(self._problems), external)

    def _refusal(self, file: InstructionFile, within: Folders) -> str:
        """Return why a file is not even read, "" if it may be."""
        real = self.real(file.path)
        if NEVER.search(file.path) or NEVER.search(real):
            return _CREDENTIALS
        both = (file.path, real) if file.scope != "managed" else ()
        if any(matches(path[1:]) for matches in self._exclude for path in both):
            return _EXCLUDED
        return EXTERNAL if self._is_outside(real, within) else ""

    def _refusal_of_text(self, text: str) -> str:
        """Return why a text is not loaded: it is empty or the view is full; "" if it is loaded."""
        if not text.strip("\ufeff \t\r\n"):
            return EMPTY
        return _FULL if self._characters + len(text) > VIEW_CHARACTERS else ""

    def _is_outside(self, real: str, within: Folders) -> bool:
        """Return whether a real path is outside the folders that includes may lead to."""
        if not within or self.external:
            return False
        return not any(is_below(real, folder) for folder in within)

    def _is_full(self, path: str) -> bool:
        """Return whether no more files are listed; name the first that is not."""
        if not self.full and len(self.files) >= LISTED_FILES:
            self.full = True
            self.problem(path, f"and later files are passed over: {LISTED_FILES:,} are listed")
        return self.full

    def _listed(self, folder: str) -> Iterator[DiskEntry]:
        """Yield what is in a folder and has a name that can be shown, up to the bound."""
        if self._entries >= FOLDER_ENTRIES or self.full:
            return
        entries = self.disk.entries(folder)
        self._entries += len(entries)
        if self._entries >= FOLDER_ENTRIES:
            self.problem(folder, f"is not walked to its end: {FOLDER_ENTRIES:,} entries are enough")
        for entry in entries:
            if is_text(entry.name):
                yield entry
            else:
                self.problem(f"{folder}/{entry.name}", "has a name that is not UTF-8")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or lies somewhere in it; both are absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def folders_down(top: str, folder: str) -> Iterator[str]:
    """Yield the folders from one to another that lies in it, both included."""
    yield top
    at = len(top.rstrip("/")) + 1
    while 0 < at <= len(folder) and folder != top:
        end = folder.find("/", at)
        yield folder if end < 0 else folder[:end]
        at = end + 1


def nearest(disk: InstructionDisk, folder: str, markers: Iterable[str]) -> str:
    """Return the folder itself or the nearest one above it that holds one of some names.

    Where none does it is the folder itself. A broken link counts: no link makes a project larger.
    """
    for each in reversed(tuple(folders_down("/", folder))):
        if any(disk.stamp(posixpath.join(each, name)) for name in markers):
            return each
    return folder

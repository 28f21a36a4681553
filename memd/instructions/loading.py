"""Collect instruction files in the order of loading, with the reasons against others. Pure.

Rules of this file
- A file is identified by its real path and listed once. If it was not loaded at first, it may be
  loaded when it is found again (tests/net/test_instruction_files.py).
- A file that may hold credentials is never loaded. Neither is a file outside of the project, unless
  the user allowed that. Links do not change this (tests/instructions/test_hostile.py).
- The numbers of files, folders and mentions have limits. A problem says that one is reached.
"""

import posixpath
import re
from collections.abc import Callable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import globs
from memd.base.errors import Invalid
from memd.base.instruction_files import InstructionFile
from memd.base.names import is_text, printable
from memd.base.yielding import yield_to_requests
from memd.instructions.values import (
    FOLDER_ENTRIES,
    LISTED_FILES,
    LOADED_CHARACTERS,
    LONG_CHARACTERS,
    TOUCHED_FILES,
    DiskEntry,
    FilesRequest,
    InstructionDisk,
    Resolution,
)

EXTERNAL = "it lies outside of where the session works, and nobody has allowed that"
MISSING = "there is no such file"
_CREDENTIALS = "it may hold credentials, and is never loaded"
_EXCLUDED = "it is excluded by claudeMdExcludes"
EMPTY = "it is empty"
_MOVED_MEANWHILE = "it was moved while it was read"
_IS_FULL = f"the files before it have {LOADED_CHARACTERS:,} characters together"
_PATH_CHARACTERS = 1000  # of a path in a sentence
# Folders and files of credentials and keys, and the system's files about processes and devices.
NEVER = (
    r"(?i)/\.(?:ssh|gnupg|aws|azure|kube|password-store|config/(?:gcloud|gh|memd))(?:/|\Z)"
    r"|/\.(?:docker/config|claude)\.json\Z"
    r"|/\.env[^/]*(?:/|\Z)"
    r"|/(?:\.netrc|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.git-credentials|\.htpasswd)\Z"
    r"|/(?:auth\.json|oauth_creds\.json|\.?credentials(?:\.(?:json|toml|ya?ml|xml))?)\Z"
    r"|/id_(?:rsa|dsa|ecdsa|ed25519)[^/]*\Z"
    r"|\.(?:pem|key|p12|pfx|ppk|jks|keystore|kdbx|gpg|asc)\Z"
    r"|\A/(?:proc|sys|dev)/"
)


Folders = tuple[str, ...]


class Loading(Struct):
    """Collects the files of one reading. Only for one thread.

    ``files`` are the listed files by real path, and ``texts`` the texts of loaded files by path.
    ``within`` is a parameter of several methods: the folders in which a file of the project must
    lie unless the user allowed others. It is empty for a file of the user or the machine.
    """

    request: FilesRequest
    disk: InstructionDisk
    files: dict[str, InstructionFile] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    external: bool = False  # whether files may lie outside
    full: bool = False  # whether the list has so many files that no more are added
    _problems: dict[str, None] = field(default_factory=dict)  # sentences, each once
    _reals: dict[str, str] = field(default_factory=dict)  # real paths by path
    _unreadable: set[str] = field(default_factory=set)  # real paths
    _characters: int = 0  # of all loaded texts
    _entry_count: int = 0  # of all folders that were walked
    _exclusions: list[Callable[[str], bool]] = field(default_factory=list)  # tests of paths

    def __post_init__(self) -> None:
        self.external = self.request.external
        for glob in self.request.exclude:
            try:
                # Without the first slash, so that "**/" matches from there on.
                self._exclusions.append(globs.compiled(glob.removeprefix("/")))
            except Invalid as error:
                self.problem(glob, f"excludes nothing: {error.facts['why']}")

    def fetch(self, file: InstructionFile, within: Folders = (), why_not: str = "") -> str | None:
        """Return the text of a file that is to be loaded now, ``None`` if it is not.

        The reason against it is listed, except for a file that is loaded already, and for a missing
        one that no other file includes. ``why_not`` is another reason against it, "" for none.
        """
        yield_to_requests()
        real = self.real(file.path)
        known = self.files.get(real)
        if real in self._unreadable or (known and known.loaded):
            return None
        why = self._reason_against(file, within) or why_not
        if (known and why) or (not known and self._is_full(file.path)):
            return None
        text = ""
        if why not in (_CREDENTIALS, _EXCLUDED):  # such files are not even read
            text, why_unreadable = self._read(real)
            # For a missing file no other reason is listed: nobody need allow it.
            why = MISSING if why_unreadable == MISSING else why or why_unreadable
        if not why:
            return text
        if why != MISSING:
            self.refuse(file, why)
        elif file.included_by:
            self.refuse(file, why)
            self.problem(file.included_by, f"includes {printable(file.path)}: {MISSING}")
        return None

    def _read(self, real: str) -> tuple[str, str]:
        """Return the text of a file, and why it cannot be loaded, "" if it can."""
        result = self.disk.read(real)
        if result.missing:
            why = MISSING
        else:
            why = result.why_not or self._reason_against_text(result.text)
            if not why and result.real != real:
                why = _MOVED_MEANWHILE
        if why:
            self._unreadable.add(real)
        return result.text, why

    def load(self, file: InstructionFile, text: str) -> None:
        """Load a file that was fetched; ``text`` is the text that a model gets."""
        real = self.real(file.path)
        self.files.pop(real, None)  # it is listed at the place of its loading
        self.files[real] = replace(file, chars=len(text))
        self.texts[file.path] = text
        self._characters += len(text)
        if len(text) > LONG_CHARACTERS:
            self.problem(file.path, f"has {len(text):,} characters; {LONG_CHARACTERS:,} are many")

    def refuse(self, file: InstructionFile, why: str) -> None:
        """List a file as not loaded, unless it is listed already."""
        refused = replace(file, loaded=False, why_not=why)
        self.files.setdefault(self.real(file.path), refused)

    def file(self, path: str) -> InstructionFile | None:
        """Return the listed file with the same real path as ``path``, ``None`` if there is none."""
        return self.files.get(self.real(path))

    def real(self, path: str) -> str:
        """Return the real path of a path."""
        real = self._reals.get(path)
        if real is None:
            self._reals[path] = real = self.disk.real(path)
        return real

    def problem(self, path: str, why: str) -> None:
        """Add a problem of a file, if it is new; ``why`` is the rest of the sentence."""
        self._problems[f"{printable(path, _PATH_CHARACTERS)}: {why}"] = None

    def walk(self, folder: str, suffix: str, within: Folders = ()) -> Iterator[str]:
        """Yield the paths of the files below a folder whose names end with ``suffix``.

        The files of a folder come by name, then those of its folders. Links are followed, but each
        real folder is walked only once.
        """
        walked: set[str] = set()  # real paths
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
            for entry in self._entries_of(path):
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

    def _reason_against(self, file: InstructionFile, within: Folders) -> str:
        """Return why a file may not be loaded whatever its text is, "" if it may be."""
        real = self.real(file.path)
        if re.search(NEVER, file.path) or re.search(NEVER, real):
            return _CREDENTIALS
        # The files of the machine's policy cannot be excluded.
        paths = (file.path, real) if file.scope != "managed" else ()
        if any(is_excluded(path[1:]) for is_excluded in self._exclusions for path in paths):
            return _EXCLUDED
        return EXTERNAL if self._is_outside(real, within) else ""

    def _reason_against_text(self, text: str) -> str:
        """Return why a text is not loaded: it is empty or too long beside others; "" if it is."""
        if not text.strip("\ufeff \t\r\n"):
            return EMPTY
        return _IS_FULL if self._characters + len(text) > LOADED_CHARACTERS else ""

    def _is_outside(self, real: str, within: Folders) -> bool:
        """Return whether a real path is outside the folders that includes may lead to."""
        if not within or self.external:
            return False
        return not any(is_below(real, folder) for folder in within)

    def _is_full(self, path: str) -> bool:
        """Return whether no more files are listed; a problem names the first that is not."""
        if not self.full and len(self.files) >= LISTED_FILES:
            self.full = True
            self.problem(path, f"and later files are passed over: {LISTED_FILES:,} are listed")
        return self.full

    def _entries_of(self, folder: str) -> Iterator[DiskEntry]:
        """Yield the entries of a folder whose names are UTF-8, up to the limit."""
        if self._entry_count >= FOLDER_ENTRIES or self.full:
            return
        entries = self.disk.entries(folder)
        self._entry_count += len(entries)
        if self._entry_count >= FOLDER_ENTRIES:
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
    """Yield the folders from ``top`` down to ``folder``, which lies in it, both included."""
    yield top
    start = len(top.rstrip("/")) + 1
    while 0 < start <= len(folder) and folder != top:
        end = folder.find("/", start)
        yield folder if end < 0 else folder[:end]
        start = end + 1

"""Removing text from memd's own files for good. Blocks; the caller holds the directories' locks.

A purge never changes live files, which belong to people. It removes text from the journal, jobs,
proposals, ledgers and the log, and deletes state files that were put aside. Whoever owns a
cache (headers, indices, vectors) deletes it.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection
from contextlib import suppress
from glob import escape, glob
from typing import Any

from msgspec import Struct

from memd.base import limits, regex
from memd.base.errors import MemdError, WrongParameterError
from memd.base.text import decode, sha256
from memd.state.changes import PUT_ASIDE, Journal, LiveFile, Purge, PurgedText
from memd.state.database import Database
from memd.store.reading import DirectoryReader, MemoryNotFoundError
from memd.store.replaced import Replaced
from memd.store.undo import ChangeNotFoundError

PURGED = "[purged]"  # what a purged text is replaced by
_LEAST_CHARACTERS = 4  # of a pattern: a shorter one stands in nearly every text
_HASH = re.compile("[0-9a-f]{64}")
_LOG_FILES = "memd.log*"  # in the folder of the state file
_NOT_EXACTLY_ONE = "give exactly one of change, path and pattern"


class PurgeRefusedError(WrongParameterError):
    """The request does not name what to purge, or its pattern would match nearly everything."""

    def __init__(self, why: str) -> None:
        super().__init__(f"nothing was purged: {why}", why=why)


class Pattern:
    """A text to search for, ignoring upper and lower case, or a regular expression.

    Raises Invalid and PurgeRefusedError.
    """

    def __init__(self, text: str, *, is_regex: bool = False) -> None:
        if len(text.strip()) < _LEAST_CHARACTERS:
            why = f"the pattern has fewer than {_LEAST_CHARACTERS} characters"
            raise PurgeRefusedError(why)
        # The plain text, and the text as JSON and as YAML write it within quotes.
        forms = dict.fromkeys((text, json.dumps(text)[1:-1], text.replace("'", "''")))
        any_form = "|".join(re.escape(form) for form in forms)
        if is_regex:
            self._regex = regex.foreign(text, ignore_case=True)
        else:
            self._regex = regex.own(f"(?i){any_form}")
        if self._regex.search("") is not None:
            why = "the pattern matches the empty text"
            raise PurgeRefusedError(why)

    def is_in_body(self, body: bytes) -> bool:
        """Say whether the pattern matches in the bytes of a file."""
        return self._regex.search(decode(body)) is not None

    def is_in_text(self, text: str) -> bool:
        """Say whether the pattern matches in a text."""
        return self._regex.search(_encodable(text)) is not None

    def cleaned_text(self, text: str) -> str:
        """Return a text with "[purged]" for each match; JSON text is cleaned string by string."""
        may_be_json = text[:1] in {"{", "[", '"'}
        if may_be_json:
            with suppress(ValueError, RecursionError):
                value = json.loads(text)
                clean = self._cleaned_value(value)
                return text if clean == value else json.dumps(clean)
        # A hash stays, since it names a body of the journal.
        if _HASH.fullmatch(text) or not self.is_in_text(text):
            return text
        return str(self._regex.sub(PURGED, _encodable(text)))

    def blanked_body(self, body: bytes) -> bytes:
        """Return a body with each match replaced by stars of the same length in bytes."""
        matches: list[Any] = list(self._regex.finditer(decode(body)))
        # The longest first: a shorter match may be a part of it.
        for text in sorted({match.group() for match in matches}, key=len, reverse=True):
            part = text.encode("utf-8", "surrogateescape")
            body = body.replace(part, b"*" * len(part))
        return body

    def _cleaned_value(self, value: Any) -> Any:
        """Return a JSON value with its strings, keys included, cleaned."""
        if isinstance(value, str):
            return self.cleaned_text(value)
        if isinstance(value, list):
            return [self._cleaned_value(item) for item in value]
        if isinstance(value, dict):
            return {self.cleaned_text(k): self._cleaned_value(item) for k, item in value.items()}
        return value


class PurgeRequest(Struct, frozen=True):
    """What is to be purged: one change set, all versions of one file, or a pattern."""

    directory: str
    change: str = ""
    path: str = ""
    pattern: Pattern | None = None


class PurgedFile(Struct, frozen=True):
    """A file of the state directory that was removed or blanked, and the SHA-256 it had."""

    path: str
    hash: str


class Purged(Struct, frozen=True):
    """What was removed, or with ``dry_run`` would be.

    ``live`` are files of the memory directories that still have the text in their body or name;
    only their owner changes them. ``running`` counts jobs: each may still write down what it had
    read, so purge again when they have ended.
    """

    dry_run: bool
    bodies: tuple[PurgedText, ...]
    texts: dict[str, int]  # by table of the state file: rows that had the text
    files: tuple[PurgedFile, ...]
    live: tuple[str, ...]
    running: int


class Purger:
    """Purges the journal, jobs, ledgers and log; ``reading`` reads live files.

    ``replaced`` are files beside the memories that a program may still be writing to. They are
    not removed, and are listed among the live ones.
    """

    def __init__(self, database: Database, reading: DirectoryReader, replaced: Replaced) -> None:
        self._replaced = replaced
        self._purge = Purge(database)
        self._journal = Journal(database)
        self._reading = reading
        self._state_folder = os.path.dirname(database.path)
        self._state_path = database.path

    def run(self, request: PurgeRequest, *, dry_run: bool) -> Purged:
        """Remove the requested text; with ``dry_run`` only return what would be removed.

        Raises ChangeNotFoundError, MemoryNotFoundError, StateUnusableError and OSError. What was
        removed before an error stays removed; the same call again removes the rest.
        """
        pattern, purged_hashes = request.pattern, self._purged_hashes(request)
        bodies = self._purge.removable_texts(purged_hashes)
        clean_text = pattern.cleaned_text if pattern else _unchanged
        texts = self._purge.rows_to_clean(clean_text) if pattern else {}
        live = self._live_paths(pattern, purged_hashes)
        files = self._remove_copies(dry_run=dry_run)
        if pattern:
            files += self._blank_logs(pattern, dry_run=dry_run)
        if not dry_run:
            self._purge.remove([body.hash for body in bodies], clean_text)
            self._reading.forget()  # cached headers may hold the text as well
        return Purged(dry_run, bodies, texts, tuple(files), live, self._purge.running_jobs())

    def _purged_hashes(self, request: PurgeRequest) -> frozenset[str]:
        """Return the hashes of the journal's texts that a request covers.

        Raises ChangeNotFoundError, and MemoryNotFoundError for a path that never was a memory.
        """
        if request.pattern:
            return self._purge.hashes_of_bodies(request.pattern.is_in_body)
        if request.change:
            record = self._journal.change(request.directory, request.change, refused=True)
            if record is None:
                raise ChangeNotFoundError(request.change)
            return self._purge.hashes_of_change(record.number)
        hashes = self._purge.hashes_of_path(request.directory, request.path)
        if not hashes:
            raise MemoryNotFoundError(request.path)
        return hashes

    def _live_paths(
        self, pattern: Pattern | None, purged_hashes: Collection[str]
    ) -> tuple[str, ...]:
        """Return the absolute paths of live and replaced files that still have the purged text."""
        live_paths = [
            f"{file.directory}/{file.path}"
            for file in self._purge.files()
            if self._has_purged_text(file, pattern, purged_hashes)
        ]
        replaced_paths = [
            path
            for path in self._replaced.paths()
            if _body_has_purged_text(path, pattern, purged_hashes)
        ]
        return (*live_paths, *replaced_paths)

    def _has_purged_text(
        self, file: LiveFile, pattern: Pattern | None, purged_hashes: Collection[str]
    ) -> bool:
        """Say whether a live file has the purged text in its body or its path.

        ``purged_hashes`` are the hashes of the journal's texts that have the purged text.
        ``pattern`` is ``None`` if a change or a file was purged: then only the hashes count.
        """
        if file.hash in purged_hashes:
            return True
        if pattern is None:
            return False
        if pattern.is_in_text(f"{file.directory}/{file.path}"):
            return True
        if file.stored:  # the journal has its text, so its hash would be among ``purged_hashes``
            return False
        try:
            content = self._reading.live_bytes(file.directory, file.path)
        except (OSError, MemdError):
            return False  # what cannot be read cannot be searched
        return content is not None and pattern.is_in_body(content)

    def _remove_copies(self, *, dry_run: bool) -> list[PurgedFile]:
        """Remove state files that were put aside, and return them.

        They cannot be searched for the text, so all of them go.
        """
        purged = []
        paths: list[str] = []
        for ending in PUT_ASIDE:
            paths += glob(escape(self._state_path) + ending)
        for path in sorted(paths):
            purged.append(PurgedFile(path, _hash_of_file(path)))
            if not dry_run:
                os.unlink(path)
        return purged

    def _blank_logs(self, pattern: Pattern, *, dry_run: bool) -> list[PurgedFile]:
        """Blank the pattern in the log files and return those that had it.

        It is done in place, with the same length, since another thread may be appending.
        """
        purged = []
        for path in sorted(glob(f"{escape(self._state_folder)}/{_LOG_FILES}")):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            with open(path, "r+b") as file:
                body = file.read()
                blanked_body = pattern.blanked_body(body)
                if blanked_body == body:  # the log does not have the text
                    continue
                purged.append(PurgedFile(path, sha256(body)))
                if not dry_run:
                    file.seek(0)
                    file.write(blanked_body)
                    file.flush()
                    os.fsync(file.fileno())
        return purged


def purge_request(
    directory: str, change: str, path: str, pattern: str, *, is_regex: bool = False
) -> PurgeRequest:
    """Return the request to purge a change, a path or a pattern; the other two are "".

    Raises PurgeRefusedError and Invalid.
    """
    given = [text for text in (change, path, pattern) if text]
    if len(given) != 1:
        raise PurgeRefusedError(_NOT_EXACTLY_ONE)
    compiled = Pattern(pattern, is_regex=is_regex) if pattern else None
    return PurgeRequest(os.path.realpath(directory), change, path, compiled)


def _body_has_purged_text(
    path: str, pattern: Pattern | None, purged_hashes: Collection[str]
) -> bool:
    """Say whether the file at an absolute path has the purged text in its body."""
    try:
        with open(path, "rb") as file:
            body = file.read(limits.READ_BYTES)
    except OSError:  # gone by now
        return False
    if sha256(body) in purged_hashes:
        return True
    return pattern is not None and pattern.is_in_body(body)


def _hash_of_file(path: str) -> str:
    """Return the SHA-256 of a file of any size, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unchanged(text: str) -> str:
    """Return the text unchanged: without a pattern nothing is cleaned."""
    return text


def _encodable(text: str) -> str:
    """Return a text with "?" for lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")

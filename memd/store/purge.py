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
from dataclasses import dataclass
from glob import escape, glob
from itertools import chain
from typing import Any

from memd.core import limits, regex
from memd.core.errors import MemdError, WrongParameterError
from memd.core.text import decode, sha256
from memd.state.changes import COPIED, Journal, LiveFile, Purge, PurgedText
from memd.state.database import Database
from memd.store.reading import DirectoryReader
from memd.store.replaced import Replaced
from memd.store.undo import ChangeNotFoundError

PURGED = "[purged]"
_LEAST = 4  # characters of a pattern: a shorter one stands in nearly every text
_HASH = re.compile("[0-9a-f]{64}")
_LOGS = "memd.log*"
_ASIDE = (".damaged-*", COPIED)
_ONE = "give exactly one of change, path and pattern"


class PurgeRefusedError(WrongParameterError):
    """What shall be purged is not said, or said so that it would be nearly everything."""

    def __init__(self, why: str) -> None:
        super().__init__(f"nothing was purged: {why}", why=why)


class Pattern:
    """A text that is looked for in any case, or a regular expression.

    Raises PatternRefusedError and PurgeRefusedError.
    """

    def __init__(self, text: str, *, is_regex: bool = False) -> None:
        if len(text.strip()) < _LEAST:
            why = f"the pattern has fewer than {_LEAST} characters"
            raise PurgeRefusedError(why)
        # As it is, as JSON writes it within quotes, and as YAML does.
        forms = dict.fromkeys((text, json.dumps(text)[1:-1], text.replace("'", "''")))
        literal = "|".join(map(re.escape, forms))
        self._regex = (
            regex.foreign(text, ignore_case=True) if is_regex else regex.own(f"(?i){literal}")
        )
        if self._regex.search("") is not None:
            why = "the pattern matches the empty text"
            raise PurgeRefusedError(why)

    def holds(self, body: bytes) -> bool:
        """Say whether a body holds the pattern."""
        return self._regex.search(decode(body)) is not None

    def within(self, text: str) -> bool:
        """Say whether a text holds the pattern."""
        return self._regex.search(_encodable(text)) is not None

    def cleaned(self, text: str) -> str:
        """Return a text without the pattern; in a text that is JSON, without it in each string."""
        if text[:1] in {"{", "[", '"'}:
            with suppress(ValueError, RecursionError):
                value = json.loads(text)
                clean = self._cleaned_value(value)
                return text if clean == value else json.dumps(clean)
        if _HASH.fullmatch(text) or not self.within(text):
            return text
        return str(self._regex.sub(PURGED, _encodable(text)))

    def blanked(self, body: bytes) -> bytes:
        """Return a body with stars of the same length in the place of the pattern."""
        result: list[Any] = list(self._regex.finditer(decode(body)))
        for text in sorted({match.group() for match in result}, key=len, reverse=True):
            part = text.encode("utf-8", "surrogateescape")
            body = body.replace(part, b"*" * len(part))
        return body

    def _cleaned_value(self, value: Any) -> Any:
        """Return a JSON value without the pattern in its strings."""
        if isinstance(value, str):
            return self.cleaned(value)
        if isinstance(value, list):
            return [self._cleaned_value(item) for item in value]
        if isinstance(value, dict):
            return {self.cleaned(k): self._cleaned_value(item) for k, item in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """What shall be purged: one change set, all versions of one file, or a pattern."""

    directory: str
    change: str = ""
    path: str = ""
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True)
class PurgedFile:
    """A file of the state directory that was removed or blanked, and the SHA-256 it had."""

    path: str
    hash: str


@dataclass(frozen=True, slots=True)
class Purged:
    """What was removed, or would be; ``texts`` counts rows of the state file by table.

    ``live`` are files of the memory directories in which, or in whose name, it still stands: they
    are yours to change. A job that is ``running`` may still write down what it had read: purge
    again when it has ended.
    """

    dry_run: bool
    bodies: tuple[PurgedText, ...]
    texts: dict[str, int]
    files: tuple[PurgedFile, ...]
    live: tuple[str, ...]
    running: int


class Purger:
    """Purges what memd keeps; ``reading`` reads live files and knows their headers.

    ``replaced`` are files beside the memories that a program may still be writing to. They are
    not removed under its hands, and named among the live ones.
    """

    def __init__(self, database: Database, reading: DirectoryReader, replaced: Replaced) -> None:
        self._replaced = replaced
        self._purge = Purge(database)
        self._journal = Journal(database)
        self._reading = reading
        self._folder = os.path.dirname(database.path)
        self._database = database.path

    def run(self, what: PurgeRequest, *, dry_run: bool) -> Purged:
        """Remove it all, or only say what that would be.

        Raises ChangeNotFoundError, StateUnusableError and OSError. What was removed before an error
        stays removed; the same call again removes the rest.
        """
        pattern, hashes = what.pattern, self._hashes(what)
        bodies = self._purge.removable(hashes)
        cleaned = pattern.cleaned if pattern else _same
        texts = self._purge.texts(cleaned) if pattern else {}
        live = self._status(pattern, hashes)
        files = self._aside(dry_run=dry_run)
        if pattern:
            files += self._logs(pattern, dry_run=dry_run)
        if not dry_run:
            self._purge.remove([body.hash for body in bodies], cleaned)
            self._reading.forget()
        return Purged(dry_run, bodies, texts, tuple(files), live, self._purge.running())

    def _hashes(self, what: PurgeRequest) -> frozenset[str]:
        """Return the hashes of all bodies that a request means."""
        if what.pattern:
            return self._purge.holding(what.pattern.holds)
        if what.change:
            record = self._journal.change(what.directory, what.change, refused=True)
            if record is None:
                raise ChangeNotFoundError(what.change)
            return self._purge.of_change(record.number)
        return self._purge.of_path(what.directory, what.path)

    def _status(self, pattern: Pattern | None, hashes: Collection[str]) -> tuple[str, ...]:
        result = [file for file in self._purge.files() if self._stands(file, pattern, hashes)]
        retained = [path for path in self._replaced.paths() if _holds(path, pattern, hashes)]
        return (*(f"{file.directory}/{file.path}" for file in result), *retained)

    def _stands(self, file: LiveFile, pattern: Pattern | None, hashes: Collection[str]) -> bool:
        """Say whether what is purged still stands in a live file, or in its name."""
        if file.hash in hashes:
            return True
        if pattern is None:
            return False
        if pattern.within(f"{file.directory}/{file.path}"):
            return True
        content = None
        if not file.stored:  # the journal does not have the text, so it was not looked into
            with suppress(OSError, MemdError):
                content = self._reading.live(file.directory, file.path)
        return content is not None and pattern.holds(content)

    def _aside(self, *, dry_run: bool) -> list[PurgedFile]:
        """Remove other state files, damaged ones and copies: nobody looks into what they hold."""
        result = []
        names = chain.from_iterable(glob(f"{escape(self._database)}{each}") for each in _ASIDE)
        for path in sorted(names):
            result.append(PurgedFile(path, _hash(path)))
            if not dry_run:
                os.unlink(path)
        return result

    def _logs(self, pattern: Pattern, *, dry_run: bool) -> list[PurgedFile]:
        """Blank the pattern where it stands in the log, which another thread may be writing to."""
        result = []
        for path in sorted(glob(f"{escape(self._folder)}/{_LOGS}")):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            with open(path, "r+b") as file:
                body = file.read()
                blank = pattern.blanked(body)
                if blank == body:
                    continue
                result.append(PurgedFile(path, sha256(body)))
                if not dry_run:
                    file.seek(0)
                    file.write(blank)
                    file.flush()
                    os.fsync(file.fileno())
        return result


def purge_request(
    directory: str, change: str, path: str, pattern: str, *, is_regex: bool = False
) -> PurgeRequest:
    """Return what a caller asks to be purged. Raises PurgeRefusedError and PatternRefusedError."""
    if sum(map(bool, (change, path, pattern))) != 1:
        raise PurgeRefusedError(_ONE)
    compiled = Pattern(pattern, is_regex=is_regex) if pattern else None
    return PurgeRequest(os.path.realpath(directory), change, path, compiled)


def _holds(path: str, pattern: Pattern | None, hashes: Collection[str]) -> bool:
    """Say whether a file has one of the hashes, or holds the pattern."""
    try:
        with open(path, "rb") as file:
            body = file.read(limits.READ_BYTES)
    except OSError:
        return False
    return sha256(body) in hashes or (pattern is not None and pattern.holds(body))


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _same(text: str) -> str:
    return text


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")

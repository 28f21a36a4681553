"""What others did to a memory directory: noticed by its content and journalled as theirs.

People, their editors, git, rsync and Claude Code write here without asking memd. A *look* compares
the directory with the shadow (``state/shadow.py``) and records all that differs as one change of
the actor ``external`` that is applied already, with what was there before; so it is seen in the
history and undone like any other. Rules of this file:

- Content is the truth. A status that has not changed saves reading a file, unless it is so young
  that another save could have left the same one. Nothing else, no watcher either, is believed.
- The first sight of a directory is no change.
- A file is gone when the system says so, not when a listing left it out: a listing that runs
  while files are renamed may miss some.
- A file that is empty or went away may be half of a save. A *patient* look leaves it for the next
  one and says so; before a commit there is no time for that.
- A set that memd itself has not finished would look like another's work: there is no look then.

The caller holds the directory's lock: no commit runs meanwhile.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.text import sha256
from memd.core.values import Actor, Provenance
from memd.state.journal import Intent, Journal, Record, Step
from memd.state.shadow import Moves, Shade, Shadow, packed
from memd.store.held import BY as LATE
from memd.store.held import Late
from memd.store.names import INDEX
from memd.store.paths import Directory, DirectoryMissingError, PathRefusedError

BY = Provenance(Actor.EXTERNAL, reason="edited outside memd")
# Two saves within one tick of a file system's clock may look alike. A kernel's tick is 10 ms at
# most; a file system that keeps whole seconds only may have one of 2 s.
_FINE_SECONDS = 0.1
_COARSE_SECONDS = 2.0
_SECOND_NS = 1_000_000_000
_CHUNK_FILES = 200  # of a first sight, per transaction
_QUIET_FILES = 64  # statuses that are remembered before they are worth a durable transaction


@dataclass(frozen=True, slots=True)
class Noticed:
    """What a look found: the change that it journalled, and whether one more look is wanted."""

    change: Record | None = None
    unsettled: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it is now; ``content`` is ``None`` where only its hash is kept."""

    shade: Shade
    content: bytes | None


@dataclass(slots=True)
class _Findings:
    """What differs, while a look runs."""

    steps: list[Step] = field(default_factory=list)
    shades: dict[str, Shade | None] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    unsettled: bool = False

    def add(self, path: str, old: Shade | None, seen: _Seen | None) -> None:
        """Note one file that is not what it was."""
        new = seen.shade if seen else None
        self.steps.append(_step(path, old, new))
        self.shades[path] = new
        if seen and new and seen.content is not None:
            self.bodies[new.hash] = packed(seen.content)


class External:
    """Looks at memory directories. Blocks; one look at a time per directory (its real path)."""

    def __init__(self, journal: Journal, shadow: Shadow) -> None:
        self._journal = journal
        self._shadow = shadow
        # What was seen of files whose hash in the shadow is right: a status, not worth a write.
        self._quiet: dict[str, dict[str, Shade]] = {}

    def look(
        self, directory: str, at: float, *, patient: bool = False, claim: bool = False
    ) -> Noticed:
        """Journal what others did since the last look; ``at`` is seconds since 1970.

        With ``claim`` a directory that is not there counts as seen: whatever will lie in it is
        news. Raises DirectoryUnusableError, PathRefusedError and StateUnusableError.
        """
        if self._journal.pending(directory):
            return Noticed()
        old = self._shadow.of(directory)
        try:
            opened: Directory | None = Directory(directory)
        except DirectoryMissingError:
            opened = None
        with opened or nullcontext():
            if old is not None:
                return self._compare(directory, opened, old, at, patient=patient)
            if opened is not None:
                self._fill(opened, at)
            if opened is not None or claim:
                self._shadow.seen(directory, at)
        return Noticed()

    def keep(self, directory: str, late: Late, at: float) -> Record:
        """Journal a save that is not in the directory any more, so that it is not lost."""
        key = sha256(late.body)
        step = Step(late.path, late.before, key)
        intent = Intent(directory, at, LATE, "", "", (step,), {})
        return self._journal.noticed(intent, Moves(bodies={key: packed(late.body)}))

    def directories(self) -> tuple[str, ...]:
        """Return every directory that was ever looked at."""
        return self._shadow.directories()

    def learn(self, directory: str, paths: Iterable[str], at: float) -> None:
        """Remember the status of files that a commit has just put there."""
        quiet = self._quiet.setdefault(directory, {})
        with suppress(MemdError), Directory(directory) as opened:
            for path in paths:
                seen = _look(opened, path, at)
                if seen is not None:
                    quiet[path] = seen.shade

    def _fill(self, opened: Directory, at: float) -> None:
        paths = (path for path, _ in _files(opened))
        while chunk := list(islice(paths, _CHUNK_FILES)):
            found = [(path, seen) for path in chunk if (seen := _look(opened, path, at))]
            moves = Moves(
                {path: seen.shade for path, seen in found},
                {s.shade.hash: packed(s.content) for _, s in found if s.content is not None},
            )
            self._shadow.move(opened.path, moves)

    def _compare(
        self,
        directory: str,
        opened: Directory | None,
        rows: dict[str, Shade],
        at: float,
        *,
        patient: bool,
    ) -> Noticed:
        quiet = self._quiet.setdefault(directory, {})
        old = {path: _newer(shade, quiet.get(path)) for path, shade in rows.items()}
        found = _Findings()
        met: set[str] = set()
        for path, status in _files(opened) if opened else ():
            known = old.get(path)
            met.add(path)
            if known is not None and _vouches(known, status, at):
                continue
            try:
                seen = _read(opened, path, at) if opened else None
            except MemdError:
                continue  # it is there and does not let itself be read: nothing is known of it
            if seen is None:
                met.discard(path)
            elif known is not None and known.hash == seen.shade.hash:
                quiet[path] = seen.shade
            elif patient and seen.content == b"":
                found.unsettled = True
            else:
                found.add(path, known, seen)
        for path in sorted(old.keys() - met):
            if opened and not _is_gone(opened, path):
                continue
            if patient:
                found.unsettled = True
            else:
                found.add(path, old[path], None)
        return Noticed(self._take_over(directory, rows, found, at), found.unsettled)

    def _take_over(
        self, directory: str, rows: dict[str, Shade], found: _Findings, at: float
    ) -> Record | None:
        quiet = self._quiet[directory]
        fresh = {p: s for p, s in quiet.items() if p in rows and rows[p].hash == s.hash}
        moves = Moves({**fresh, **found.shades}, found.bodies)
        if not found.steps and len(fresh) < _QUIET_FILES:
            return None
        if found.steps:
            intent = Intent(directory, at, BY, "", "", tuple(found.steps), {})
            record = self._journal.noticed(intent, moves)
        else:
            self._shadow.move(directory, moves)
            record = None
        quiet.clear()
        return record


def fingerprint(status: os.stat_result, at: float) -> str:
    """Return what changes whenever a file does, "" when it is too young to be sure of that."""
    fine = status.st_ctime_ns % _SECOND_NS or status.st_mtime_ns % _SECOND_NS
    if status.st_ctime >= at - (_FINE_SECONDS if fine else _COARSE_SECONDS):
        return ""
    return f"{status.st_ino}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_size}"


def _files(opened: Directory) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of every memory, and of the index."""
    yield from opened.walk([])
    try:
        status = opened.stat(INDEX)
    except MemdError:
        return  # no file that memd reads
    if status is not None:
        yield INDEX, status


def _look(opened: Directory, path: str, at: float) -> _Seen | None:
    """Return a file as it is now, ``None`` where there is none that can be read."""
    try:
        return _read(opened, path, at)
    except MemdError:
        return None


def _read(opened: Directory, path: str, at: float) -> _Seen | None:
    """Return a file as it is now, or ``None``. Raises PathRefusedError, FileUnreadableError."""
    status = opened.stat(path)
    if status is None:
        return None
    limit = limits.READ_BYTES if path == INDEX else limits.MEMORY_BYTES
    content: bytes | None = None
    if status.st_size <= limit:
        answer = opened.read_head(path, limit + 1)
        if answer is None:
            return None
        content, status = answer
    if content is not None and len(content) <= limit:
        return _Seen(_shade(sha256(content), status, at), content)
    digest = opened.digest(path)
    return digest and _Seen(_shade(digest[0], digest[1], at), None)


def _shade(key: str, status: os.stat_result, at: float) -> Shade:
    return Shade(key, fingerprint(status, at), status.st_mtime_ns, status.st_mode & 0o777)


def _vouches(known: Shade, status: os.stat_result, at: float) -> bool:
    """Say whether the bytes must still be those that are known."""
    return known.fingerprint != "" and known.fingerprint == fingerprint(status, at)


def _newer(row: Shade, quiet: Shade | None) -> Shade:
    return quiet if quiet is not None and quiet.hash == row.hash else row


def _is_gone(opened: Directory, path: str) -> bool:
    """Say whether no memory lies under a name; what cannot be asked about is not gone."""
    try:
        return opened.stat(path) is None
    except PathRefusedError:
        return True  # a link or a folder took its place
    except MemdError:
        return False


def _step(path: str, old: Shade | None, new: Shade | None) -> Step:
    modes = [shade.mode for shade in (old, new) if shade is not None and shade.mode is not None]
    return Step(
        path,
        old.hash if old else None,
        new.hash if new else None,
        before_mtime_ns=old.mtime_ns if old else None,
        mode=modes[0] if modes else None,
    )

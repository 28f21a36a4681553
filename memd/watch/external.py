"""Find changes of other programs in a memory directory by content, and record them in the journal.

People, their editors, git, rsync and Claude Code write here without asking memd. A *look* compares
the directory with the baseline (``state/baseline.py``) and records all differences as one applied
change of the actor ``external``, with the earlier texts; so it is in the history and can be undone
like any other. Rules of this file:

- Content decides. A file is not read if its status is unchanged, unless that is so young that
  another save could have left the same one. Nothing else, not even a watcher, is trusted.
- The first look at a directory records no change.
- A file is gone when the system says so, not when a listing left it out: a listing that runs
  while files are renamed may miss some.
- A file that is empty or missing may be half saved. A *patient* look leaves it for the next
  one and reports it; before a commit there is no time for that. A file that is empty while a
  program has it open for writing is left by every look.
- A set that memd has not finished would look like an external edit: there is no look then.

The caller holds the directory's lock: no commit runs meanwhile.
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext, suppress
from itertools import chain, islice

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEXES, concerns, printable
from memd.base.recent import Recent
from memd.base.text import sha256
from memd.base.values import Actor, Provenance
from memd.base.yielding import yield_to_requests
from memd.files.directory import Directory, DirectoryMissingError, PathRefusedError
from memd.state.changes import (
    Baseline,
    BaselineChange,
    ChangeRecord,
    FileState,
    Journal,
    PlannedChange,
    Step,
    packed,
)
from memd.watch.watch import Paths

BY = Provenance(Actor.EXTERNAL, reason="edited outside memd")
LATE_SAVE = Provenance(Actor.EXTERNAL, reason="saved while memd was writing the same file")
# Two saves within one tick of a file system's clock may look alike. A kernel's tick is 10 ms at
# most; a file system that keeps whole seconds only may have one of 2 s.
_FINE_SECONDS = 0.1
_COARSE_SECONDS = 2.0
_SECOND_NS = 1_000_000_000
_CHUNK_FILES = 200  # of a first look, per transaction
_LOOK_BYTES = 32 * 1024 * 1024  # of compressed bodies that one look stores at most
_NAMED_FILES = 10  # in the reason of a change
# Statuses in memory before they are written to the baseline, after a look and while one runs.
_MOST_LEARNED = 64
_MOST_LEARNED_IN_LOOK = 1000


class Detected(Struct, frozen=True):
    """The result of a look."""

    change: ChangeRecord | None = None  # that the look journalled
    unsettled: frozenset[str] = frozenset()  # paths to look at again
    looked: bool = True  # false if memd has an unfinished set there, so that no look is possible


class _CurrentFile(Struct, frozen=True):
    """A file as it is now."""

    state: FileState
    content: bytes | None  # ``None`` if it is too large to be stored


class DetectionScope(Struct, frozen=True):
    """How to look at a directory."""

    at: float  # the time now, in seconds since 1970
    patient: bool = False  # leave what may be half saved for the next look
    # A missing directory counts as looked at, so that any file that appears in it is a change.
    claim: bool = False
    paths: Paths = None  # those that may differ, ``None`` if that is unknown
    enter: Callable[[str], None] | None = None  # as in ``Directory.walk``
    reported: Callable[[str], None] = lambda _path: None  # is called with each path that was read


class _Differences(Struct):
    """The differences that a look has found in a directory so far."""

    directory: str
    steps: list[Step] = field(default_factory=list)
    states: dict[str, FileState | None] = field(default_factory=dict)  # new ones, by path
    bodies: dict[str, bytes] = field(default_factory=dict)  # compressed, by hash
    unsettled: set[str] = field(default_factory=set)  # paths to look at again
    size: int = 0  # bytes of the bodies

    def add(self, path: str, old: FileState | None, current: _CurrentFile | None) -> None:
        """Add one file whose state differs from the ``old`` one; ``None`` stands for no file."""
        new = current.state if current else None
        self.steps.append(_step(path, old, new))
        self.states[path] = new
        has_room = self.size <= _LOOK_BYTES
        if current and new and current.content is not None and has_room:
            body = self.bodies[new.hash] = packed(current.content)
            self.size += len(body)


class ExternalEdits:
    """Detects what others did to memory directories. Blocks; one call at a time per directory."""

    def __init__(self, journal: Journal, baseline: Baseline) -> None:
        self._journal = journal
        self._baseline = baseline
        # By directory and path: new states of files whose hash is unchanged. They are not yet in
        # the baseline.
        self._learned_states: Recent[str, dict[str, FileState]] = Recent()

    def detect(self, directory: str, how: DetectionScope) -> Detected:
        """Journal external edits of a directory (its real path) since the last look.

        Raises DirectoryUnusableError, PathRefusedError and StateUnusableError.
        """
        if self._journal.pending(directory):
            return Detected(looked=False)
        known = self._baseline.is_scanned(directory)
        if known and how.paths == frozenset():
            return Detected()
        try:
            opened: Directory | None = Directory(directory)
        except DirectoryMissingError:
            opened = None
        with opened or nullcontext():
            if known:
                return self._compare(directory, opened, how)
            if opened is not None:
                self._fill(opened, how)
            if opened is not None or how.claim:
                self._baseline.mark_scanned(directory, how.at)
        return Detected()

    def record_late_save(self, directory: str, step: Step, body: bytes, at: float) -> ChangeRecord:
        """Journal a late save that is not in the directory, so that its text is not lost.

        ``step`` is what replaced the file that the text was written into.
        """
        body_hash = sha256(body)
        late_step = Step(step.path, step.before, body_hash)
        intent = PlannedChange(directory, at, LATE_SAVE, "", "", (late_step,), {})
        moves = BaselineChange(bodies={body_hash: packed(body)})
        return self._journal.record_external(intent, moves)

    def last_state(self, directory: str, path: str) -> FileState | None:
        """Return the last state of a file in the baseline, or ``None``."""
        return self._baseline.states(directory, (path,)).get(path)

    def directories(self) -> tuple[str, ...]:
        """Return every directory that was ever looked at."""
        return self._baseline.directories()

    def learn(self, directory: str, paths: Iterable[str], at: float) -> None:
        """Remember the status of files that a commit has just put there."""
        learned = self._learned_states.setdefault(directory, {})
        with suppress(MemdError), Directory(directory) as opened:
            for path in paths:
                with suppress(MemdError):
                    current = _read(opened, path, at)
                    if current:
                        learned[path] = current.state

    def _fill(self, opened: Directory, how: DetectionScope) -> None:
        """Store the states of all files of a directory that is seen for the first time."""
        result = _Differences(opened.path)
        paths = (path for path, _, _ in opened.walk([], how.enter))
        for path in chain(paths, INDEXES):
            with suppress(MemdError):
                current = _read(opened, path, how.at)
                if current:
                    result.add(path, None, current)
            if len(result.steps) >= _CHUNK_FILES or result.size > _LOOK_BYTES:
                self._baseline.move(opened.path, BaselineChange(result.states, result.bodies))
                result = _Differences(opened.path)
        self._baseline.move(opened.path, BaselineChange(result.states, result.bodies))

    def _compare(self, directory: str, opened: Directory | None, how: DetectionScope) -> Detected:
        """Compare a known directory with the baseline and journal what differs."""
        result = _Differences(directory)
        if how.paths is None:
            paths = self._to_check(directory, opened, how)
        else:
            paths = {path for path in how.paths if concerns(path)}
        remaining = iter(sorted(paths))
        while chunk := list(islice(remaining, _CHUNK_FILES)):
            rows = self._baseline.states(directory, chunk)
            for path in chunk:
                self._compare_file(opened, path, rows.get(path), how, result)
            self._flush_learned(directory, _MOST_LEARNED_IN_LOOK)
        return Detected(self._journal_change(result, how.at), frozenset(result.unsettled))

    def _to_check(self, directory: str, opened: Directory | None, how: DetectionScope) -> set[str]:
        """Return the paths whose file status differs from the known one, or is missing."""
        remaining = self._baseline.fingerprints(directory)  # without those of unchanged files
        for path, entry, _ in opened.walk([], how.enter) if opened else ():
            yield_to_requests()
            try:
                current = fingerprint(entry.stat(follow_symlinks=False), how.at)
            except OSError:  # deleted while we looked
                current = ""
            if current and remaining.get(path) == current:
                del remaining[path]
            else:
                remaining[path] = ""
        return {*INDEXES, *remaining}

    def _compare_file(
        self,
        opened: Directory | None,
        path: str,
        row: FileState | None,
        how: DetectionScope,
        result: _Differences,
    ) -> None:
        """Compare one file with its known state; add the difference, if any, to ``result``."""
        yield_to_requests()
        learned_states = self._learned_states.setdefault(result.directory, {})
        learned = learned_states.get(path)
        known = learned if row and learned and learned.hash == row.hash else row
        try:
            status = opened.stat(path) if opened else None
            mark = fingerprint(status, how.at) if status else ""
            if known and mark and known.fingerprint == mark:
                return  # the status is unchanged, so the bytes are
            how.reported(path)
            current = _read(opened, path, how.at) if opened and status else None
        except MemdError as error:
            if not isinstance(error, PathRefusedError) or (opened and opened.holds(path)):
                return  # it exists but cannot be read: whether it changed is unknown
            current = None  # a link or a folder took its place
        if current is None:
            if known is not None and how.patient:  # it may be half saved
                result.unsettled.add(path)
            elif known is not None:
                result.add(path, known, None)
        elif known is not None and known.hash == current.state.hash:
            learned_states[path] = current.state
        elif current.content == b"" and (how.patient or _is_open_for_writing(opened, path)):
            result.unsettled.add(path)
        else:
            result.add(path, known, current)

    def _journal_change(self, result: _Differences, at: float) -> ChangeRecord | None:
        """Journal the differences as one change, ``None`` if there are none."""
        directory = result.directory
        if not result.steps:
            self._flush_learned(directory, _MOST_LEARNED)
            return None
        states = {**self._valid_learned(directory), **result.states}
        moves = BaselineChange(states, result.bodies)
        lost = [step.path for step in result.steps if not self._can_undo(step, result.bodies)]
        intent = PlannedChange(directory, at, _provenance(lost), "", "", tuple(result.steps), {})
        record = self._journal.record_external(intent, moves)
        self._learned_states.pop(directory, None)
        return record

    def _can_undo(self, step: Step, new_hashes: Collection[str]) -> bool:
        """Say whether both texts of a change can be brought back.

        ``new_hashes`` are those of the texts that are stored with the change.
        """
        hashes = (each for each in (step.before, step.after) if each is not None)
        return all(each in new_hashes or self._journal.has_body(each) for each in hashes)

    def _flush_learned(self, directory: str, least: int) -> None:
        """Write the states that are only in memory to the baseline if there are ``least``."""
        if len(self._learned_states.get(directory, ())) >= least:
            self._baseline.move(directory, BaselineChange(self._valid_learned(directory)))
            self._learned_states.pop(directory, None)

    def _valid_learned(self, directory: str) -> dict[str, FileState]:
        """Return the states that are only in memory, if the baseline still has their hash."""
        learned = self._learned_states.get(directory, {})
        rows = self._baseline.states(directory, learned)
        return {
            path: state
            for path, state in learned.items()
            if path in rows and rows[path].hash == state.hash
        }


def fingerprint(status: os.stat_result, at: float) -> str:
    """Return a string that changes whenever the file does, "" if that cannot be promised yet.

    ``at`` is the time of the ``status``. A file that changed within the last tick of the file
    system's clock may change again without a change of its times.
    """
    # Whole seconds alone: the file system may keep no finer times.
    has_fine_times = status.st_ctime_ns % _SECOND_NS or status.st_mtime_ns % _SECOND_NS
    tick = _FINE_SECONDS if has_fine_times else _COARSE_SECONDS
    is_young = status.st_ctime >= at - tick
    if is_young:
        return ""
    return f"{status.st_ino}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_size}"


def _provenance(lost: Sequence[str]) -> Provenance:
    """Return the provenance of an external edit, naming files too large to be kept."""
    if not lost:
        return BY
    names = ", ".join(map(printable, lost[:_NAMED_FILES]))
    more = f" and {len(lost) - _NAMED_FILES} more" if len(lost) > _NAMED_FILES else ""
    return replace(BY, reason=f"{BY.reason}; too large to be kept for an undo: {names}{more}")


def _is_open_for_writing(opened: Directory | None, path: str) -> bool:
    """Say whether a program is known to have a file open for writing."""
    return opened is not None and opened.open_for_writing(path) is True


def _read(opened: Directory, path: str, at: float) -> _CurrentFile | None:
    """Return a file as it is now, or ``None``. Raises PathRefusedError, FileUnreadableError."""
    status = opened.stat(path)
    if status is None:
        return None
    content: bytes | None = None
    if status.st_size <= limits.READ_BYTES:
        content_and_status = opened.read_head(path, limits.READ_BYTES + 1)
        if content_and_status is None:
            return None
        content, status = content_and_status
    if content is not None and len(content) <= limits.READ_BYTES:
        return _CurrentFile(_state_of(sha256(content), status, at), content)
    # Too large, or it has grown meanwhile.
    hash_and_status = opened.digest(path)
    if hash_and_status is None:
        return None
    body_hash, status = hash_and_status
    return _CurrentFile(_state_of(body_hash, status, at), None)


def _state_of(body_hash: str, status: os.stat_result, at: float) -> FileState:
    """Return the state of a file with this hash, whose status was read at a time in seconds."""
    mode = status.st_mode & 0o777  # the permissions
    return FileState(body_hash, fingerprint(status, at), status.st_mtime_ns, mode)


def _step(path: str, old: FileState | None, new: FileState | None) -> Step:
    """Return the step from one known state of a file to another."""
    modes = [state.mode for state in (old, new) if state is not None and state.mode is not None]
    return Step(
        path,
        old.hash if old else None,
        new.hash if new else None,
        before_mtime_ns=old.mtime_ns if old else None,
        mode=modes[0] if modes else None,
    )

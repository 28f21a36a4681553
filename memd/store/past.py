"""Older versions of a memory, and who wrote them, as the log has them."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from memd.base.errors import Invalid, NotFound
from memd.base.imports import is_import
from memd.base.names import INDEX, check_stored_name
from memd.base.team import Author
from memd.base.text import iso_time, sha256
from memd.base.values import Actor, Change, Draft, FileEdit, MemoryFile, Plan
from memd.store.disk import Content
from memd.store.log import CONFLICT, ChangeLog, ChangeRecord, Step
from memd.store.tree import memory_file
from memd.store.undo import Undo, no_version, restore_one, undo_newest, undo_span
from memd.text import unified

At = str | float  # the id of a change (the state after it), or seconds since 1970
_MODE = 0o600  # of an earlier version, whose own mode the log does not have
_MOST_FILES = 10_000  # in the changes of one answer; older ones come with the next page
_PAGE = 100  # changes that are read at once
# Who made the last change of a file, and the hash of its text since then.
_LAST_TEXT = """
SELECT c.actor, c.origin, lower(hex(b.hash)) AS hash
FROM change_file f JOIN change c ON c.id = f.change JOIN directory d ON d.id = c.directory
LEFT JOIN body b ON b.id = f.after
WHERE d.path = ? AND f.path = ? AND c.state = 'done' AND NOT f.conflict
ORDER BY f.change DESC LIMIT 1
"""


class Filter(Struct, frozen=True):
    """Conditions on changes; a field that is "" or ``None`` is no condition.

    ``directory`` is a real path. Times are seconds since 1970, ``since`` included, ``until`` not.
    """

    directory: str = ""
    path: str = ""
    actor: Actor | None = None
    session: str = ""
    client: str = ""
    since: float | None = None
    until: float | None = None


class Range(Struct, frozen=True):
    """Changes from one id to another, both included; a ``last`` of "" means the newest."""

    first: str
    last: str = ""


class FileVersion(Struct, frozen=True):
    """Who wrote one version of a file; ``at`` is ISO 8601 in UTC.

    If it was extracted from a ``transcript``, ``message`` is the last message that was read there.
    """

    change: str
    at: str
    action: str
    actor: str
    client: str
    session: str
    model: str
    reason: str
    origin: str
    message: str
    transcript: str


class FileDiff(Struct, frozen=True):
    """A unified diff of one file."""

    path: str
    diff: str


class Writers(Struct, frozen=True):
    """The authors of a file: its first and last change in the log, and the ids of all.

    ``member`` is the team member who wrote a team's file, if the server has sent that.
    """

    first: FileVersion | None
    last: FileVersion | None
    changes: tuple[str, ...]
    member: Author | None


class Past:
    """Answers questions about earlier versions, from the log and the live files. Blocks.

    Directories are real paths. ``live`` returns the bytes of a file in a directory, or ``None``;
    ``author`` the team member who wrote a team's file, or ``None``.
    """

    def __init__(
        self,
        log: ChangeLog,
        live: Callable[[str, str], bytes | None],
        author: Callable[[str, str], Author | None] = lambda *_: None,
    ) -> None:
        self._log = log
        self._live = live
        self._author = author

    def changes(self, only: Filter, *, limit: int, before: str = "") -> tuple[Change, ...]:
        """Return the changes that pass a filter, newest first; with ``before`` only older ones.

        There are fewer than ``limit``, but at least one, if together they have more than 10,000
        files. Raises NotFound for a ``before`` that is no change's id.
        """
        parts = [
            (only.directory, "d.path = ?"),
            (only.path, "c.id IN (SELECT change FROM change_file WHERE path = ? AND NOT conflict)"),
            (only.actor and only.actor.value, "c.actor = ?"),
            (only.session, "c.session = ?"),
            (only.client, "c.client = ?"),
            (only.since, "c.at >= ?"),
            (only.until, "c.at < ?"),
            (self.record(only.directory, before).number if before else None, "c.id < ?"),
        ]
        given = [(value, part) for value, part in parts if value not in (None, "")]
        condition = " AND ".join(part for _, part in given) or "1"
        result: list[Change] = []
        files = 0
        for record in self._log.select(condition, [value for value, _ in given], limit=limit):
            files += len(record.steps)
            if result and files > _MOST_FILES:
                break
            result.append(record.change())
        return tuple(result)

    def record(self, directory: str, change: str, *, refused: bool = False) -> ChangeRecord:
        """Return the change with this id; with ``refused`` also a conflict. Raises NotFound."""
        record = self._log.find(directory, change, refused=refused)
        if record is None:
            sentence = f"there is no change {change[:40]!r} of this directory"
            raise NotFound(sentence, hint="ask the history for the ids of changes", change=change)
        return record

    def diff(self, directory: str, change: str | None, path: str = "") -> tuple[FileDiff, ...]:
        """Return the unified diff of each file of a change, or only of ``path``.

        ``None`` means the newest change; the tuple is empty if there is none yet. Raises NotFound.
        """
        if change is None:
            number = self._last_number(directory)
            if number == 0:
                return ()
            change = f"c{number}"
        steps = self.record(directory, change, refused=True).steps
        steps = tuple(step for step in steps if path in {"", step.path})
        if path and not steps:
            raise no_version(path)
        return tuple(
            FileDiff(step.path, _diff(step.path, self._text(step.before), self._text(step.after)))
            for step in steps
        )

    def compare(self, directory: str, path: str, old: At | None, new: At | None) -> str:
        """Return the unified diff of two versions of a file.

        The new version is the live file by default; the old one is the one before the last change
        up to the new one. Raises NotFound and what reading the file raises.
        """
        records = self._of_file(directory, path)
        if new is None:
            step = _step_of(records[-1], path)
            after: bytes | None = self._live(directory, path) or b""
        else:
            step = _last_step(records, path, self._number_at(directory, new))
            after = self._text(step.after)
        if old is None:
            return _diff(path, self._text(step.before), after)
        earlier = _last_step(records, path, self._number_at(directory, old))
        return _diff(path, self._text(earlier.after), after)

    def version(self, directory: str, path: str, at: At) -> MemoryFile:
        """Return a memory as it was after a change or at a time.

        Raises Refused, and NotFound where there was no file then, or its text is not kept any more.
        """
        check_stored_name(path, index=True)
        records = self._of_file(directory, path)
        number = self._number_at(directory, at)
        text_hash = _last_step(records, path, number).after
        content = self._log.body(text_hash)
        if content is None or text_hash is None:
            raise no_version(path)
        mtime_ns = _mtime_ns_after(records, path, number)
        return memory_file(path, Content(text_hash, content, mtime_ns, _MODE))

    def writers(self, directory: str, path: str) -> Writers:
        """Return the authors of a file, as far as the log goes back."""
        records = self._of_file(directory, path, missing=True)
        member = self._author(directory, path)
        if not records:
            return Writers(None, None, (), member)
        ids = tuple(record.id for record in reversed(records))  # newest first
        return Writers(_version(records[0], path), _version(records[-1], path), ids, member)

    def was_imported(self, directory: str, path: str, text_hash: str) -> bool:
        """Say whether the text with this hash is the last one of a memory, by an import."""
        rows = self._log.database.read(_LAST_TEXT, (directory, path))
        return any(is_import(row["origin"]) and row["hash"] == text_hash for row in rows)

    def is_own(self, directory: str, path: str, text_hash: str) -> bool:
        """Say whether the text with this hash is the last one of a memory, and memd wrote it.

        True also if the log has no change of the memory.
        """
        rows = self._log.database.read(_LAST_TEXT, (directory, path))
        by_others = (Actor.EXTERNAL, Actor.ASSISTANT)
        return all(row["actor"] not in by_others and row["hash"] == text_hash for row in rows)

    def repeats(self, directory: str, edits: Iterable[FileEdit]) -> frozenset[str]:
        """Return the paths of edits that a dream already made to the same text.

        If a dream would make such an edit again, somebody took its work back, and the edit must not
        be repeated. An edit without a ``base`` is never a repeat. For the index the text before is
        enough, since its new text depends on all other files of the change.
        """
        result = set()
        for edit in edits:
            if edit.base is not None:
                after = None if edit.content is None else sha256(edit.content)
                condition = (
                    "d.path = ? AND c.actor = 'dream' AND c.id IN (SELECT f.change FROM change_file"
                    " f LEFT JOIN body b ON b.id = f.before LEFT JOIN body a ON a.id = f.after"
                    " WHERE f.path = ? AND b.hash IS ? AND (a.hash IS ? OR f.path = ?)"
                    " AND NOT f.conflict)"
                )
                hashes = (bytes.fromhex(edit.base) or None, after and bytes.fromhex(after))
                values = (directory, edit.path, *hashes, INDEX)
                if self._log.select(condition, values, limit=1, steps=False):
                    result.add(edit.path)
        return frozenset(result)

    def undo(self, directory: str, target: str | Range | float | None) -> Plan:
        """Return the plan that takes back one change, a range of them, or all after a time.

        ``None`` stands for the newest change that is neither an undo nor undone. Raises NotFound
        and Invalid.
        """
        if target is None:
            return undo_newest(lambda: self._not_undone(directory), self._log)
        if isinstance(target, str):
            return Undo(self.record(directory, target), self._log).plan
        last = 0
        if isinstance(target, Range):
            first = self.record(directory, target.first).number
            last = self.record(directory, target.last).number if target.last else 0
            if target.last and last < first:
                shown = target.last[:40], target.first[:40]
                sentence = f"{shown[0]} is older than {shown[1]}"
                raise Invalid(sentence, hint="name the older change first")
        else:
            first = self._last_number(directory, target) + 1
        last = last or self._last_number(directory)
        condition = "d.path = ? AND c.id BETWEEN ? AND ?"
        records = self._log.select(condition, (directory, first, last))[::-1]
        return undo_span(records, self._log) if records else lambda _: Draft()

    def restore(self, directory: str, path: str, change: str = "") -> Plan:
        """Return the plan that brings back a version of a file.

        By default that is the last version that differs from the live one. With ``change`` it is
        the version after that change, or the one before it if it deleted the file. For a conflict
        it is the refused text. Raises Refused and NotFound.
        """
        check_stored_name(path)
        wanted = self.record(directory, change, refused=True) if change else None
        if wanted and wanted.state == CONFLICT:
            if all(step.path != path for step in wanted.steps):
                raise no_version(path)
            return restore_one(wanted, path, self._log, exact=True)
        records = self._of_file(directory, path)
        if wanted is None:
            return restore_one(records[-1], path, self._log)
        # ``wanted`` may be a change of other files, so take the file's last change up to it.
        number = wanted.number
        earlier = [record for record in records if record.number <= number]
        record = earlier[-1] if earlier else records[0]
        later = [_step_of(each, path) for each in records if each.number > number]
        mtime_ns = later[0].before_mtime_ns if later else None
        return restore_one(record, path, self._log, exact=True, mtime_ns=mtime_ns)

    def _of_file(
        self, directory: str, path: str, *, missing: bool = False
    ) -> tuple[ChangeRecord, ...]:
        """Return the changes of a file, oldest first, with its steps and those of the index.

        Raises NotFound if there are none, unless that may be so (``missing``).
        """
        condition = (
            "d.path = ? AND c.id IN"
            " (SELECT change FROM change_file WHERE path = ? AND NOT conflict)"
        )
        records = self._log.select(condition, (directory, path))
        if not records and not missing:
            raise no_version(path)
        return tuple(
            replace(
                record, steps=tuple(step for step in record.steps if step.path in (path, INDEX))
            )
            for record in reversed(records)
        )

    def _last_number(self, directory: str, at: float = float("inf")) -> int:
        """Return the number of a directory's last change at or before a time, 0 for none."""
        condition = "d.path = ? AND c.at <= ?"
        result = self._log.select(condition, (directory, at), limit=1, steps=False)
        return result[0].number if result else 0

    def _number_at(self, directory: str, at: At) -> int:
        """Return the number of a change given by its id, or of the last change up to a time."""
        if isinstance(at, str):
            return self.record(directory, at).number
        return self._last_number(directory, at)

    def _text(self, text_hash: str | None) -> bytes | None:
        """Return the text with this hash, ``None`` if it is lost; no file has an empty text."""
        return b"" if text_hash is None else self._log.body(text_hash)

    def _not_undone(self, directory: str) -> Iterator[ChangeRecord]:
        """Yield the changes that are neither an undo nor undone, newest first.

        A change is undone if an undo of it is not undone. An undo has a higher number than what it
        takes back, so it is met before.
        """
        undone: list[tuple[int, int]] = []
        before = 2**62
        while page := self._log.select(
            "d.path = ? AND c.id < ?", (directory, before), limit=_PAGE, steps=False
        ):
            for bare in page:
                before = bare.number
                if any(first <= before <= last for first, last in undone):
                    continue
                if bare.by.actor is not Actor.UNDO:
                    record = self._log.record(before)
                    if record is not None:
                        yield record
                undone += bare.more.undid


def _step_of(record: ChangeRecord, path: str) -> Step:
    """Return the step of a file in a change that has one."""
    return next(step for step in record.steps if step.path == path and not step.conflict)


def _last_step(records: Sequence[ChangeRecord], path: str, number: int) -> Step:
    """Return a file's step in the last of its ``records`` up to a change's number.

    Before the first record, return a step whose ``after`` is the text that the first one replaced.
    """
    earlier = [record for record in records if record.number <= number]
    if earlier:
        return _step_of(earlier[-1], path)
    first = _step_of(records[0], path)
    return replace(first, before=None, after=first.before)


def _mtime_ns_after(records: Sequence[ChangeRecord], path: str, number: int) -> int:
    """Return the mtime of a file's version after a change, from the ``records`` of the file.

    The next change noted the mtime that it met; without one, take the time of the change itself.
    """
    later = [record for record in records if record.number > number]
    noted = _step_of(later[0], path).before_mtime_ns if later else None
    if noted is not None:
        return noted
    earlier = [record for record in records if record.number <= number]
    return int((earlier[-1] if earlier else records[0]).at * 1e9)


def _version(record: ChangeRecord, path: str) -> FileVersion:
    """Return the author of a version."""
    return FileVersion(
        record.id,
        iso_time(record.at),
        _step_of(record, path).file_change().action,
        message=record.more.message,
        transcript=record.more.transcript,
        **asdict(record.by),
    )


def _diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the unified diff of two bodies, or a sentence if one is lost (``None``) or binary."""
    if before is None or after is None:
        return f"{path}: the history does not hold this text any more\n"
    try:
        old, new = before.decode(), after.decode()
    except UnicodeDecodeError:
        return f"{path}: binary\n"
    return "".join(unified.diff(path, unified.lines(old), unified.lines(new)))

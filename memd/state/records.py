"""The classes of change sets, and how rows of the journal are read into them.

The state file may be damaged: whatever a row holds, the result has the types and bounds that memd
writes itself, and invalid parts have no effect.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memd.base.names import INDEXES
from memd.base.text import read_json
from memd.base.values import (
    Actor,
    Change,
    CommitResult,
    Effect,
    FileChange,
    Provenance,
    undone_by,
)
from memd.state import effects
from memd.state.database import Row

RECORDED, APPLIED, ABANDONED, FAILED = "recorded", "applied", "abandoned", "failed"
CONFLICT = "conflict"
_LARGEST_INTEGER = 2**63 - 1  # of SQLite; a file's mtime may be beyond it
_LATEST_TIME = 253_402_214_400.0  # the last day of the year 9999: later times have no ISO form
_MODE_BITS = 0o777  # the permissions


class Step(Struct, frozen=True):
    """One file of a change set; its texts are named by SHA-256 in hexadecimal digits."""

    path: str
    before: str | None  # the hash of the text before, ``None`` for no file
    after: str | None  # the hash of the text after, ``None`` for no file
    before_mtime_ns: int | None = None
    mode: int | None = None  # of the file before, or of a new file; ``None`` stands for 0600
    after_mtime_ns: int | None = None  # what the new file's mtime must be, ``None`` for any
    temp: str = ""  # the name beside the file for its new content; the journal gives it
    conflict: bool = False  # the file was left as another program wrote it
    purged: bool = False  # one of the two texts was purged

    @property
    def action(self) -> str:
        """The change in one word: created, updated or deleted."""
        if self.before is None:
            return "created"
        return "deleted" if self.after is None else "updated"


class PlannedChange(Struct, frozen=True):
    """A change set to be recorded."""

    directory: str  # its real path
    at: float  # seconds since 1970
    by: Provenance
    request: str  # the client's own id of the request, "" for none
    token: str  # makes its temporary names unique; without one it cannot be applied
    steps: tuple[Step, ...]
    bodies: Mapping[str, bytes]  # by hash
    effects: tuple[Effect, ...] = ()
    conflicts: tuple[str, ...] = ()  # paths that an undo left alone
    merged: tuple[str, ...] = ()  # paths whose text was merged with newer text of others


class ChangeRecord(Struct, frozen=True):
    """A change set as it is stored in the journal; its other fields are as in ``PlannedChange``."""

    number: int
    directory: str
    state: str
    at: float
    by: Provenance
    request: str
    steps: tuple[Step, ...]
    effects: tuple[Effect, ...] = ()
    conflicts: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The change set's id for clients, such as c12."""
        return f"c{self.number}"

    def result(self, *, repeated: bool = False) -> CommitResult:
        """Return the result of this set for its caller, without index files."""
        files = tuple(f for f in file_changes(self.steps) if f.path not in INDEXES)
        return CommitResult(
            self.id,
            files,
            repeated=repeated,
            merged=self.merged,
            conflicts=self.conflicts,
            undone=undone_by(self.effects),
        )

    def change(self) -> Change:
        """Return this set as an entry of the history."""
        return Change(self.id, self.at, self.directory, self.by, file_changes(self.steps))


def file_changes(steps: Iterable[Step]) -> tuple[FileChange, ...]:
    """Return the change of each file of a set, without files that were left alone."""
    return tuple(
        FileChange(step.path, step.action, step.before, step.after, step.purged)
        for step in steps
        if not step.conflict
    )


def read_record(row: Row, steps: tuple[Step, ...]) -> ChangeRecord:
    """Return the change set in a row of ``changes`` with these steps."""
    return ChangeRecord(
        row["id"],
        text_of(row["directory"]),
        text_of(row["state"]),
        time_of(row["at"]),
        _provenance(row),
        text_of(row["request"]),
        steps,
        effects.from_text(row["effects"]),
        *read_result_text(row["conflicts"]),
    )


def read_step(row: Row) -> Step:
    """Return the step in a row of ``change_files``; a damaged row becomes a conflict, a no-op."""
    facts = dict(row)
    facts |= {name: bool(facts.get(name)) for name in ("conflict", "purged")}
    try:
        step = msgspec.convert(facts, Step)
    except msgspec.ValidationError:
        return Step(str(row["path"]), None, None, conflict=True)
    # A damaged mode must not set special bits such as setuid.
    return step if step.mode is None else replace(step, mode=step.mode & _MODE_BITS)


def step_values(step: Step) -> tuple[object, ...]:
    """Return the values of a step for its row."""
    return (
        step.path,
        step.before,
        step.after,
        bounded(step.before_mtime_ns),
        step.mode,
        bounded(step.after_mtime_ns),
        step.temp,
    )


def result_text(conflicts: Sequence[str], merged: Sequence[str]) -> str:
    """Return the conflicts and merged paths of a result as JSON for their column."""
    return json.dumps({"conflicts": conflicts, "merged": merged} if merged else conflicts)


def read_result_text(text: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the conflicts and the merged paths in a column, both empty if it is damaged."""
    result = read_json(text)
    if isinstance(result, dict):
        return _texts(result.get("conflicts")), _texts(result.get("merged"))
    return _texts(result), ()


def _texts(items: object) -> tuple[str, ...]:
    """Return the texts in a list, none for any other value."""
    if not isinstance(items, list):
        return ()
    return tuple(item for item in items if isinstance(item, str))


def bounded(number: int | None) -> int | None:
    """Return a number limited to the 64-bit range of SQLite, ``None`` for ``None``."""
    return None if number is None else max(-_LARGEST_INTEGER, min(number, _LARGEST_INTEGER))


def _provenance(row: Row) -> Provenance:
    """Return who made the change set in a row; an unknown actor counts as external."""
    known = {actor.value for actor in Actor}
    actor = Actor(row["actor"]) if row["actor"] in known else Actor.EXTERNAL
    names = ("client", "session", "model", "reason", "origin")
    return Provenance(actor, *(text_of(row[name]) for name in names))


def text_of(value: Any) -> str:
    """Return a column's value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def time_of(value: Any) -> float:
    """Return a time in seconds since 1970 that has an ISO form, 0 for an invalid value."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(max(0.0, min(value, _LATEST_TIME)))

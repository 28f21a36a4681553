"""Migrate the state file of an older version to the current format.

1 → 2: proposals become change sets of the journal.

2 → 3: change sets may carry suggestions, which an older memd would drop; no row changes.

Rules of this file
- It runs in the transaction that gives the file its new version, so after a crash the file is
  entirely old or entirely new.
- The old file may be damaged: a row that cannot be read becomes a proposal that can only be
  rejected, and no row prevents the file from being opened.
- A proposal keeps its name, which reports, people and recorded change sets refer to.
"""

import os
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from memd.core.text import one_line, read_object, sha256
from memd.core.values import Actor, Provenance
from memd.state.database import Cursor, Row
from memd.state.proposals import Proposal, insert_proposal, intent_of, note_of
from memd.state.proposed import ACCEPTED, OPEN, PROPOSED, REJECTED, FileNote, ProposedEdit, state_of
from memd.state.records import text_of, time_of

_STATES = """
CREATE TABLE IF NOT EXISTS proposal_states (
    number INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    decided REAL,
    reason TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT
"""
_REFUSALS = """
CREATE TABLE IF NOT EXISTS refusals (
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    base TEXT NOT NULL,
    number INTEGER NOT NULL,
    wanted TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (directory, path, base)
) STRICT, WITHOUT ROWID
"""
_SEQUENCE = """
INSERT INTO sqlite_sequence SELECT 'changes', 0
WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'changes')
"""
# Change sets get numbers above all old proposals' numbers, so that no name is used twice.
_NUMBERS = """
UPDATE sqlite_sequence SET seq = max(
    seq,
    (SELECT coalesce(max(number), 0) FROM proposals),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'proposals'), 0)
) WHERE name = 'changes'
"""
_NEW_TABLES = (
    _STATES,  # early files of version 1 do not have these two
    _REFUSALS,
    "ALTER TABLE changes ADD COLUMN decided REAL",
    "ALTER TABLE changes ADD COLUMN proposal TEXT",
    _SEQUENCE,
    _NUMBERS,
)
# As bytes, because one text that is not UTF-8 would make the whole query fail.
_OLD_PROPOSALS = (
    "SELECT p.number, CAST(p.directory AS BLOB) AS directory, CAST(p.job AS BLOB) AS job, p.at,"
    " CAST(p.content AS BLOB) AS content, s.state, s.decided, CAST(s.reason AS BLOB) AS reason"
    " FROM proposals p LEFT JOIN proposal_states s ON s.number = p.number ORDER BY p.number"
)
_OLD_REFUSALS = (
    "SELECT CAST(path AS BLOB) AS path, CAST(reason AS BLOB) AS reason, at FROM refusals"
)
_NAME_CHARACTERS = 1000  # what is longer is from a damaged row
_Name = Annotated[str, msgspec.Meta(max_length=_NAME_CHARACTERS)]


class _OldEdit(msgspec.Struct):
    """An edit as version 1 wrote it; bytes that are not UTF-8 are surrogates in its texts."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=_NAME_CHARACTERS)]
    content: str | None = None
    before: str | None = None
    base: _Name | None = None
    reason: _Name = ""
    merged_into: _Name = ""
    state: Literal["open", "accepted", "rejected"] = "open"
    mtime_ns: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None


def migrate(cursor: Cursor) -> None:
    """Migrate the tables of an older state file, inside the caller's transaction."""
    if int(cursor.execute("PRAGMA user_version").fetchone()[0]) == 1:
        _convert_proposals(cursor)


def _convert_proposals(cursor: Cursor) -> None:
    """Convert all proposals of version 1 to change sets and drop their tables."""
    for statement in _NEW_TABLES:
        cursor.execute(statement)
    cursor.execute("SELECT 1 FROM pragma_table_info('clock_marks') WHERE name = 'proposal'")
    if cursor.fetchone():
        cursor.execute("ALTER TABLE clock_marks DROP COLUMN proposal")
    cursor.execute(_OLD_PROPOSALS)
    for row in cursor.fetchall():
        _convert_proposal(cursor, row)
    for table in ("proposals", "proposal_states", "refusals"):
        cursor.execute(f"DROP TABLE {table}")


def _convert_proposal(cursor: Cursor, row: Row) -> None:
    """Insert an old proposal as a change set, with its files and decisions."""
    content = read_object(_decode(row["content"]))
    edits = _read_edits(content.get("edits"))
    readable_edits = edits or ()
    engine = _clean_text(content.get("engine"))
    model = "" if engine == "local" else engine  # version 1 called the fixed pass "local"
    author = Provenance(Actor.DREAM, model=model, reason="consolidation")
    problems = content.get("problems")
    directory = _decode(row["directory"])
    proposal = Proposal(
        "",
        directory,
        time_of(row["at"]),
        job=_decode(row["job"]),
        said=_clean_text(content.get("said")),
        problems=tuple(map(_clean_text, problems)) if isinstance(problems, list) else (),
        reason=_decode(row["reason"]),
    )
    # realpath raises for a null byte, which a damaged row may have.
    real_path = os.path.realpath(directory) if "\0" not in directory else directory
    change = intent_of(real_path, proposal.at, author, readable_edits)
    intent = replace(change, request=f"p{row['number']}")  # it keeps its name
    note = note_of(proposal, readable_edits)
    decided = None if row["decided"] is None else time_of(row["decided"])
    refusals = _refusals(cursor, row["number"])
    for edit, file in zip(readable_edits, note.files, strict=True):
        _copy_decision(file, edit, decided, refusals.get(edit.path))
    if edits is None:
        note.files = [FileNote()]  # one more than there are, so that it can only be rejected
    state = state_of(edit.state for edit in readable_edits)
    if row["state"] == REJECTED and not edits:
        state = REJECTED
    number = insert_proposal(cursor, intent, note)
    cursor.execute(
        "UPDATE changes SET state = ?, decided = ? WHERE id = ?",
        (PROPOSED if state == OPEN else state, decided, number),
    )


def _copy_decision(
    file: FileNote, edit: ProposedEdit, decided: float | None, refusal: tuple[float, str] | None
) -> None:
    """Copy how a person decided an edit to the file's note, with time and reason."""
    if edit.state == ACCEPTED:
        file.state, file.decided = "accepted", decided
    elif edit.state == REJECTED:
        file.state = "rejected"
        file.decided, file.refusal = refusal or (decided, "")


def _refusals(cursor: Cursor, number: int) -> dict[str, tuple[float, str]]:
    """Return time and reason of each refused file of a proposal, by path."""
    cursor.execute(f"{_OLD_REFUSALS} WHERE number = ?", (number,))
    return {
        _decode(row["path"]): (time_of(row["at"]), _decode(row["reason"]))
        for row in cursor.fetchall()
    }


def _read_edits(items: object) -> tuple[ProposedEdit, ...] | None:
    """Return the edits of an old proposal, ``None`` if they are damaged."""
    try:
        old_edits = msgspec.convert(items, type=list[_OldEdit])
        edits = tuple(_read_edit(old) for old in old_edits)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    # Two edits of one path contradict each other, so the row is damaged.
    distinct_paths = {edit.path for edit in edits}
    return edits if len(edits) == len(distinct_paths) else None


def _read_edit(old: _OldEdit) -> ProposedEdit:
    """Convert an edit of version 1. Raise UnicodeEncodeError for a name that is not UTF-8."""
    for name in (old.path, old.reason, old.merged_into, old.base or ""):
        name.encode()
    content, before = _encode(old.content), _encode(old.before)
    base = old.base
    if base is None:  # the earliest files had none; then a file that was not read stays as it is
        base = "" if before is None else sha256(before)
    reason = one_line(old.reason, _NAME_CHARACTERS)
    return ProposedEdit(
        old.path, content, base, before, reason, old.merged_into, old.state, old.mtime_ns
    )


def _clean_text(value: object) -> str:
    """Return a text that UTF-8 can encode, "" if the value is not a text."""
    return text_of(value).encode(errors="replace").decode()


def _decode(value: object) -> str:
    """Return the text in a column that was read as bytes, "" if it has none."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _encode(text: str | None) -> bytes | None:
    """Return the bytes of a text, ``None`` for ``None``. Raise UnicodeEncodeError if invalid."""
    return None if text is None else text.encode(errors="surrogateescape")

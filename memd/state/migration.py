"""From an older version of the state file to this one.

1 → 2: proposals become change sets of the journal.
2 → 3: change sets may carry suggestions, which an older memd would drop; nothing is rewritten.

Rules of this file
- It runs in the transaction that gives the file its new version, so a crash leaves the old file
  or the new one.
- Old rows are input: one that cannot be read becomes a proposal that can only be rejected, and
  none keeps the file from being opened.
- A proposal keeps the name that reports, people and recorded sets know it by.
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
# A number that was a proposal's is not given to another one.
_NUMBERS = """
UPDATE sqlite_sequence SET seq = max(
    seq,
    (SELECT coalesce(max(number), 0) FROM proposals),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'proposals'), 0)
) WHERE name = 'changes'
"""
_BEFORE = (
    _STATES,  # early files of version 1 do not have these two
    _REFUSALS,
    "ALTER TABLE changes ADD COLUMN decided REAL",
    "ALTER TABLE changes ADD COLUMN proposal TEXT",
    _SEQUENCE,
    _NUMBERS,
)
# As bytes: one text that is no UTF-8 would spoil the reading of all.
_OLD = (
    "SELECT p.number, CAST(p.directory AS BLOB) AS directory, CAST(p.job AS BLOB) AS job, p.at,"
    " CAST(p.content AS BLOB) AS content, s.state, s.decided, CAST(s.reason AS BLOB) AS reason"
    " FROM proposals p LEFT JOIN proposal_states s ON s.number = p.number ORDER BY p.number"
)
_REFUSED = "SELECT CAST(path AS BLOB) AS path, CAST(reason AS BLOB) AS reason, at FROM refusals"
_CHARACTERS = 1000
_Name = Annotated[str, msgspec.Meta(max_length=_CHARACTERS)]


class _OldEdit(msgspec.Struct):
    """An edit as version 1 wrote it; bytes that are no UTF-8 stand in a text as surrogates."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=_CHARACTERS)]
    content: str | None = None
    before: str | None = None
    base: _Name | None = None
    reason: _Name = ""
    merged_into: _Name = ""
    state: Literal["open", "accepted", "rejected"] = "open"
    mtime_ns: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None


def migrate(cursor: Cursor) -> None:
    """Bring a state file of an older version to this one, inside a transaction."""
    if int(cursor.execute("PRAGMA user_version").fetchone()[0]) == 1:
        _proposals_into_changes(cursor)


def _proposals_into_changes(cursor: Cursor) -> None:
    for statement in _BEFORE:
        cursor.execute(statement)
    cursor.execute("SELECT 1 FROM pragma_table_info('clock_marks') WHERE name = 'proposal'")
    if cursor.fetchone():
        cursor.execute("ALTER TABLE clock_marks DROP COLUMN proposal")
    cursor.execute(_OLD)
    for row in cursor.fetchall():
        _move(cursor, row)
    for table in ("proposals", "proposal_states", "refusals"):
        cursor.execute(f"DROP TABLE {table}")


def _move(cursor: Cursor, row: Row) -> None:
    """Write an old proposal down as a change set."""
    content = read_object(_words(row["content"]))
    edits = _edits(content.get("edits"))
    engine = _text(content.get("engine"))
    by = Provenance(Actor.DREAM, model="" if engine == "local" else engine, reason="consolidation")
    problems = content.get("problems")
    directory = _words(row["directory"])
    old = Proposal(
        "",
        directory,
        time_of(row["at"]),
        job=_words(row["job"]),
        said=_text(content.get("said")),
        problems=tuple(map(_text, problems)) if isinstance(problems, list) else (),
        reason=_words(row["reason"]),
    )
    real = os.path.realpath(directory) if "\0" not in directory else directory
    intent = replace(intent_of(real, old.at, by, edits or ()), request=f"p{row['number']}")
    note = note_of(old, edits or ())
    decided = None if row["decided"] is None else time_of(row["decided"])
    refused = _refusals(cursor, row["number"])
    for edit, file in zip(edits or (), note.files, strict=True):
        _decide(file, edit, decided, refused.get(edit.path))
    if edits is None:
        note.files = [FileNote()]  # one more than there are: it cannot be read
    state = state_of(edit.state for edit in edits or ())
    if row["state"] == REJECTED and not edits:
        state = REJECTED
    number = insert_proposal(cursor, intent, note)
    cursor.execute(
        "UPDATE changes SET state = ?, decided = ? WHERE id = ?",
        (PROPOSED if state == OPEN else state, decided, number),
    )


def _decide(
    file: FileNote, edit: ProposedEdit, decided: float | None, refusal: tuple[float, str] | None
) -> None:
    if edit.state == ACCEPTED:
        file.state, file.decided = "accepted", decided
    elif edit.state == REJECTED:
        file.state = "rejected"
        file.decided, file.refusal = refusal or (decided, "")


def _refusals(cursor: Cursor, number: int) -> dict[str, tuple[float, str]]:
    cursor.execute(f"{_REFUSED} WHERE number = ?", (number,))
    return {
        _words(row["path"]): (time_of(row["at"]), _words(row["reason"]))
        for row in cursor.fetchall()
    }


def _edits(items: object) -> tuple[ProposedEdit, ...] | None:
    """Return the edits of an old proposal, ``None`` where they make no sense."""
    try:
        edits = tuple(map(_edit, msgspec.convert(items, type=list[_OldEdit])))
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    return edits if len(edits) == len({edit.path for edit in edits}) else None


def _edit(old: _OldEdit) -> ProposedEdit:
    """Return an edit as it is now. Raises UnicodeEncodeError for a name that is none."""
    for name in (old.path, old.reason, old.merged_into, old.base or ""):
        name.encode()
    content, before = _bytes(old.content), _bytes(old.before)
    base = old.base
    if base is None:  # the first ones did not say; what was not read must not be replaced
        base = "" if before is None else sha256(before)
    reason = one_line(old.reason, _CHARACTERS)
    return ProposedEdit(
        old.path, content, base, before, reason, old.merged_into, old.state, old.mtime_ns
    )


def _text(value: object) -> str:
    return text_of(value).encode(errors="replace").decode()


def _words(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _bytes(text: str | None) -> bytes | None:
    """Return the bytes of a text. Raises UnicodeEncodeError for what memd did not write."""
    return None if text is None else text.encode(errors="surrogateescape")

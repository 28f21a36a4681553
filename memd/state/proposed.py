"""The notes in a proposal's row, and decisions about its files.

A proposal is a change set that a person has to decide about. Its note is a JSON column: why it was
proposed, and the state of each file.

Rules of this file
- The state file may be damaged. A proposal whose note cannot be read, or does not describe as many
  files as there are, can only be rejected as a whole.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from memd.base.text import read_json
from memd.base.values import ProposalDecided
from memd.state.database import Cursor

OPEN, ACCEPTED, PARTLY, REJECTED = "open", "accepted", "partly", "rejected"
PROPOSED = "proposed"  # the state of a change set whose proposal is open
IS_PROPOSAL = f"state IN ('{PROPOSED}', '{ACCEPTED}', '{PARTLY}', '{REJECTED}')"
# SQL for a proposal's name. Proposals of version 1 had numbers of their own and keep their names.
NAME = "coalesce(nullif(request, ''), 'p' || id)"


class FileNote(msgspec.Struct, omit_defaults=True):
    """What a proposal's note says of one file."""

    reason: str = ""  # why the edit was proposed
    merged_into: str = ""  # the memory with which a removed one is merged
    state: Literal["open", "accepted", "rejected"] = "open"
    decided: float | None = None  # when a person decided, in seconds since 1970
    refusal: str = ""  # why a person rejected the edit


class Note(msgspec.Struct, omit_defaults=True):
    """What a proposal's row says beside its files."""

    job: str = ""
    said: str = ""  # the model's last message
    problems: list[str] = []  # why the edits wait for a person; msgspec copies the list
    reason: str = ""  # of the last refusal
    files: list[FileNote] = []  # in the order of the steps


class ProposedEdit(Struct, frozen=True):
    """One file of a proposal: its text before and after; ``None`` if there is no file.

    ``base`` is the hash of the text before, "" for none. ``before`` is ``None`` too if that text
    was not stored. ``merged_into`` names the memory with which a removed one is merged, "" for
    none. ``mtime_ns`` is set if the change must not make the memory look newer.
    """

    path: str
    content: bytes | None
    base: str = ""
    before: bytes | None = None
    reason: str = ""
    merged_into: str = ""
    state: str = OPEN
    mtime_ns: int | None = None


def to_text(note: Note) -> str:
    """Return a note as JSON."""
    return msgspec.json.encode(note).decode()


def read_note(text: object) -> Note | None:
    """Parse a note from JSON; return ``None`` if it is damaged."""
    try:
        return msgspec.json.decode(text if isinstance(text, str) else "", type=Note)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def state_of(states: Iterable[str]) -> str:
    """Return the state of a whole proposal from its files' states: open if one of them is."""
    distinct_states = set(states)
    if OPEN in distinct_states or not distinct_states:
        return OPEN
    return distinct_states.pop() if len(distinct_states) == 1 else PARTLY


def decide(cursor: Cursor, decided: ProposalDecided, at: float) -> None:
    """Store a decision about a proposal, inside a transaction; earlier decisions stay.

    A rejection without paths rejects a whole proposal that cannot be read.
    """
    cursor.execute(
        f"SELECT id, proposal FROM changes WHERE {IS_PROPOSAL} AND {NAME} = ?"  # noqa: S608 - fixed words
        f" AND state = '{PROPOSED}'",
        (decided.proposal,),
    )
    row = cursor.fetchone()
    if row is None or decided.state not in (ACCEPTED, REJECTED):
        return
    note = read_note(row["proposal"]) or Note()
    paths = _read_paths(decided.paths)
    if decided.state == REJECTED and not paths:  # the whole proposal
        state = REJECTED
    else:
        files = _open_files(cursor, row["id"], note, paths)
        for file in files.values():
            file.state = "accepted" if decided.state == ACCEPTED else "rejected"
            file.decided, file.refusal = at, decided.reason
        state = state_of(file.state for file in note.files)
        if not files:
            return
    note.reason = decided.reason or note.reason
    cursor.execute(
        "UPDATE changes SET state = ?, decided = ?, proposal = ? WHERE id = ?",
        (PROPOSED if state == OPEN else state, at, to_text(note), row["id"]),
    )


def _open_files(cursor: Cursor, number: int, note: Note, wanted: set[str]) -> dict[str, FileNote]:
    """Return the notes of those files in ``wanted`` that are still open, by path."""
    cursor.execute("SELECT path FROM change_files WHERE change = ? ORDER BY number", (number,))
    paths = [row["path"] for row in cursor.fetchall()]
    # The note describes other files than there are: none can be decided alone.
    if len(paths) != len(note.files):
        return {}
    pairs = zip(paths, note.files, strict=True)
    return {path: file for path, file in pairs if path in wanted and file.state == OPEN}


def _read_paths(text: str) -> set[str]:
    """Return the paths in a JSON list, without items that are not texts."""
    paths = read_json(text)
    if not isinstance(paths, list):
        return set()
    return {path for path in paths if isinstance(path, str)}

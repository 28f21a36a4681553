"""What a proposal's row says of it beside its files, and how its files are decided.

Rules of this file
- A row is input: anything may have damaged the state file. What cannot be read, or does not say
  as much as there are files, is a proposal that can only be rejected as a whole.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from memd.core.text import read_json
from memd.core.values import ProposalDecided
from memd.state.counted import keep
from memd.state.database import Cursor

OPEN, ACCEPTED, PARTLY, REJECTED = "open", "accepted", "partly", "rejected"
UNUSED = "unused"  # the reason of a change set that asks about memories which nobody used
PROPOSED = "proposed"  # the state of a change set whose proposal is open
IS_PROPOSAL = f"state IN ('{PROPOSED}', '{ACCEPTED}', '{PARTLY}', '{REJECTED}')"
# The state file of version 1 had numbers of its own for proposals; those keep their names.
NAME = "coalesce(nullif(request, ''), 'p' || id)"


class FileNote(msgspec.Struct, omit_defaults=True):
    """What a proposal says of one of its files, and how that file was decided, when and why."""

    reason: str = ""
    merged_into: str = ""
    state: Literal["open", "accepted", "rejected"] = "open"
    decided: float | None = None
    refusal: str = ""


class Note(msgspec.Struct, omit_defaults=True):
    """What a proposal says beside its files; ``reason`` is that of the last refusal."""

    job: str = ""
    said: str = ""
    problems: list[str] = []  # msgspec copies it
    reason: str = ""
    files: list[FileNote] = []


class ProposedEdit(Struct, frozen=True):
    """One file of a proposal: what it was, and what it would be; ``None`` where there is no file.

    ``base`` is the hash of what it was, "" for none. ``before`` may be unknown where there was a
    file. ``merged_into`` names the memory that says what a removed one said, "" for none.
    ``mtime_ns`` is set where the change must not make the memory look newer.
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
    """Return a note from its JSON, ``None`` where it is none."""
    try:
        return msgspec.json.decode(text if isinstance(text, str) else "", type=Note)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def state_of(states: Iterable[str]) -> str:
    """Return the state of a whole proposal by those of its files: open as long as one is."""
    known = set(states)
    if OPEN in known or not known:
        return OPEN
    return known.pop() if len(known) == 1 else PARTLY


def decide(cursor: Cursor, decided: ProposalDecided, at: float) -> None:
    """Let a decision stand, inside a transaction; what is decided already stays as it is.

    A rejection that names no file is that of a whole proposal which cannot be read.
    """
    cursor.execute(
        f"SELECT id, directory, reason, proposal FROM changes WHERE {IS_PROPOSAL} AND {NAME} = ?"  # noqa: S608 - fixed words
        f" AND state = '{PROPOSED}'",
        (decided.proposal,),
    )
    row = cursor.fetchone()
    if row is None or decided.state not in (ACCEPTED, REJECTED):
        return
    note, wanted = read_note(row["proposal"]) or Note(), _paths(decided.paths)
    if decided.state == REJECTED and not wanted:
        state = REJECTED
    else:
        chosen = _chosen(cursor, row["id"], note, wanted)
        if row["reason"] == UNUSED and decided.state == REJECTED:
            keep(cursor, row["directory"], chosen, at)
        for file in chosen.values():
            file.state = "accepted" if decided.state == ACCEPTED else "rejected"
            file.decided, file.refusal = at, decided.reason
        state = state_of(file.state for file in note.files)
        if not chosen:
            return
    note.reason = decided.reason or note.reason
    cursor.execute(
        "UPDATE changes SET state = ?, decided = ?, proposal = ? WHERE id = ?",
        (PROPOSED if state == OPEN else state, at, to_text(note), row["id"]),
    )


def _chosen(cursor: Cursor, number: int, note: Note, wanted: set[str]) -> dict[str, FileNote]:
    """Return what the note says of those wanted files that are open, by path."""
    cursor.execute("SELECT path FROM change_files WHERE change = ? ORDER BY number", (number,))
    paths = [row["path"] for row in cursor.fetchall()]
    if len(paths) != len(note.files):
        return {}
    pairs = zip(paths, note.files, strict=True)
    return {path: file for path, file in pairs if path in wanted and file.state == OPEN}


def _paths(text: str) -> set[str]:
    paths = read_json(text)
    return {path for path in paths if isinstance(path, str)} if isinstance(paths, list) else set()

"""Store proposals: change sets of dreams that a person has to decide about.

Rules of this file
- A proposal is a change set in the state "proposed" while one of its files is open, and "accepted",
  "partly" or "rejected" afterwards. It is never applied: accepted edits become a change set of
  their own, which decides the proposal in the transaction that applies it (``state/effects.py``).
- Its steps have no temporary names. Recovery skips such steps, so a proposal whose state is damaged
  is not applied either.
- A directory has at most twenty open ones; the oldest are dropped. A proposal that equals an open
  one is not stored again.
- Refused edits are remembered by path and by the hash of the refused text, as long as the
  proposal is stored.
"""

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from memd.base.text import one_line, sha256
from memd.base.values import ProposalDecided, Provenance
from memd.state.database import Cursor, Database, Row
from memd.state.journal import Journal, insert
from memd.state.proposed import (
    IS_PROPOSAL,
    NAME,
    OPEN,
    PARTLY,
    PROPOSED,
    REJECTED,
    FileNote,
    Note,
    ProposedEdit,
    decide,
    read_note,
    to_text,
)
from memd.state.records import PlannedChange, Step, text_of, time_of

_MOST_OPEN = 20  # of one directory
# The most that one proposal stores.
_BYTES = 4 * 1024 * 1024  # of its texts
_SAID_CHARACTERS = 20_000
_PROBLEMS = 200
_PROBLEM_CHARACTERS = 1000
_FILES = 2000  # four times what one change may have
_PATH_CHARACTERS = 1000
_REASON_CHARACTERS = 500
_REQUEST_CHARACTERS = 1000  # of what ``refusals`` says was wanted
_MOST_LISTED = 100  # proposals of one result
_SELECT = f"SELECT *, {NAME} AS name FROM changes WHERE {IS_PROPOSAL}"  # noqa: S608 - fixed words


class Proposal(Struct, frozen=True):
    """Edits of a dream that its judge kept back, and that wait for a person.

    Times are seconds since 1970. ``engine`` is a model's name, "" for the fixed pass. ``problems``
    say why the edits were kept back, ``said`` is the model's last message. ``state`` is open,
    accepted, partly or rejected; ``decided`` is the time of the last decision, ``reason`` that of a
    refusal. ``edits`` is ``None`` if the row is damaged or a text was purged, and empty if the
    texts were too large.
    """

    id: str
    directory: str
    at: float
    job: str = ""
    engine: str = ""
    said: str = ""
    problems: tuple[str, ...] = ()
    state: str = OPEN
    decided: float | None = None
    reason: str = ""
    edits: tuple[ProposedEdit, ...] | None = ()


class RefusedEdits(Struct, frozen=True):
    """Edits that a person refused at one time: paths, what was ``wanted``, and the reason."""

    paths: tuple[str, ...]
    wanted: str
    reason: str
    at: float


class ProposalTable:
    """The proposals in the journal. Methods block and raise StateUnusableError.

    A directory may be given by any path that leads to it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._journal = Journal(database)

    def propose(self, proposal: Proposal, by: Provenance) -> str:
        """Store a proposal and return its id, or the id of an open one with the same edits.

        ``by`` decides the engine; the proposal's own ``id``, ``engine`` and ``state`` are ignored.
        """
        with self._database.transaction() as cursor:
            return self._propose(cursor, proposal, by)

    def of_directory(self, directory: str, *, decided: bool = False) -> tuple[Proposal, ...]:
        """Return the open proposals for a memory directory, newest first; all with ``decided``."""
        condition = "directory = ?" if decided else f"directory = ? AND state = '{PROPOSED}'"
        rows = self._rows(f"{condition} ORDER BY id DESC LIMIT {_MOST_LISTED}", _real(directory))
        return tuple(self._read(row) for row in rows)

    def find(self, directory: str, proposal: str) -> Proposal | None:
        """Return a proposal of a memory directory by its id, or ``None``."""
        rows = self._rows(f"directory = ? AND {NAME} = ?", _real(directory), proposal)
        return self._read(rows[0]) if rows else None

    def waiting(self) -> dict[str, int]:
        """Return how many proposals are open, by real directory; those with none are left out."""
        rows = self._database.read(
            f"SELECT directory, count(*) AS found FROM changes WHERE {IS_PROPOSAL}"  # noqa: S608 - fixed words
            f" AND state = '{PROPOSED}' GROUP BY directory"
        )
        return {text_of(row["directory"]): int(row["found"]) for row in rows}

    def waiting_in(self, directory: str) -> int:
        """Return how many proposals of a memory directory are open."""
        return self.waiting().get(_real(directory), 0)

    def decide(self, decided: ProposalDecided, at: float) -> None:
        """Store a decision about a proposal's open files, as ``proposed.decide`` does."""
        with self._database.transaction() as cursor:
            decide(cursor, decided, at)

    def refusals(self, directory: str, limit: int) -> tuple[RefusedEdits, ...]:
        """Return the refused edits of a memory directory, the newest decision first."""
        # By time of the decision, number of the proposal and reason: paths and what was wanted.
        decisions: dict[tuple[float, int, str], list[tuple[str, str]]] = {}
        decided_texts: set[tuple[str, str | None]] = set()  # by path and hash
        for number, step, file in self._refused_files(directory):
            # Only the newest decision about the same text counts.
            if (step.path, step.before) in decided_texts:
                continue
            decided_texts.add((step.path, step.before))
            decision = (file.decided or 0.0, number, file.refusal)
            decisions.setdefault(decision, []).append((step.path, _describe_request(step, file)))
        newest_first = sorted(decisions.items(), key=lambda item: item[0][:2], reverse=True)
        result = []
        for (at, _, reason), edits in newest_first[: max(0, limit)]:
            paths, requests = zip(*edits, strict=True)
            wanted = one_line("; ".join(requests), _REQUEST_CHARACTERS)
            result.append(RefusedEdits(paths, wanted, reason, time_of(at)))
        return tuple(result)

    def refused_edits(self, directory: str) -> frozenset[tuple[str, str]]:
        """Return each refused edit as its path and the hash of the text before it."""
        refused = self._refused_files(directory)
        return frozenset((step.path, step.before or "") for _, step, _ in refused)

    def _refused_files(self, directory: str) -> Iterator[tuple[int, Step, FileNote]]:
        """Yield proposal number, step and note of each refused file, newest first."""
        condition = "directory = ? AND decided IS NOT NULL ORDER BY id DESC"
        for row in self._rows(condition, _real(directory)):
            steps, note = self._journal.steps(row["id"]), read_note(row["proposal"])
            if note is None or len(steps) != len(note.files):  # a damaged row
                continue
            for step, file in zip(steps, note.files, strict=True):
                if file.state == REJECTED:
                    yield row["id"], step, file

    def _propose(self, cursor: Cursor, proposal: Proposal, by: Provenance) -> str:
        """Insert a proposal, or return the id of an open one with the same edits."""
        intent, note = _prepare(proposal, by)
        for row in self._rows(f"directory = ? AND state = '{PROPOSED}'", intent.directory):
            if self._is_same(row, intent, note):
                return text_of(row["name"])
        number = insert(cursor, intent, PROPOSED).number
        cursor.execute("UPDATE changes SET proposal = ? WHERE id = ?", (to_text(note), number))
        _drop_oldest(cursor, intent.directory)
        return f"p{number}"

    def _rows(self, condition: str, *values: object) -> list[Row]:
        """Return the rows of proposals that meet an SQL condition."""
        return self._database.read(f"{_SELECT} AND {condition}", values)

    def _is_same(self, row: Row, intent: PlannedChange, note: Note) -> bool:
        """Return whether an open proposal has the same edits, or the same problems without any."""
        steps = self._journal.steps(row["id"])
        if steps or intent.steps:
            return _edit_keys(steps) == _edit_keys(intent.steps)
        other = read_note(row["proposal"])
        return other is not None and other.problems == note.problems

    def _read(self, row: Row) -> Proposal:
        """Return the proposal in a row, with its texts."""
        note, state = read_note(row["proposal"]), row["state"]
        edits = None if note is None else self._edits(self._journal.steps(row["id"]), note)
        readable_note = note or Note()
        problems = readable_note.problems[:_PROBLEMS]
        decided = row["decided"]
        return Proposal(
            id=text_of(row["name"]),
            directory=text_of(row["directory"]),
            at=time_of(row["at"]),
            job=_storable(readable_note.job, _PATH_CHARACTERS),
            engine=text_of(row["model"]),
            said=_storable(readable_note.said, _SAID_CHARACTERS),
            problems=tuple(_storable(problem, _PROBLEM_CHARACTERS) for problem in problems),
            state=OPEN if state == PROPOSED else state,
            decided=None if decided is None else time_of(decided),
            reason=_storable(readable_note.reason, _REASON_CHARACTERS),
            edits=edits,
        )

    def _edits(self, steps: Sequence[Step], note: Note) -> tuple[ProposedEdit, ...] | None:
        """Return the edits with their texts, ``None`` if they are damaged or a text is missing."""
        if len(steps) != len(note.files) or len(steps) > _FILES:
            return None
        # Two steps of one path: the row is damaged.
        if len({step.path for step in steps}) < len(steps):
            return None
        edits = []
        for step, file in zip(steps, note.files, strict=True):
            content = None if step.after is None else self._journal.blob(step.after)
            is_text_missing = content is None and step.after is not None
            if is_text_missing or step.conflict:
                return None
            before = None if step.before is None else self._journal.blob(step.before)
            edits.append(
                ProposedEdit(
                    step.path,
                    content,
                    step.before or "",
                    before,
                    one_line(file.reason, _REASON_CHARACTERS),
                    file.merged_into[:_PATH_CHARACTERS],
                    file.state,
                    step.after_mtime_ns,
                )
            )
        return tuple(edits)


def _intent_of(
    directory: str, at: float, by: Provenance, edits: Sequence[ProposedEdit]
) -> PlannedChange:
    """Return the change set that holds the edits of a proposal."""
    bodies: dict[str, bytes] = {}
    steps: list[Step] = []
    for edit in edits:
        after = None if edit.content is None else sha256(edit.content)
        if edit.content is not None and after is not None:
            bodies[after] = edit.content
        if edit.before is not None and sha256(edit.before) == edit.base:
            bodies[edit.base] = edit.before
        steps.append(Step(edit.path, edit.base or None, after, after_mtime_ns=edit.mtime_ns))
    return PlannedChange(directory, at, by, "", "", tuple(steps), bodies)


def _note_of(proposal: Proposal, edits: Sequence[ProposedEdit]) -> Note:
    """Return the note for the row of a proposal with these edits, cut to its limits."""
    said = _storable(proposal.said, _SAID_CHARACTERS)
    first_problems = proposal.problems[:_PROBLEMS]
    problems = [_storable(problem, _PROBLEM_CHARACTERS) for problem in first_problems]
    files = [
        FileNote(_storable(one_line(edit.reason, _REASON_CHARACTERS)), _storable(edit.merged_into))
        for edit in edits
    ]
    return Note(proposal.job, said, problems, proposal.reason, files)


def _can_store(edits: Sequence[ProposedEdit]) -> bool:
    """Return whether a proposal can store these edits with their texts."""
    texts = {edit.base: edit.before for edit in edits if edit.before is not None}  # by hash
    texts |= {sha256(edit.content): edit.content for edit in edits if edit.content is not None}
    total_bytes = sum(map(len, texts.values()))
    is_small = len(edits) <= _FILES and total_bytes <= _BYTES
    return is_small and all(map(_is_storable, edits))


def _prepare(proposal: Proposal, by: Provenance) -> tuple[PlannedChange, Note]:
    """Return the change set and note for a proposal, without edits if they are too large."""
    edits = proposal.edits or ()
    intent = _intent_of(_real(proposal.directory), proposal.at, by, edits)
    note = _note_of(proposal, edits)
    if _can_store(edits):
        return intent, note
    sentence = f"the texts of {len(edits)} files are too large to be kept"
    bare_note = _note_of(proposal, ())
    bare_note.problems = [*bare_note.problems[: _PROBLEMS - 1], sentence]
    return _intent_of(intent.directory, proposal.at, by, ()), bare_note


def _drop_oldest(cursor: Cursor, directory: str) -> None:
    """Delete a directory's oldest open proposals beyond the limit.

    One that was partly decided is closed instead, so that its refusals stay known.
    """
    cursor.execute(
        f"SELECT id, decided FROM changes WHERE {IS_PROPOSAL} AND directory = ?"  # noqa: S608 - fixed words
        f" AND state = '{PROPOSED}' ORDER BY id DESC LIMIT -1 OFFSET {_MOST_OPEN}",
        (directory,),
    )
    for row in cursor.fetchall():
        _close(cursor, row)


def _close(cursor: Cursor, row: Row) -> None:
    """Delete an open proposal; close it instead if it was partly decided."""
    if row["decided"] is None:
        cursor.execute("DELETE FROM change_files WHERE change = ?", (row["id"],))
        cursor.execute("DELETE FROM changes WHERE id = ?", (row["id"],))
    else:
        cursor.execute("UPDATE changes SET state = ? WHERE id = ?", (PARTLY, row["id"]))


def _edit_keys(steps: Sequence[Step]) -> set[tuple[str, str | None, str | None]]:
    """Return path, hash before and hash after of each step, to compare two proposals."""
    return {(step.path, step.before, step.after) for step in steps}


def _describe_request(step: Step, file: FileNote) -> str:
    """Return one line that says what the dream requested for a file, and why."""
    if step.after is None:
        if file.merged_into:
            return f"merge {step.path} into {file.merged_into}"
        verb = "remove"
    else:
        verb = "change" if step.before else "create"
    reason = f": {file.reason}" if file.reason else ""
    return one_line(f"{verb} {step.path}{reason}", _REASON_CHARACTERS)


def _is_storable(edit: ProposedEdit) -> bool:
    """Return whether an edit's path is short enough and can be encoded as UTF-8."""
    return len(edit.path) <= _PATH_CHARACTERS and _storable(edit.path) == edit.path


def _storable(text: str, characters: int = _PATH_CHARACTERS) -> str:
    """Return a text cut to ``characters``; characters that UTF-8 cannot encode become ``?``."""
    return text[:characters].encode(errors="replace").decode()


def _real(directory: str) -> str:
    """Return the real path of a directory."""
    return os.path.realpath(directory)

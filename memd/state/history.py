"""Questions that people ask the journal: which changes, up to when, and what became of one file.

Sets are in the order of their numbers. A time stands for the last set at or before it, so that a
clock that was put back does not change the order of what happened.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from memd.core.imports import PastChange
from memd.core.names import INDEX, INDEXES
from memd.core.values import Actor, Change
from memd.state.journal import Journal
from memd.state.records import ChangeRecord, Step

_FILES = 10_000  # of the sets of one answer; what is older comes with the next page
_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sets are meant; what is "" or ``None`` does not matter.

    ``directory`` is a real path; times are seconds since 1970, ``since`` included, ``until`` not;
    ``before`` is the number of a set, ``0`` for none.
    """

    directory: str = ""
    path: str = ""
    actor: Actor | None = None
    session: str = ""
    client: str = ""
    since: float | None = None
    until: float | None = None
    before: int = 0


@dataclass(frozen=True, slots=True)
class CombinedChange:
    """Many sets as one: the first state and the last one of each file that they touched.

    ``gaps`` are files that changed between two of the sets without any set saying so; they are
    not among the steps of ``record``. ``first_index`` is the hash of the index at the beginning.
    """

    record: ChangeRecord
    gaps: tuple[str, ...]
    first_index: str | None


class JournalHistory:
    """The journal as people ask it. All methods block and raise StateUnusableError."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def changes(self, only: Filter, limit: int) -> tuple[Change, ...]:
        """Return the newest sets that a filter lets through, newest first.

        Fewer than there are, but at least one, where they have very many files.
        """
        conditions, values = _where(only)
        result: list[Change] = []
        files = 0
        for record in self._journal.select(conditions, values, limit=limit):
            files += len(record.steps)
            if result and files > _FILES:
                break
            result.append(record.change())
        return tuple(result)

    def last(self, directory: str, at: float = float("inf")) -> int:
        """Return the number of the last set of a directory at or before a time, 0 for none."""
        result = self._journal.select("directory = ? AND at <= ?", (directory, at), limit=1)
        return result[0].number if result else 0

    def between(self, directory: str, first: int, last: int) -> tuple[ChangeRecord, ...]:
        """Return the sets of a directory between two numbers, both included, oldest first."""
        values = (directory, first, last)
        result = self._journal.select("directory = ? AND id BETWEEN ? AND ?", values, limit=_ALL)
        return tuple(reversed(result))

    def of_file(self, directory: str, path: str) -> tuple[ChangeRecord, ...]:
        """Return the sets that touched a file, oldest first, each with its step of it alone.

        The step of the index comes along, for the line that the file had.
        """
        conditions, values = _where(Filter(directory, path))
        result = self._journal.select(conditions, values, limit=_ALL)
        return tuple(
            replace(record, steps=tuple(s for s in record.steps if s.path in {path, INDEX}))
            for record in reversed(result)
            if any(s.path == path and not s.conflict for s in record.steps)
        )

    def done_before(self, directory: str, actor: Actor, steps: Iterable[Step]) -> frozenset[str]:
        """Return the paths of those steps that sets of an actor already made.

        A step of the index counts where only what it begins with is the same: what becomes of
        the index depends on every other file of the set.
        """
        return frozenset(
            step.path
            for step in steps
            if self._journal.select(
                "directory = ? AND actor = ? AND id IN (SELECT change FROM change_files"
                " WHERE path = ? AND before IS ? AND (after IS ? OR path = ?) AND conflict = 0)",
                (directory, actor.value, step.path, step.before, step.after, INDEX),
                limit=1,
            )
        )


def select_past(past: Sequence[PastChange], only: Filter, limit: int) -> tuple[PastChange, ...]:
    """Return those of past changes, oldest first, that a filter lets through, newest first.

    Its directory and ``before`` do not matter: past changes have no numbers.
    """
    return tuple(islice((each for each in reversed(past) if _meets(each, only)), limit))


def _meets(change: PastChange, only: Filter) -> bool:
    pairs = (
        (only.actor and only.actor.value, change.actor),
        (only.session, change.session),
        (only.client, change.client),
    )
    return (
        all(wanted in (None, "", value) for wanted, value in pairs)
        and (not only.path or any(file.path == only.path for file in change.files))
        and (only.since is None or change.at >= only.since)
        and (only.until is None or change.at < only.until)
    )


def compose(records: Iterable[ChangeRecord]) -> CombinedChange | None:
    """Return sets, oldest first, as if they had been one; ``None`` where there is none."""
    first: dict[str, Step] = {}
    last: dict[str, Step] = {}
    gaps: dict[str, None] = {}
    newest: ChangeRecord | None = None
    for newest in records:
        for step in newest.steps:
            if step.conflict:
                continue
            if step.path in last and last[step.path].after != step.before:
                gaps[step.path] = None
            first.setdefault(step.path, step)
            last[step.path] = step
    if newest is None:
        return None
    steps = tuple(
        replace(step, after=last[path].after)
        for path, step in first.items()
        if path not in gaps and step.before != last[path].after
    )
    index = first.get(INDEX)
    return CombinedChange(
        replace(newest, steps=steps, effects=(), conflicts=()),
        tuple(path for path in gaps if path not in INDEXES),
        index.before if index else None,
    )


def _where(only: Filter) -> tuple[str, tuple[object, ...]]:
    parts = [
        (only.directory, "directory = ?"),
        (
            only.path,
            "id IN (SELECT change FROM change_files WHERE path = ? AND conflict = 0)",
        ),
        (only.actor and only.actor.value, "actor = ?"),
        (only.session, "session = ?"),
        (only.client, "client = ?"),
        (only.since, "at >= ?"),
        (only.until, "at < ?"),
        (only.before or None, "id < ?"),
    ]
    given = [(value, words) for value, words in parts if value not in {None, ""}]
    return " AND ".join(["1", *(words for _, words in given)]), tuple(v for v, _ in given)

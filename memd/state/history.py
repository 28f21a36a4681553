"""Queries of the journal for people: change sets by filter, by time, and of one file.

Change sets are ordered by their numbers. A time stands for the last set at or before it, so a clock
that was set back does not change the order.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from memd.base.names import INDEX, INDEXES
from memd.base.values import Actor, Change, Undid
from memd.state.journal import Journal
from memd.state.records import ChangeRecord, Step

_MOST_FILES = 10_000  # in the sets of one result; older sets come with the next page
_NO_LIMIT = 2**63 - 1
_PAGE = 100  # sets that ``not_undone`` reads at once


class Filter(Struct, frozen=True):
    """Conditions on change sets; a field that is "" or ``None`` is no condition.

    ``directory`` is a real path. Times are seconds since 1970, ``since`` included, ``until`` not.
    ``before`` selects sets with smaller numbers, 0 for all.
    """

    directory: str = ""
    path: str = ""
    actor: Actor | None = None
    session: str = ""
    client: str = ""
    since: float | None = None
    until: float | None = None
    before: int = 0


class CombinedChange(Struct, frozen=True):
    """Several change sets as one: the first and the last state of each file that they changed."""

    record: ChangeRecord
    # Files that changed between two of the sets without a set for it; ``record`` lacks their steps.
    gaps: tuple[str, ...]
    first_index: str | None  # the hash of the index before the first set that changed it


class JournalHistory:
    """Queries of the journal. All methods block and raise StateUnusableError."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def changes(self, only: Filter, limit: int) -> tuple[Change, ...]:
        """Return up to ``limit`` sets that meet a filter, newest first.

        There are fewer, but at least one, if together they have more than 10,000 files.
        """
        conditions, values = _where(only)
        result: list[Change] = []
        files = 0
        for record in self._journal.select(conditions, values, limit=limit):
            files += len(record.steps)
            # At least one set, however many files it has.
            if result and files > _MOST_FILES:
                break
            result.append(record.change())
        return tuple(result)

    def last_number(self, directory: str, at: float = float("inf")) -> int:
        """Return the number of a directory's last set at or before a time, 0 if there is none."""
        result = self._journal.select("directory = ? AND at <= ?", (directory, at), limit=1)
        return result[0].number if result else 0

    def sets_between(self, directory: str, first: int, last: int) -> tuple[ChangeRecord, ...]:
        """Return the sets of a directory between two numbers, both included, oldest first."""
        values = (directory, first, last)
        condition = "directory = ? AND id BETWEEN ? AND ?"
        newest_first = self._journal.select(condition, values, limit=_NO_LIMIT)
        return tuple(reversed(newest_first))

    def not_undone(self, directory: str) -> Iterator[ChangeRecord]:
        """Yield the sets of a directory that are neither an undo nor undone, newest first.

        A set is undone if an undo of it is not undone. An undo has a higher number than the sets
        that it takes back, so it is met before them.
        """
        undone: set[int] = set()  # numbers
        spans: list[Undid] = []  # of undos that take back several sets
        before = _NO_LIMIT
        condition = "directory = ? AND id < ?"
        while page := self._journal.select(
            condition, (directory, before), limit=_PAGE, files=False
        ):
            for record in page:
                before = record.number
                if before in undone or any(each.first <= before <= each.last for each in spans):
                    continue
                if record.by.actor is not Actor.UNDO:
                    yield replace(record, steps=self._journal.steps(before))
                for effect in record.effects:
                    if isinstance(effect, Undid) and effect.first == effect.last:
                        undone.add(effect.first)
                    elif isinstance(effect, Undid):
                        spans.append(effect)

    def sets_of_file(self, directory: str, path: str) -> tuple[ChangeRecord, ...]:
        """Return the sets that changed a file, oldest first, with the steps of only that file.

        The step of the index is included, because it has the file's index line.
        """
        conditions, values = _where(Filter(directory, path))
        newest_first = self._journal.select(conditions, values, limit=_NO_LIMIT)
        records: list[ChangeRecord] = []
        for record in reversed(newest_first):
            steps = tuple(step for step in record.steps if step.path in {path, INDEX})
            if any(step.path == path and not step.conflict for step in steps):
                records.append(replace(record, steps=steps))
        return tuple(records)

    def repeated_paths(self, directory: str, actor: Actor, steps: Iterable[Step]) -> frozenset[str]:
        """Return the paths of those steps that applied sets of an actor have made before.

        A step is the same if it has the same path and the same hashes. For the index the hash
        before is enough, since its new text depends on all other files of the set.
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


def compose(records: Iterable[ChangeRecord]) -> CombinedChange | None:
    """Return change sets, given oldest first, combined into one; ``None`` if there are none."""
    first: dict[str, Step] = {}  # by path: the first step of the file
    last: dict[str, Step] = {}  # by path: the last step of the file
    gaps: dict[str, None] = {}  # an ordered set of paths
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
    """Return a filter as an SQL condition with its values."""
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
    given = [(value, condition) for value, condition in parts if value not in {None, ""}]
    conditions = [condition for _, condition in given] or ["1"]  # without a condition all meet it
    return " AND ".join(conditions), tuple(value for value, _ in given)

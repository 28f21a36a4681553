"""How memories are used: counts against a plain model, and a clock that lies."""

import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memd.core.clock_check import DAY_SECONDS, ClockCheck
from memd.core.values import Actor, Provenance
from memd.state.ages import Bound
from memd.state.baseline import Baseline, BaselineChange, FileState
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.ledger import Item, Ledger
from memd.state.records import PlannedChange, Step
from memd.state.renames import renamed_paths
from memd.state.tables import SCHEMAS
from memd.state.usage import SingleUse, UsageTable
from memd.state.uses import UNUSED_DAYS

M, NOW = "/m", 1_760_000_000.0
PATHS = ("a.md", "b.md", "team/a.md", "sub/c.md")
SESSIONS = ("one", "two")
paths, sessions = st.sampled_from(PATHS), st.sampled_from(SESSIONS)


def by(session: str, actor: Actor = Actor.CLIENT) -> Provenance:
    """Return who makes a change."""
    return Provenance(actor, session=session)


def applied(database: Database, who: Provenance, *steps: Step, at: float = NOW) -> None:
    """Journal a change set of ``M`` that was made."""
    journal = Journal(database)
    record = journal.record(PlannedChange(M, at, who, "", "ab", steps, {}))
    journal.mark_applied(record, at)


def surface(database: Database, session: str, path: str, at: float = NOW, mark: str = "1") -> Item:
    """Let a memory go out to a session."""
    ledger = Ledger(database)
    ledger.load(session)
    item = Item(f"{M}/{path}", mark, 10, M, path)
    ledger.mark(session, [item], 10**9, at)
    ledger.flush()
    return item


@dataclass
class Row:
    """What the model knows of a memory."""

    counts: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    event: int = 0  # the counted days at the last event
    gone: int | None = None


class UsageMachine(RuleBasedStateMachine):
    """Random lives of four memories, beside a model that counts with sets and numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = open_database(f"{self.folder.name}/state.db", SCHEMAS)
        self.now, self.days, self.number = NOW, 0, 0
        self.files: dict[str, str] = {}
        self.rows: dict[str, Row] = {}
        self.knows: dict[str, set[str]] = defaultdict(set)

    def teardown(self) -> None:
        """Close the file."""
        self.database.close()
        self.folder.cleanup()

    def fresh(self) -> str:
        """Return a text's hash that was never there, and let a second pass."""
        self.number += 1
        self.now += 1
        return f"{self.number:064x}"

    def used(self, path: str, kind: str, session: str) -> None:
        """Count a use in the model."""
        row = self.rows.setdefault(path, Row(event=self.days))
        row.counts[kind] += 1
        row.event = self.days
        if kind == "surfaced":
            row.sessions.add(session)
        if kind != "acted":
            self.knows[path].add(session)

    def acts(self, path: str, session: str) -> None:
        """Count in the model that a session changed a memory that it knows."""
        if session in self.knows[path]:
            self.used(path, "acted", session)

    @initialize()
    def begin(self) -> None:
        """Have memories that both sessions know, as life mostly finds them."""
        for path in PATHS[:3]:
            self.change(path, "", dream=False)
            for session in SESSIONS:
                self.read(path, session)

    @rule(path=paths, session=sessions, taken_back=st.booleans())
    def surface(self, path: str, session: str, *, taken_back: bool) -> None:
        """Give a memory to a session with a prompt; perhaps the answer is cancelled."""
        if path not in self.files:
            return
        item = surface(self.database, session, path, self.now, self.fresh())
        if taken_back:
            ledger = Ledger(self.database)
            ledger.load(session)
            ledger.unmark(session, [item])
            ledger.flush()
            self.rows.setdefault(path, Row()).event = self.days
        else:
            self.used(path, "surfaced", session)

    @rule(path=paths, session=sessions)
    def read(self, path: str, session: str) -> None:
        """Open a memory as an assistant does."""
        if path in self.files:
            UsageTable(self.database).read(M, path, session, self.now)
            self.used(path, "read", session)

    @rule(path=paths, session=st.sampled_from(("", *SESSIONS)), dream=st.booleans())
    def change(self, path: str, session: str, *, dream: bool) -> None:
        """Write a memory that is there or new."""
        old, new = self.files.get(path), self.fresh()
        actor = Actor.DREAM if dream else Actor.CLIENT
        applied(self.database, by(session, actor), Step(path, old, new), at=self.now)
        if old is not None and not dream:
            self.acts(path, session)
        self.comes(path)
        self.files[path] = new

    @rule(path=paths, session=sessions)
    def write_without_memd(self, path: str, session: str) -> None:
        """Write a file with an assistant's own tools: a look notices, its hook says who it was."""
        old, new = self.files.get(path), self.fresh()
        journal = Journal(self.database)
        step = Step(path, old, new)
        intent = PlannedChange(M, self.now, by("", Actor.EXTERNAL), "", "", (step,), {})
        journal.record_external(intent, BaselineChange())
        self.comes(path)
        journal.attribute(M, {path}, by(session, Actor.ASSISTANT), self.now)
        if old is not None:
            self.acts(path, session)
        self.files[path] = new

    def comes(self, path: str) -> None:
        """Begin or go on in the model."""
        row = self.rows.setdefault(path, Row())
        row.event, row.gone = self.days, None

    @rule(path=paths)
    def delete(self, path: str) -> None:
        """Delete a memory."""
        if path in self.files:
            applied(self.database, by(""), Step(path, self.files.pop(path), None), at=self.now)
            if path in self.rows:
                self.rows[path].gone = self.days

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        """Give a memory another name, where that is free."""
        if old not in self.files or new in self.files:
            return
        key = self.files.pop(old)
        applied(self.database, by(""), Step(old, key, None), Step(new, None, key), at=self.now)
        self.files[new] = key
        if old in self.rows:
            self.rows[new] = self.rows.pop(old)
        self.knows[new] |= self.knows.pop(old, set())
        self.comes(new)

    @rule(days=st.sampled_from((1, 30, UNUSED_DAYS - 1, UNUSED_DAYS)))
    def count_days(self, days: int) -> None:
        """Count some days, and let rows go that are too old."""
        for _ in range(days):
            self.now += DAY_SECONDS + 1
            self.days += 1
            check = ClockCheck(self.now, steady=self.days * DAY_SECONDS)
            bound = Bound(self.now - UNUSED_DAYS * DAY_SECONDS, 1, 1)
            UsageTable(self.database).count_day(check, bound)
        UsageTable(self.database).prune()
        for path, row in list(self.rows.items()):
            if row.gone is not None and row.gone < self.days - UNUSED_DAYS:
                del self.rows[path]
        # What a session was given so long ago is not known any more; the model takes it from
        # the table, which is looked at as a whole here.
        left = UsageTable(self.database).uses(10_000)
        assert all(use.at >= self.now - (UNUSED_DAYS + 1) * DAY_SECONDS for use in left)
        known = {(use.path, use.session) for use in left if use.kind != "acted"}
        for path, names in self.knows.items():
            self.knows[path] = {name for name in names if (path, name) in known}
        surfaced = {(use.path, use.session) for use in left if use.kind == "surfaced"}
        for path, row in self.rows.items():
            forgotten = {name for name in row.sessions if (path, name) not in surfaced}
            row.counts["forgotten"] += len(forgotten)
            row.sessions -= forgotten

    @precondition(lambda self: self.number % 5 == 0)
    @rule()
    def restart(self) -> None:
        """End the daemon, start it again, and look at all files."""
        self.database.close()
        self.database = open_database(f"{self.folder.name}/state.db", SCHEMAS)
        UsageTable(self.database).follow_files(M, self.files, self.now)

    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        """Every row has the counts, and is old as the model says."""
        states = {path: FileState("0") if path in self.files else None for path in PATHS}
        Baseline(self.database).move(M, BaselineChange(states))
        counted = UsageTable(self.database).of(M)
        assert counted.memories.keys() == self.rows.keys()
        for path, row in self.rows.items():
            use = counted.memories[path]
            assert (use.surfaced, use.read, use.acted) == tuple(
                row.counts[kind] for kind in ("surfaced", "read", "acted")
            )
            assert use.sessions == len(row.sessions) + row.counts["forgotten"]
        assert counted.unused == {
            path
            for path, row in self.rows.items()
            if row.event <= self.days - UNUSED_DAYS
            and row.gone is None
            and not path.startswith("team/")
        }


TestUsage = UsageMachine.TestCase
TestUsage.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class LongUsageMachine(UsageMachine):
    """The same, longer and more often."""


TestLongUsage = LongUsageMachine.TestCase
TestLongUsage.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
TestLongUsage.pytestmark = [pytest.mark.soak]  # type: ignore[attr-defined]


def test_a_file_that_was_changed_since_is_no_half_of_a_rename() -> None:
    """A file that once came with the bytes of one that goes now keeps its own counts."""
    life = UsageMachine()
    try:
        life.begin()
        life.delete("team/a.md")
        life.rename("a.md", "team/a.md")
        life.change("a.md", "", dream=False)
        life.delete("team/a.md")
        life.counts_are_those_of_the_model()
    finally:
        life.teardown()


def test_what_was_never_used_has_a_row_too(database: Database) -> None:
    """Files that are there when counting begins are counted from then on; indexes are none."""
    usage = UsageTable(database)
    files = ["a.md", "sub/b.md", "MEMORY.md", "team/MEMORY.md", "logs/2026.md", ".x.md", "note.txt"]
    usage.follow_files(M, files, NOW)
    usage.follow_files(M, files, NOW + 5)
    assert usage.of(M).memories.keys() == {"a.md", "sub/b.md"}
    assert usage.of(M).since == NOW
    assert usage.of("/other").since is None
    assert usage.of(M, ["a.md", "x.md"]).memories.keys() == {"a.md"}


def test_uses_are_listed_newest_first(database: Database) -> None:
    """By kind, session, memory and page."""
    for number, (session, path) in enumerate([("s", "a.md"), ("t", "a.md"), ("s", "b.md")]):
        surface(database, session, path, NOW + number)
    UsageTable(database).read(M, "a.md", "s", NOW + 9)
    uses = partial(UsageTable(database).uses, 10, kind="surfaced")
    newest = SingleUse(3, "surfaced", "s", M, "b.md", NOW + 2)
    assert uses()[0] == newest
    assert [use.id for use in uses()] == [3, 2, 1]
    assert [use.id for use in uses(session="s")] == [3, 1]
    assert [use.id for use in uses(path="a.md", directory=M)] == [2, 1]
    assert [use.id for use in uses(before=3)] == [2, 1]
    assert uses(directory="/other") == ()
    assert [use.kind for use in UsageTable(database).uses(1)] == ["read"]


def test_what_a_session_wrote_itself_was_not_surfaced(database: Database) -> None:
    """The ledger's note that a session has a memory already counts as nothing."""
    ledger = Ledger(database)
    ledger.mark("s", [Item(f"{M}/a.md", "1", 0)], 10, NOW)
    ledger.flush()
    assert UsageTable(database).of(M).memories == {}


@pytest.mark.parametrize("moved", ["bytes", "time", "team"])
def test_a_rename_is_known(database: Database, moved: str) -> None:
    """By the same bytes, the same time under another head, or the way to the team and back."""
    surface(database, "s", "a.md")
    old, new = Step("a.md", "1", None, before_mtime_ns=5), Step("b.md", None, "2")
    if moved == "bytes":
        new = Step("b.md", None, "1")
    elif moved == "time":
        new = Step("b.md", None, "2", after_mtime_ns=5)
    else:
        new = Step("team/a.md", None, "2")
    applied(database, by(""), old, new)
    usage = UsageTable(database).of(M).memories
    assert {path: use.surfaced for path, use in usage.items()} == {new.path: 1}
    assert [use.path for use in UsageTable(database).uses(9)] == [new.path]


def test_a_folder_that_is_renamed_keeps_each_count() -> None:
    """Of files with equal bytes each goes to its own name."""
    steps = [Step(f"old/{n}.md", "same", None) for n in "abc"]
    steps += [Step(f"new/{n}.md", None, "same") for n in "cab"]
    assert renamed_paths(steps) == {f"old/{n}.md": f"new/{n}.md" for n in "abc"}
    assert renamed_paths([Step("a.md", "1", None), Step("b.md", None, "2")]) == {}


def test_rows_are_bounded(database: Database) -> None:
    """Beyond a bound no row begins, and of too many the ones that are gone go first."""
    usage = UsageTable(database, 3)
    usage.follow_files(M, [f"{n}.md" for n in range(9)], NOW)
    assert len(usage.of(M).memories) == 3
    usage.follow_files("/other", ["x.md"], NOW)
    assert usage.of("/other").memories == {}
    for number in range(3):
        applied(database, by(""), Step(f"{number}.md", "1", None), Step(f"x{number}.md", None, "2"))
    usage.prune()
    assert usage.of(M).memories.keys() == {"x0.md", "x1.md", "x2.md"}

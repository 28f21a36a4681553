"""Which memories are unused, whatever the clock says."""

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core.clock_check import DAY_SECONDS, ClockCheck
from memd.core.values import Actor, Provenance
from memd.state.ages import NO_BOUND, Ages
from memd.state.baseline import Baseline, BaselineChange, FileState
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.records import PlannedChange, Step
from memd.state.tables import SCHEMAS
from memd.state.usage import UsageTable
from memd.state.uses import UNUSED_DAYS

M, NOW = "/m", 1_760_000_000.0


def change(database: Database, path: str, at: float) -> None:
    """Journal that a memory was changed."""
    journal = Journal(database)
    steps = (Step(path, "1", "2"),)
    record = journal.record(PlannedChange(M, at, Provenance(Actor.CLIENT), "", "ab", steps, {}))
    journal.mark_applied(record, at)


class Life:
    """A daemon's looks at the clock, as retention does them."""

    def __init__(self, database: Database) -> None:
        self.ages, self.usage = Ages(database), UsageTable(database)
        self.database, self.now, self.monotonic = database, NOW, 0.0
        for path in ("a.md", "b.md", "c.md"):
            self.changed(path)

    def changed(self, path: str, mtime_ns: int = 0) -> None:
        """Let memd know a file as it is."""
        state = FileState("0", mtime_ns=mtime_ns)
        Baseline(self.database).move(M, BaselineChange({path: state}))

    def look(self, seconds: float = 0.0, jump: float = 0.0) -> None:
        """Let time pass and the clock jump, and look."""
        self.monotonic += seconds
        self.now += seconds + jump
        check = self.ages.inspect(self.now, self.monotonic)
        self.usage.count_day(check, self.ages.bound(check, UNUSED_DAYS))

    def days(self, count: int) -> None:
        """Run for some days."""
        for _ in range(count):
            self.look(DAY_SECONDS)

    def unused(self) -> frozenset[str]:
        """Return the memories that count as unused."""
        return self.usage.of(M).unused


def test_ninety_days_make_a_memory_unused(database: Database) -> None:
    """What was there, or came, and was not used in 90 days on which memd ran is unused."""
    life = Life(database)
    life.look()
    life.usage.follow_files(M, ["a.md", "b.md", "c.md"], life.now)
    life.days(85)
    assert life.unused() == set()
    life.usage.read(M, "b.md", "s", life.now)
    change(database, "c.md", life.now)
    life.days(7)
    assert life.unused() == {"a.md"}
    life.changed("a.md", int(life.now * 1e9))
    assert life.unused() == set()
    life.changed("a.md")
    life.days(90)
    assert life.unused() == {"a.md", "b.md", "c.md"}


@pytest.mark.parametrize("jump", [200, 4000, -4000])
def test_a_clock_that_is_set_makes_nothing_unused(database: Database, jump: float) -> None:
    """Ahead or back, at the beginning or later, for however long: only days that passed count."""
    life = Life(database)
    life.look()
    life.usage.follow_files(M, ["a.md"], life.now)
    life.days(3)
    life.look(jump=jump * DAY_SECONDS)
    life.days(80)
    assert life.unused() == set()
    life.look(jump=-jump * DAY_SECONDS)
    life.days(3)
    assert life.unused() == set()
    life.usage.read(M, "b.md", "s", life.now + jump * DAY_SECONDS)
    life.days(89)
    assert "b.md" not in life.unused()
    life.days(2)
    assert ("b.md" in life.unused()) == (jump < 0)  # its time has not come by any clock


@pytest.mark.parametrize("gap", [100, 1000])
def test_time_in_which_nothing_was_counted_proves_nothing(database: Database, gap: int) -> None:
    """A machine that was off, or an older memd that counted nothing, makes nothing unused."""
    life = Life(database)
    life.look()
    life.usage.follow_files(M, ["a.md"], life.now)
    life.days(30)
    life = Life(database)
    life.now += (30 + gap) * DAY_SECONDS
    life.look()
    life.days(50)
    assert life.unused() == set()
    life.days(12)
    assert life.unused() == {"a.md"}


@given(
    st.lists(
        st.tuples(
            st.floats(0, 3 * DAY_SECONDS), st.sampled_from([0, 0, 0, 1, -1, 23 / 24, 90, -90, 400])
        ),
        max_size=60,
    )
)
@settings(max_examples=60, deadline=None)
def test_no_clock_counts_days_that_did_not_pass(looks: list[tuple[float, float]]) -> None:
    """Whatever a clock shows at any look, no more days are counted than half hours passed."""
    folder = tempfile.TemporaryDirectory()
    database = open_database(f"{folder.name}/state.db", SCHEMAS)
    life = Life(database)
    for seconds, jump in looks:
        life.look(seconds, jump * DAY_SECONDS)
    days = database.read("SELECT days FROM usage_days")
    counted = days[0]["days"] if days else 0
    assert counted <= min(len(looks), life.monotonic / 1800)
    database.close()
    folder.cleanup()


def test_a_state_file_that_was_begun_anew_knows_nothing(database: Database) -> None:
    """Without counted days no row is old, whatever its time; a damaged row harms none."""
    usage = UsageTable(database)
    database.write("INSERT INTO usage VALUES ('/m','a.md',1,1,1,1,9e99,-5,NULL,0,0,0,NULL)")
    assert usage.of(M).memories["a.md"].last_surfaced == 253_402_214_400.0
    usage.count_day(ClockCheck(NOW), NO_BOUND)
    Baseline(database).move(M, BaselineChange({"a.md": FileState("0")}))
    assert not usage.of(M).unused

"""Which memories a session has been given."""

import errno
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state.database import Database, StateUnusableError, open_database
from memd.state.ledger import SCHEMA, Item, Ledger, Surfaced, Surfacings
from memd.state.retention import Retention

CAP = 1000
LATER = 24 * 60 * 60.0


def test_a_mark_can_be_taken_back(database: Database) -> None:
    """An answer that never went out leaves no mark, written or not."""
    ledger = Ledger(database)
    ledger.mark("s", [Item("/a", "1", 10)], CAP, 5.0)
    marked, _ = ledger.mark("s", [Item("/b", "1", 20)], CAP, 6.0)
    ledger.flush()
    ledger.unmark("s", marked)
    assert ledger.surfaced("s") == Surfaced(10, {"/a": "1"})
    ledger.flush()
    assert _reopened(database, "s") == Surfaced(10, {"/a": "1"})


def test_the_sessions_used_last_are_kept(database: Database) -> None:
    """Of 1,002 sessions the two that were used longest ago begin anew, whatever the clock said."""
    ledger = Ledger(database)
    for number in (*range(1002), 1):
        ledger.use(f"s{number}", LATER * (number == 1 and ledger.known("s1001")) - number)
        ledger.mark(f"s{number}", [Item("/a", "1", 10)], CAP, 5.0)
    ledger.flush()
    Retention(database, 2**40).batch()
    kept = {row["session"] for row in database.read("SELECT session FROM surfaced")}
    assert {f"s{number}" for number in range(1002)} - kept == {"s0", "s2"}


def test_a_call_of_memctl_leaves_no_mark(database: Database) -> None:
    """A session of one call is not stored, so that none of an assistant goes for it."""
    ledger = Ledger(database)
    ledger.use("memctl-1", 5.0)
    assert ledger.mark("memctl-1", [Item("/a", "1", 10)], CAP, 5.0)[1] == 10
    assert ledger.often_surfaced(0.0, 9.0) == ()
    ledger.mark("s", [Item("/a", "1", 10)], CAP, 5.0)
    assert ledger.often_surfaced(0.0, 9.0) == (Surfacings("/a", 1, 1),)
    assert ledger.often_surfaced(6.0, 9.0) == ()


def test_the_last_use_of_a_session_is_one_row(database: Database) -> None:
    """It is noted once an hour, and the note before goes."""
    ledger = Ledger(database)
    for at in (0.0, 5.0, LATER, 0.0):
        ledger.use("s", at)
        ledger.flush()
    rows = database.read("SELECT id, at FROM surfaced")
    assert [tuple(row) for row in rows] == [(3, 0.0)]


def test_a_fork_begins_with_what_its_parents_were_given(database: Database) -> None:
    """A session inherits marks and bytes, written or not; later each goes its own way."""
    ledger = Ledger(database)
    ledger.use("p", 5.0)
    ledger.mark("p", [Item("/a", "1", 10)], CAP, 5.0)
    ledger.use("f", 6.0, ledger.load("f", lambda: ["p"]))
    assert ledger.mark("f", [Item("/a", "1", 10), Item("/b", "1", 5)], CAP, 6.0)[1] == 15
    ledger.reset("p")
    ledger.flush()
    assert ledger.surfaced("f") == _reopened(database, "f") == Surfaced(15, {"/a": "1", "/b": "1"})
    assert _reopened(database, "p") == Surfaced(0, {})


def test_what_cannot_be_written_waits(database: Database) -> None:
    """A flush that the state file refuses loses nothing: the next one writes it, in order."""
    ledger = Ledger(database)
    ledger.load("s")
    ledger.mark("s", [Item("/a", "1", 10), Item("/b", "1", 10)], CAP, 5.0)
    begin = database.begin

    def fail(_: object) -> None:
        raise OSError(errno.EIO, "injected")

    database.begin = fail  # type: ignore[assignment, method-assign]  # the twin that fails here
    with pytest.raises(StateUnusableError):
        ledger.flush()
    assert not ledger.load("t")  # what can be read is read
    ledger.unmark("s", [Item("/a", "1", 10)])
    database.begin = begin  # type: ignore[method-assign]
    ledger.flush()
    assert _reopened(database, "s") == Surfaced(10, {"/b": "1"})


def test_memory_is_bounded(database: Database) -> None:
    """Sessions beyond a bound leave memory once they are written, and come back from the file."""
    ledger = Ledger(database)
    ledger.load("")
    for number in range(600):
        ledger.use(f"s{number}", 5.0)
        ledger.mark(f"s{number}", [Item("/a", "1", 10)], CAP, 5.0)
        ledger.flush()
        ledger.reset("none")
        ledger.flush()
        ledger.mark("other", [], CAP, 5.0)
    assert ledger.known("s599")
    assert not ledger.known("s0")
    ledger.load("s0")
    assert ledger.surfaced("s0").bytes == 10


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12"), st.integers(0, 500))),
        max_size=6,
    )
)
def test_any_sequence_stays_within_the_cap(rounds: list[list[tuple[str, str, int]]]) -> None:
    """Whatever is asked in whatever order, the sum never passes the cap and nothing repeats."""
    folder = tempfile.TemporaryDirectory()
    database = open_database(f"{folder.name}/state.db", [SCHEMA])
    ledger = Ledger(database)
    sent = []
    for number, row in enumerate(rounds):
        marked, total = ledger.mark("s", [Item(*item) for item in row], CAP, float(number))
        sent += [(item.path, item.fingerprint) for item in marked]
        assert total == ledger.surfaced("s").bytes <= CAP
    assert len(sent) == len(set(sent))
    ledger.flush()
    assert _reopened(database, "s") == ledger.surfaced("s")
    database.close()
    folder.cleanup()


def _reopened(database: Database, session: str) -> Surfaced:
    """Return what a restarted daemon would know of a session."""
    ledger = Ledger(database)
    ledger.load(session)
    return ledger.surfaced(session)

"""Which memories a session has been given."""

import errno
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state.ages import Bound
from memd.state.database import Database, StateUnusableError, open_database
from memd.state.ledger import SCHEMA, Item, Ledger, Sighting, Surfaced

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


def test_what_a_session_was_given_counts_until_nobody_can_resume_it(database: Database) -> None:
    """What was last used before a bound begins anew, by time and number; sightings stay longer."""
    ledger = Ledger(database)
    for session, used in (("over", 1.0), ("resumed", 2.0), ("resumed", LATER), ("behind", 0.0)):
        ledger.use(session, used)
        ledger.mark(session, [Item("/a", "1", 10)], CAP, used)
    ledger.flush()
    newest = database.read("SELECT max(id) AS id FROM surfaced")[0]["id"]
    for_long = Bound(1.0, surfaced=newest)
    ledger.prune(Bound(1.0, surfaced=newest - 2), for_long)
    assert _reopened(database, "over") == Surfaced(10, {"/a": "1"})
    ledger.prune(Bound(3.0, surfaced=newest - 2), for_long)  # the clock was behind at the last two
    assert _reopened(database, "over") == Surfaced(0, {})
    assert (
        _reopened(database, "resumed") == _reopened(database, "behind") == Surfaced(10, {"/a": "1"})
    )
    assert ledger.last_surfaced("", "a") == Sighting("resumed", 2.0)
    ledger.prune(Bound(LATER + 1, surfaced=newest), Bound(LATER + 1, surfaced=newest))
    assert ledger.last_surfaced("", "a") is None


def test_rows_of_an_older_memd_count_from_their_marks(database: Database) -> None:
    """A session whose use was never noted is held to the time of each mark."""
    ledger = Ledger(database)
    ledger.mark("old", [Item("/a", "1", 10), Item("/b", "1", 10)], CAP, 5.0)
    ledger.flush()
    ledger.prune(Bound(6.0, surfaced=1), Bound())
    assert _reopened(database, "old") == Surfaced(10, {"/b": "1"})


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

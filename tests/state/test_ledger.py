"""Which memories a session has been given."""

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state.ages import Bound
from memd.state.database import Database, StateUnusableError, open_database
from memd.state.ledger import SCHEMA, Item, Ledger, Sighting, Surfaced

CAP = 1000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield database
    database.close()


def test_what_is_marked_is_surfaced(database: Database) -> None:
    """A mark counts for its session and no other, with its bytes."""
    ledger = Ledger(database)
    marked, total = ledger.mark("s", [Item("/m/a.md", "1", 10), Item("/m/b.md", "1", 20)], CAP, 5.0)
    assert ([item.path for item in marked], total) == (["/m/a.md", "/m/b.md"], 30)
    assert ledger.surfaced("s") == Surfaced(30, {"/m/a.md": "1", "/m/b.md": "1"})
    assert ledger.surfaced("other") == Surfaced(0, {})


def test_a_version_goes_out_once_and_a_changed_file_again(database: Database) -> None:
    """The same fingerprint is never marked twice; a new one is, and its bytes add up."""
    ledger = Ledger(database)
    ledger.mark("s", [Item("/m/a.md", "1", 10)], CAP, 5.0)
    assert ledger.mark("s", [Item("/m/a.md", "1", 10)], CAP, 6.0) == ((), 10)
    again, total = ledger.mark("s", [Item("/m/a.md", "2", 15)], CAP, 7.0)
    assert (len(again), total) == (1, 25)
    assert ledger.surfaced("s").paths == {"/m/a.md": "2"}


def test_the_cap_holds_and_smaller_ones_still_fit(database: Database) -> None:
    """What would pass the cap is left out; what comes after and fits goes out."""
    ledger = Ledger(database)
    marked, total = ledger.mark(
        "s", [Item("/a", "1", 600), Item("/b", "1", 600), Item("/c", "1", 400)], CAP, 5.0
    )
    assert ([item.path for item in marked], total) == (["/a", "/c"], CAP)


def test_reset_begins_anew_and_keeps_the_last_sighting(database: Database) -> None:
    """After a reset everything may come again, and why still knows when it last went out."""
    ledger = Ledger(database)
    item = Item("/m/sub/a.md", "1", 10)
    ledger.mark("s", [item], CAP, 5.0)
    ledger.reset("s")
    assert ledger.surfaced("s") == Surfaced(0, {})
    assert ledger.last_surfaced("/m", "sub/a.md") == Sighting("s", 5.0)
    assert ledger.mark("s", [item], CAP, 6.0) == ((item,), 10)
    assert ledger.last_surfaced("/m", "sub/a.md") == Sighting("s", 6.0)
    assert ledger.last_surfaced("/m", "b.md") is None


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


def test_old_rows_go(database: Database) -> None:
    """Rows of sessions that never ended do not stay for ever."""
    ledger = Ledger(database)
    ledger.mark("old", [Item("/a", "1", 10)], CAP, 5.0)
    ledger.mark("new", [Item("/a", "1", 10)], CAP, 7.0)
    ledger.mark("behind", [Item("/a", "1", 10)], CAP, 1.0)
    ledger.flush()
    ledger.prune(Bound(6.0, surfaced=2))
    assert _reopened(database, "old") == Surfaced(0, {})
    assert _reopened(database, "behind") == Surfaced(10, {"/a": "1"})
    assert ledger.last_surfaced("", "a") == Sighting("new", 7.0)


def test_it_outlives_the_daemon(tmp_path: Path) -> None:
    """A restart forgets nothing that was written, and only sessions with rows need a look."""
    path = str(tmp_path / "state.db")
    first = open_database(path, [SCHEMA])
    ledger = Ledger(first)
    ledger.mark("s", [Item("/a", "1", 10)], CAP, 5.0)
    ledger.reset("s")
    ledger.mark("s", [Item("/b", "1", 20)], CAP, 6.0)
    ledger.flush()
    first.close()
    second = open_database(path, [SCHEMA])
    again = Ledger(second)
    assert not again.known("s")
    again.load("s")
    assert again.known("s")
    assert again.known("new")
    assert again.surfaced("s") == Surfaced(20, {"/b": "1"})
    assert again.mark("s", [Item("/b", "1", 20)], CAP, 7.0) == ((), 20)
    second.close()


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
    ledger.unmark("s", [Item("/a", "1", 10)])
    database.begin = begin  # type: ignore[method-assign]
    ledger.flush()
    assert _reopened(database, "s") == Surfaced(10, {"/b": "1"})


def test_memory_is_bounded(database: Database) -> None:
    """Sessions beyond a bound leave memory once they are written, and come back from the file."""
    ledger = Ledger(database)
    ledger.load("")
    for number in range(600):
        ledger.mark(f"s{number}", [Item("/a", "1", 10)], CAP, 5.0)
        ledger.flush()
        ledger.reset("none")
        ledger.flush()
        ledger.mark("other", [], CAP, 5.0)
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


def test_looking_at_what_fits_marks_nothing(database: Database) -> None:
    """What would be marked is told without being marked, each version once and within the cap."""
    ledger = Ledger(database)
    items = [Item("a", "1", 6), Item("a", "1", 6), Item("b", "1", 6), Item("c", "1", 4)]
    fitting = ledger.fitting("s", items, 10)
    assert fitting == (items[0], items[3])
    assert ledger.surfaced("s").bytes == 0
    assert ledger.mark("s", items, 10, 1.0) == (fitting, 10)

"""What each session was given, as the state file has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.state.database import Database, open_database
from memd.state.ledger import Delivery, Item, Ledger
from memd.store.forget import keep_newest

ONE, OTHER = (Item(f"/m/{name}.md", name * 64, 40) for name in "ab")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield database
    database.close()


def give(ledger: Ledger, session: str, *items: Item, at: float = 1.0) -> tuple[Item, ...]:
    """Give items to a session as a prompt does; return those that are sent."""
    ledger.open(session, at)
    marked, _ = ledger.mark(Delivery(session), items, 100, at)
    ledger.flush()
    return marked


def given(database: Database, session: str) -> set[str]:
    """Return the paths that a new ledger reads for a session."""
    return set(Ledger(database).open(session, 9.0, use=False).paths)


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_cancelled_delivery_marks_nothing(database: Database, *, is_marked: bool) -> None:
    """Whether it is cancelled before it marks or after, the memory may come with the next."""
    ledger, delivery = Ledger(database), Delivery("s")
    ledger.open("s", 1.0)
    if is_marked:
        ledger.mark(delivery, [ONE], 100, 1.0)
        ledger.flush()
    ledger.cancel(delivery)
    ledger.mark(delivery, [OTHER], 100, 1.0)
    ledger.flush()
    assert given(database, "s") == set()
    assert give(ledger, "s", ONE) == (ONE,)


def test_marks_survive_and_are_inherited(database: Database) -> None:
    """A new ledger knows a session's marks; a fork begins with them; a reset spares some."""
    ledger = Ledger(database)
    assert give(ledger, "s", ONE, OTHER) == (ONE, OTHER)
    assert give(Ledger(database), "s", ONE) == ()
    ledger.open("fork", 2.0, lambda: ["s"])
    ledger.reset("s", [ONE.path])
    ledger.flush()
    assert given(database, "fork") == {ONE.path, OTHER.path}
    assert given(database, "s") == {ONE.path}


def test_the_oldest_sessions_go_whole(database: Database) -> None:
    """Of more than 1,000 sessions those used last stay, and no row of any other does."""
    ledger = Ledger(database)
    give(ledger, "first", ONE)
    for number in range(1000):
        ledger.open(f"s{number}", 2.0)
    give(ledger, "s0", OTHER)
    keep_newest(database)
    assert given(database, "first") == set()
    assert given(database, "s0") == {OTHER.path}
    assert ledger.last_surfaced("/m", "a.md") is None
    assert [row[0] for row in database.read("SELECT path FROM given_path")] == [OTHER.path]

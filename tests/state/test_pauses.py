"""What holds background work up, kept over restarts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.state import pauses
from memd.state.database import open_database
from memd.state.pauses import Breaker, Pauses


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Pauses]:
    """Open a state file with these tables alone."""
    opened = open_database(str(tmp_path / "state.db"), [pauses.SCHEMA])
    yield Pauses(opened)
    opened.close()


def test_a_pause_begins_once(rows: Pauses) -> None:
    """The first pause stands until work is resumed."""
    assert rows.since() is None
    rows.pause(5.0)
    rows.pause(6.0)
    assert rows.since() == 5.0
    rows.resume()
    assert rows.since() is None


def test_a_breaker_is_kept_by_directory(rows: Pauses) -> None:
    """The last of a directory's breakers is kept until it is forgotten."""
    first, second = Breaker("/b", 1, 1.0, 1.0, "x"), Breaker("/b", 2, 2.0, 3.0, "y")
    other = Breaker("/a", 1, 1.0, 1.0, "z")
    for row in (first, other, second):
        rows.save(row)
    assert rows.breakers() == (other, second)
    rows.forget("/b")
    rows.forget("/c")
    assert rows.breakers() == (other,)

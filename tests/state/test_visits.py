"""The last visit to each memory directory."""

import pytest

from memd.state.database import Database
from memd.state.visits import Visit, Visits

HERE = Visit("/p", "c", {"MEMD_BASE_DIR": "/b"}, session="s")
DAY = 86_400.0


def _times(database: Database) -> list[float]:
    return [row["at"] for row in database.read("SELECT at FROM visits ORDER BY at")]


def test_the_same_visit_is_written_once_a_day(database: Database) -> None:
    """A visit that tells nothing new costs no write, whichever way the clock went."""
    table = Visits(database)
    for at in (DAY, DAY + 5.0, 1.5):
        table.remember("/m", HERE, at)
    assert _times(database) == [DAY]
    table.remember("/m", HERE, 2 * DAY)
    assert _times(database) == [2 * DAY]
    table.remember("/m", HERE, DAY)
    assert _times(database) == [DAY]


@pytest.mark.parametrize("text", ["no json", "[1]", "[" * 9999, '{"a": 1}'])
def test_a_damaged_visit_forwards_nothing(database: Database, text: str) -> None:
    """What is no mapping of texts is left out; the visit itself is still told."""
    with database.transaction() as cursor:
        cursor.execute("INSERT INTO visits VALUES ('/m', '/p', 'c', ?, 1.0)", (text,))
    assert Visits(database).all() == (Visit("/p", "c", {}),)

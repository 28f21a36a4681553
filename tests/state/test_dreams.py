"""What dreams must not forget."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.state import dreams
from memd.state.database import open_database
from memd.state.dreams import DreamTable, LockRow


@pytest.fixture
def table(tmp_path: Path) -> Iterator[DreamTable]:
    """Open a state file with the tables of dreams alone."""
    opened = open_database(str(tmp_path / "state.db"), [dreams.SCHEMA])
    yield DreamTable(opened)
    opened.close()


def test_a_lock_is_remembered_until_it_is_settled(table: DreamTable) -> None:
    """Each directory has one row, with times of any size and with none."""
    first = LockRow("/a", 12, 2**70, None)
    second = LockRow("/b", 13, 5, -(2**70))
    for row in (second, LockRow("/a", 1, 1, 1), first):
        table.remember(row)
    assert table.locks() == (first, second)
    table.forget("/a")
    table.forget("/unknown")
    assert table.locks() == (second,)

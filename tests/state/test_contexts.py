"""What was decided about conversations, in the state file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.core.limits import STORED_BYTES
from memd.state import contexts
from memd.state.contexts import ContextRow, ContextTable, ContextTotals, DecisionRow
from memd.state.database import open_database

ROW = ContextRow(
    "/p/s/tool-results", "", 5.0, model="m", tokens=7, request="{}", breaks=1, missed=9
)
OTHER = replace(ROW, folder="/p/s2/tool-results", at=6.0)
KEEP: DecisionRow = ("t1", "ab", "keep", "", "", 0)
SPILL: DecisionRow = ("t2", "cd", "spill", "its beginning", "/p/s/tool-results/t2.txt", 8)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ContextTable]:
    """Open a state file with these tables alone, and save two sessions."""
    database = open_database(str(tmp_path / "state.db"), [contexts.SCHEMA])
    made = ContextTable(database)
    made.save(ROW, [KEEP, SPILL])
    made.save(OTHER)
    yield made
    database.close()


def test_rows_come_back_as_they_were_saved(table: ContextTable) -> None:
    """Those planned last first; a conversation and a decision have one row each."""
    assert table.decisions(ROW.folder) == (KEEP, SPILL)
    assert table.rows("") == (OTHER, ROW)
    assert table.rows("", 1) == (OTHER,)
    assert table.rows("/p/s/") == (ROW,)
    assert table.row(ROW.folder, "") == ROW
    assert table.row(ROW.folder, "agent") is None
    again, later = (*KEEP[:2], "clear", "gone", "/x", 1), replace(ROW, at=9.0)
    table.save(later, [again])
    assert table.decisions(ROW.folder) == (again, SPILL)
    assert table.rows("") == (later, OTHER)


def test_paths_of_more_than_one_session_are_nobody_s_own(table: ContextTable) -> None:
    """A fork's decisions name the files of the session that it came from; each counts once."""
    assert table.own_results(ROW.folder) == ((SPILL[0], *SPILL[4:]),)
    table.save(OTHER, [SPILL])
    assert table.own_results(ROW.folder) == table.own_results(OTHER.folder) == ()
    assert table.stored() == (1, 8)
    assert table.forget(ROW.folder) == 3
    assert table.own_results(OTHER.folder) == ((SPILL[0], *SPILL[4:]),)
    assert (table.rows(""), table.decisions(ROW.folder)) == ((OTHER,), ())


def test_the_sessions_planned_longest_ago_are_too_many(table: ContextTable) -> None:
    """Beyond 1,000 sessions, or with them beyond the room for results, the oldest are named."""
    assert table.surplus() == ()
    for number in range(999):
        table.save(replace(ROW, folder=f"/{number}/tool-results", at=100.0 + number))
    assert table.surplus() == (ROW.folder,)
    large = ("t9", "ab", "spill", "its beginning", "/9/tool-results/t9.txt", STORED_BYTES)
    table.save(replace(ROW, folder="/9/tool-results", at=500.5), [large])
    assert {ROW.folder, "/9/tool-results", "/8/tool-results"} <= {*table.surplus()}
    assert "/998/tool-results" not in table.surplus()


def test_all_is_counted(table: ContextTable) -> None:
    """Conversations, stored results, their bytes, and lost caches."""
    assert table.totals() == ContextTotals(2, 1, 8, 2, 18)

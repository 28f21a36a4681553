"""Change sets as values, and what becomes of rows that nobody wrote."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.text import iso_time
from memd.base.values import Actor
from memd.state import journal
from memd.state.records import (
    read_record,
    read_result_text,
    read_step,
    result_text,
)

CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
)


@pytest.fixture(scope="module")
def rows() -> Iterator[sqlite3.Connection]:
    """Open a state file in memory."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.executescript(journal.SCHEMA)
    yield connection
    connection.close()


@given(st.lists(CELLS, min_size=12, max_size=12))
def test_any_row_becomes_a_set_that_can_be_told(
    rows: sqlite3.Connection, cells: list[object]
) -> None:
    """Whatever a row of changes holds, its texts are texts and its time has an ISO form."""
    names = "directory state at actor client session model reason origin request effects conflicts"
    query = f"SELECT 1 AS id, {', '.join(f'? AS {name}' for name in names.split())}"
    record = read_record(rows.execute(query, cells).fetchone(), ())
    words = (record.directory, record.state, record.request, *record.conflicts, record.by.reason)
    assert {type(word) for word in words} == {str}
    assert datetime.fromisoformat(iso_time(record.at)).tzinfo is UTC or record.at == 0
    assert record.change().by.actor in Actor


@given(st.lists(CELLS, min_size=8, max_size=8))
def test_any_row_becomes_a_step_that_is_sane_or_none(
    rows: sqlite3.Connection, cells: list[object]
) -> None:
    """A step has texts, whole numbers and permission bits, or it is left alone by everybody."""
    names = "path before after before_mtime_ns mode after_mtime_ns temp conflict"
    query = f"SELECT {', '.join(f'? AS {name}' for name in names.split())}"
    step = read_step(rows.execute(query, cells).fetchone())
    assert isinstance(step.path, str)
    assert step.conflict or step.mode is None or 0 <= step.mode <= 0o777
    assert step.conflict or isinstance(step.temp, str)


def test_only_lists_of_texts_hold_texts() -> None:
    """Anything but a JSON list holds no paths, and what is no text in it is left out."""
    assert read_result_text('["a", 1, "b"]') == (("a", "b"), ())
    assert [read_result_text(value) for value in ("{}", "x", None, b"[]", 3)] == [((), ())] * 5


def test_what_was_merged_is_told_beside_the_conflicts() -> None:
    """Both lists of paths come back as they went in."""
    assert read_result_text(result_text(("a",), ())) == (("a",), ())
    assert read_result_text(result_text(("a",), ("b", "c"))) == (("a",), ("b", "c"))
    assert read_result_text('{"merged": 3, "conflicts": ["a", 1]}') == (("a",), ())

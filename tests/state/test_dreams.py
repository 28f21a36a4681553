"""What dreams must not forget."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.state import dreams, job_rows
from memd.state.database import open_database
from memd.state.dreams import DreamTable, LockRow
from memd.state.jobs import JobState, JobTable, NewJob


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


@pytest.mark.parametrize(
    ("directory", "taken", "prior"),
    [
        (b"/b", b"soon", None),
        (b"/b", b"5", b""),
        (b"/b", b"9" * 5000, b"1"),
        (b"/b\0", b"5", b"5"),
        (b"/\xff", b"5", b"5"),
        (b"/b", b"\xff", b"5"),
        (b"/b", b"5", b"\xff"),
    ],
)
def test_a_damaged_row_keeps_nothing_from_starting(
    table: DreamTable, tmp_path: Path, directory: bytes, taken: bytes, prior: bytes | None
) -> None:
    """A lock's row that memd did not write is none; the others are told."""
    good = LockRow("/a", 12, 5, None)
    table.remember(good)
    with sqlite3.connect(tmp_path / "state.db") as other:
        insert = (
            "INSERT INTO dream_locks SELECT CAST(? AS TEXT), 1, CAST(? AS TEXT), CAST(? AS TEXT)"
        )
        other.execute(insert, (directory, taken, prior))
    other.close()
    assert table.locks() == (good,)


def test_damaged_results_of_dreams_remove_nothing(tmp_path: Path) -> None:
    """Of results that memd did not write only what can be read counts."""
    path = tmp_path / "jobs.db"
    opened = open_database(str(path), [dreams.SCHEMA, job_rows.SCHEMA])
    rows = JobTable(opened)
    few = '{"change": "c1", "lost": {"b.md": 7, "c.md": "8", "d.md": -1}}'
    mixed = '{"change": "c1", "lost": [8], "removed": [7, {}, {"path": 8}, {"path": "a.md"}]}'
    for result in ("no json", "[1]", '{"change": 1, "removed": 5}', "[" * 9999, few, mixed):
        job = rows.add(NewJob("dream", "/m", "/m", "", {}), 200.0)
        rows.start(job, 200.0)
        rows.finish(job, JobState.COMPLETED, 200.0, result={})
        with sqlite3.connect(path) as other:
            other.execute(
                "UPDATE jobs SET result = ? WHERE number = (SELECT max(number) FROM jobs)", [result]
            )
        other.close()
    assert DreamTable(opened).removed_since("/m", 150.0) == (frozenset({"a.md"}), {"b.md": 7})
    opened.close()


def test_what_dreams_removed_lately_is_known(tmp_path: Path) -> None:
    """Removals of dreams that changed something count, here and since then, and nothing else."""
    opened = open_database(str(tmp_path / "jobs.db"), [dreams.SCHEMA, job_rows.SCHEMA])
    rows = JobTable(opened)

    def dreamt(
        at: float, result: dict[str, Any], *, kind: str = "dream", where: str = "/m"
    ) -> None:
        job = rows.add(NewJob(kind, where, where, "", {}), at)
        rows.start(job, at)
        rows.finish(job, JobState.COMPLETED, at, result=result)

    def gone(*paths: str, change: str | None = "c1") -> dict[str, Any]:
        removed = [{"path": path, "reason": "over"} for path in paths]
        return {"removed": removed, "change": change}

    dreamt(100.0, gone("old.md"))
    dreamt(200.0, gone("a.md", "b.md"))
    dreamt(300.0, {"change": "c2", "lost": {"c.md": 50}})
    dreamt(310.0, {"change": "c3", "lost": {"c.md": 40}})
    dreamt(300.0, {"change": None, "lost": {"c.md": 80}})
    dreamt(300.0, gone("kept.md", change=None))
    dreamt(300.0, gone("x.md"), kind="extract")
    dreamt(300.0, gone("y.md"), where="/other")
    failed = rows.add(NewJob("dream", "/m", "/m", "", {}), 300.0)
    rows.start(failed, 300.0)
    rows.finish(failed, JobState.FAILED, 300.0, error={"kind": "x", "message": "y"})
    assert DreamTable(opened).removed_since("/m", 150.0) == (
        frozenset({"a.md", "b.md"}),
        {"c.md": 90},
    )
    opened.close()

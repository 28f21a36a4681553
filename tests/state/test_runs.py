"""The records of agents' runs."""

from pathlib import Path

from memd.state.database import open_database
from memd.state.runs import SCHEMA, Runs


def test_a_damaged_record_has_no_turns(tmp_path: Path) -> None:
    """What is no list of turns is left out."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    for job, turns in (("j1", "no json"), ("j2", "{}"), ("j3", '[1, {"turn": 1}]')):
        with database.transaction() as cursor:
            cursor.execute("INSERT INTO runs (job, turns, at) VALUES (?, ?, 1.0)", (job, turns))
    runs = Runs(database)
    assert [runs.of(job) for job in ("j1", "j2", "j3")] == [[], [], [{"turn": 1}]]
    database.close()

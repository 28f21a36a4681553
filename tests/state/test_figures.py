"""What the state file holds, in numbers."""

from memd.core.names import INDEX, TEAM_INDEX
from memd.state.changes import Baseline, BaselineChange, FileState
from memd.state.database import Database
from memd.state.formats import FORMAT
from memd.state.tables import SCHEMAS, Figures, JobState, JobTable, NewJob


def test_jobs_are_counted_by_state(database: Database) -> None:
    """Each state that there is has its number, parked ones are counted as well, and who runs."""
    table, figures = JobTable(database), Figures(database, SCHEMAS)
    assert figures.counts().jobs == {}
    ids = [table.add(NewJob("extract", "/m", "/m", f"s{n}", {"x": n}), 1.0) for n in range(4)]
    table.start(ids[0], 2.0)
    table.finish(ids[0], JobState.FAILED, 3.0, error={"kind": "x"}, parked=True)
    table.start(ids[1], 2.0)
    table.finish(ids[1], JobState.COMPLETED, 3.0, result={})
    table.start(ids[2], 4.0)
    counts = figures.counts()
    assert counts.jobs == {"queued": 1, "running": 1, "completed": 1, "failed": 1, "parked": 1}
    assert [(row.job, row.kind, row.since) for row in counts.running] == [(ids[2], "extract", 4.0)]


def test_memories_are_counted_without_indexes(database: Database) -> None:
    """What memd knows of all directories counts, but for lists of the others; once a minute."""
    states = {path: FileState("h") for path in (INDEX, TEAM_INDEX, "a.md", "b/c.md")}
    baseline, figures = Baseline(database), Figures(database, SCHEMAS)
    baseline.move("/m", BaselineChange(states))
    baseline.mark_scanned("/m", 1.0)
    size = figures.size(0.0)
    assert (size.memories, size.surfaced, size.read) == (2, 0, 0)
    assert size.bytes > 0
    baseline.move("/m", BaselineChange({"d.md": FileState("h")}))
    assert (figures.size(59.0), figures.size(60.0).memories) == (size, 3)


def test_each_table_has_its_rows(database: Database) -> None:
    """All tables of the schema are there and no other, whoever made one."""
    database.write("CREATE TABLE secret (words TEXT)")
    JobTable(database).add(NewJob("extract", "/m", "/m", "s", {}), 1.0)
    tables = Figures(database, SCHEMAS).tables()
    assert (tables.schema, tables.rows["jobs"], tables.rows["changes"]) == (FORMAT, 1, 0)
    assert "secret" not in tables.rows
    assert len(tables.rows) > 30
    assert tables.bytes + tables.log_bytes >= tables.used_bytes > 0

"""What the state file holds, in numbers."""

from memd.state.database import Database
from memd.state.tables import Figures, JobState, JobTable, NewJob


def test_jobs_are_counted_by_state(database: Database) -> None:
    """Each state that there is has its number, parked ones are counted as well, and who runs."""
    table, figures = JobTable(database), Figures(database)
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

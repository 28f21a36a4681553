"""Session notes without a daemon, for tests of what keeps them."""

import os

from memd.agent.runs import Runs
from memd.base.clock import Clock
from memd.jobs.service import Jobs
from memd.notes.service import Notes
from memd.state.database import Database
from memd.state.docs import Docs
from memd.state.jobs import JobTable
from tests.extract.bench import NoModel
from tests.stores import Sink, projects_in
from tests.support.calls import callers_in


def no_statements(_text: str, _before: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find nothing that a person wants to be remembered."""
    return (), ()


def notes_of(clock: Clock, database: Database) -> Notes:
    """Return notes that the local writer keeps."""
    return Notes(
        clock,
        NoModel(),
        Runs(Docs(database)),
        config_dir="/none",
        find_statements=no_statements,
        callers=callers_in("/", database, clock),
        projects=projects_in("/", database),
        jobs=Jobs(JobTable(database, os.getpid()), clock, Sink(), on_unexpected=repr),
        remember=lambda _session, _cache: None,
    )

"""What the tests of the jobs start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from tests.jobs.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a state file and what stands around it."""
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield Bench(database)
    database.close()

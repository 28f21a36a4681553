"""A register and its parts, with a clock and processes that a test moves."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.messages.service import Register
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from tests.messages.processes import ProcessTable
from tests.support.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    """Return a clock that only the test moves."""
    return FakeClock()


@pytest.fixture
def processes() -> ProcessTable:
    """Return a table without processes."""
    return ProcessTable()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield opened
    opened.close()


@pytest.fixture
def begin(database: Database, clock: FakeClock, processes: ProcessTable) -> Callable[[], Register]:
    """Return what makes a register over the state file, as each start of the daemon does."""

    def make() -> Register:
        return Register(Docs(database), processes, clock.now, clock.monotonic)

    return make


@pytest.fixture
def register(begin: Callable[[], Register]) -> Register:
    """Return a register in which nobody is."""
    return begin()

"""A state file for each test of the room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.state.database import Database, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file with all tables."""
    opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield opened
    opened.close()

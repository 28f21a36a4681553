"""A shelf of two memories, a state file, and recall over both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.recall.service import Recall
from memd.state.database import Database, open_database
from memd.state.ledger import SCHEMA, Ledger
from tests.recall.shelf import Shelf, remembering


@pytest.fixture
def shelf() -> Shelf:
    """Return two memories that have nothing in common."""
    shelf = Shelf()
    shelf.put(
        "freeze.md", "Merge freeze for the mobile release", "Begins on 2026-03-05.\nEnds later."
    )
    shelf.put("pnpm.md", "User prefers pnpm over npm", "Use pnpm for installs.")
    return shelf


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield database
    database.close()


@pytest.fixture
def recall(shelf: Shelf, database: Database) -> Recall:
    """Return recall over the shelf."""
    return remembering(shelf, Ledger(database))

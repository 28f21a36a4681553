"""A storage for each test of the room, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.clusters import cluster, database, missing
from tests.server.desk import Desk, open_desk

POSTGRES = pytest.param(
    "postgres",
    marks=[
        pytest.mark.postgres,
        pytest.mark.skipif(bool(missing()), reason=missing() or "there is a PostgreSQL"),
    ],
)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Run one PostgreSQL for all tests and give its address."""
    with cluster() as address:
        yield address


@pytest.fixture(params=["sqlite", POSTGRES])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the address of an empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "data" / "team.db")
    else:
        with database(request.getfixturevalue("postgres")) as made:
            yield made


@pytest.fixture
def desk(address: str) -> Iterator[Desk]:
    """Open a storage with a repository and no members."""
    with open_desk(address) as opened:
        yield opened

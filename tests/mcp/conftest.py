"""Fixtures for the tests of the bridge."""

from collections.abc import Iterator

import pytest

from tests.cli.home import Home, throw_away_home


@pytest.fixture(name="home")
def _home() -> Iterator[Home]:
    """Give a HOME of the test's own."""
    with throw_away_home() as home:
        yield home

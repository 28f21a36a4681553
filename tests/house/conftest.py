"""What the tests of the house rules share."""

import gc
from collections.abc import Iterator

import pytest

from tests.house.source import sources


@pytest.fixture(autouse=True, scope="package")
def _trees() -> Iterator[None]:
    """Give back the memory of the syntax trees, some 350 MiB, after the last of these tests."""
    yield
    sources.cache_clear()
    gc.unfreeze()

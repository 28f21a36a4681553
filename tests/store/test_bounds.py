"""However many directories a client names, the store remembers a bounded number of them."""

from pathlib import Path

import pytest

from memd.core import limits
from tests.store.home import Home, state

pytestmark = pytest.mark.anyio


async def test_many_directories_leave_a_bounded_number_of_locks(tmp_path: Path) -> None:
    """After more looks than the bound, locks and spellings are as many as the bound."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        store = Home(tmp_path, database).store
        for number in range(limits.DIRECTORIES + 20):
            await store.history(f"{tmp_path}/none-{number}")
    held = (store._locks, store._spelled)
    assert [len(each) for each in held] == [limits.DIRECTORIES] * 2

"""Any interleaving of requests, failures, kills, pauses and restarts keeps the promises of 4.3."""

from pathlib import Path
from random import Random

import pytest

from tests.jobs.interleaving import Story

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("part", range(2))
async def test_nothing_accepted_is_lost_or_done_twice(tmp_path: Path, part: int) -> None:
    """Jobs of a project never overlap, the oldest goes first, and each message counts once."""
    await _live(tmp_path, part * 75, 10)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
async def test_the_same_for_long(tmp_path: Path, part: int) -> None:
    """Five thousand stories hold as well."""
    await _live(tmp_path, 10_000 + part * 1250, 1250)


async def _live(folder: Path, first: int, stories: int) -> None:
    for number in range(first, first + stories):
        below = folder / str(number)
        below.mkdir()
        await Story(below, Random(number)).run()  # noqa: S311 - a story, not a secret

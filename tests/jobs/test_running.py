"""What is asked of those who run jobs."""

from typing import Any

import pytest

from memd.jobs.running import Running, UnknownJobKindError, runner_of


async def run(_running: Running) -> dict[str, Any]:
    """Run nothing."""
    return {}


def test_a_kind_without_a_runner_is_told() -> None:
    """A row may be of another memd's kind; that is an error with its name."""
    assert runner_of({"extract": run}, "extract") is run
    with pytest.raises(UnknownJobKindError) as caught:
        runner_of({"extract": run}, "paint")
    assert "paint" in caught.value.sentence

"""What holds of every request that goes out by a plan (``properties``), over random stories.

Between two requests memd is restarted, clients are resumed, forked, cut back and compacted, and
settings change; the state file and the stored results are real.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.context.clients import Step
from tests.context.planners import StoredPlanner
from tests.context.properties import check
from tests.context.stories import play

PARTS = 4
EACH, ALL = 10, 2_500  # stories of a part


class Seen:
    """Checks each step and counts what happened, so that stories without events do not pass."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, step: Step) -> None:
        """Check a step."""
        check(step)
        decisions = {k: d for k, d in step.known_now.items() if step.known.get(k) != d}
        self.counts.update(decision.action for decision in decisions.values())
        self.counts["resent"] += step.request.place < len(step.before)
        self.counts["missed"] += step.missed


def played(folder: Path, seeds: range) -> Counter[str]:
    """Play stories and return what happened in them."""
    seen = Seen()
    for seed in seeds:
        below = folder / str(seed)
        below.mkdir()
        with StoredPlanner(below) as planner:
            play(seed, planner, str(below), seen)
    return seen.counts


@pytest.mark.parametrize("part", range(PARTS))
def test_what_goes_out_holds(tmp_path: Path, part: int) -> None:
    """Prefixes stay, nothing is lost, and the API takes all of it, whatever happens between."""
    counts = played(tmp_path, range(part * EACH, (part + 1) * EACH))
    assert min(counts[name] for name in ("keep", "spill", "resent", "missed")) >= EACH // 10


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_for_ten_thousand(tmp_path: Path, part: int) -> None:
    """Ten thousand stories hold as well."""
    counts = played(tmp_path, range(1_000 + part * ALL, 1_000 + (part + 1) * ALL))
    assert min(counts[n] for n in ("keep", "spill", "clear", "drop", "resent", "missed")) >= 50

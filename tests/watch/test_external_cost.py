"""A look at everything costs little for each file that nobody has touched."""

import sys
from pathlib import Path
from types import FrameType

from memd.state.baseline import Baseline
from memd.watch.external import DetectionScope, ExternalEdits
from tests.store.bench import Bench, open_bench, topic

LATER = DetectionScope(2e10)  # at a time when every status vouches for its file
FILES = 200


def test_an_unchanged_file_costs_a_look_little(tmp_path: Path) -> None:
    """A look after a restart makes few calls for each file whose status is the one it knows."""
    costs = []
    with open_bench(tmp_path) as bench:
        for number in range(2 * FILES):
            bench.save(f"{number}.md", topic(str(number), "text"))
            if number % FILES == FILES - 1:
                _external(bench).detect(bench.directory, LATER)
                costs.append(_calls(bench))
    assert (costs[1] - costs[0]) / FILES < 20


def _external(bench: Bench) -> ExternalEdits:
    return ExternalEdits(bench.journal, Baseline(bench.database))


def _calls(bench: Bench) -> int:
    """Return how many functions a look by a new process calls, those of C among them."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    external, before = _external(bench), sys.getprofile()
    sys.setprofile(count)
    try:
        assert external.detect(bench.directory, LATER).change is None
    finally:
        sys.setprofile(before)
    return calls

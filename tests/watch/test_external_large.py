"""Large files that others overwrite or delete: kept up to a bound, beyond it named."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from memd.core import limits
from memd.state.baseline import Baseline
from memd.watch import external
from memd.watch.external import DetectionScope, ExternalEdits
from tests.store.bench import Bench, open_bench, topic
from tests.watch.test_external import Looking

MIB = 1024 * 1024


@pytest.fixture
def looking(tmp_path: Path) -> Iterator[Looking]:
    """Open a bench that looks at an empty directory."""
    with open_bench(tmp_path) as bench:
        opened = Looking(bench)
        opened.inspect()
        yield opened


def text(size: int) -> bytes:
    """Return so many bytes that are no two times the same, and hard to pack."""
    return os.urandom(size // 2).hex().encode().ljust(size, b"\n")


@pytest.mark.parametrize("size", [limits.MEMORY_BYTES + 1, MIB, limits.READ_BYTES])
@pytest.mark.parametrize("seen_first", [True, False])
def test_a_large_file_comes_back(tmp_path: Path, size: int, *, seen_first: bool) -> None:
    """What another program deletes or overwrites comes back to the byte, known since when ever."""
    one, two = text(size), text(size)
    with open_bench(tmp_path) as bench:
        looking = Looking(bench)
        if not seen_first:
            looking.inspect()
        bench.save("big.md", one)
        looking.inspect()
        bench.save("big.md", two)
        overwritten = looking.change()
        (bench.path / "big.md").unlink()
        deleted = looking.change()
        for change, wanted in ((deleted, two), (overwritten, one)):
            assert change is not None
            assert "too large" not in change.by.reason
            assert bench.undo(change.id).conflicts == ()
            assert bench.topics() == {"big.md": wanted}


def test_what_is_too_large_is_named(looking: Looking) -> None:
    """A change whose texts are beyond the bound says so, and its undo leaves the file alone."""
    bench = looking.bench
    bench.save("big.md", text(limits.READ_BYTES + 1))
    bench.save("small.md", b"kept\n")
    came = looking.change()
    (bench.path / "big.md").unlink()
    (bench.path / "small.md").unlink()
    went = looking.change()
    for change in (came, went):
        assert change is not None
        assert change.by.reason.endswith("too large to be kept for an undo: big.md")
    assert went is not None
    assert bench.undo(went.id).conflicts == ("big.md",)
    assert bench.topics() == {"small.md": b"kept\n"}


def test_a_look_holds_a_bounded_part_in_memory(looking: Looking) -> None:
    """Of very much at once what is beyond the bound is named; a first sight keeps all of it."""
    bench = looking.bench
    files = external._LOOK_BYTES // (2 * MIB) + 4
    for number in range(files):
        bench.save(f"{number}.md", text(4 * MIB))
    change = looking.change()
    assert change is not None
    lost = [step for step in change.steps if not bench.journal.has_body(step.after or "")]
    assert 0 < len(lost) < files
    assert all(step.path in change.by.reason for step in lost[: external._NAMED_FILES])


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

"""Results on a disk that hangs: they stay in the conversation, and nobody waits for long."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from memd.context.keeping import TIMEOUT
from memd.context.requests import SpilledResult
from memd.context.values import KEEP
from memd.testing.faults import FaultyDisk
from tests.context.bench import LARGE, TALK, Bench

pytestmark = pytest.mark.anyio


async def test_a_disk_that_hangs_leaves_the_result_where_it_is(tmp_path: Path) -> None:
    """After some seconds; another conversation is planned meanwhile."""
    go_on = threading.Event()

    def hang(name: str, _: str) -> None:
        if name == "fsync":
            go_on.wait(60)

    bench = Bench(tmp_path, disk=FaultyDisk(before=hang), seconds=0.2)
    with closing(bench):
        planned = await bench.plan(TALK)
        assert (planned.edits, planned.decisions[0].action) == ((), KEEP)
        assert planned.problems == (f"t1: {TIMEOUT}",)
        other = await bench.plan(TALK[:1], session="other")
        assert other.status == "ok"
        spilled = await bench.contexts.spill(
            bench.request([]), tool="Bash", tool_use_id="t9", content=LARGE
        )
        assert (spilled.spilled, spilled.reason) == (False, TIMEOUT)
        go_on.set()
        assert (await bench.plan(TALK)).edits == ()


async def test_a_disk_that_hangs_holds_few_threads(tmp_path: Path) -> None:
    """However many results come meanwhile, all are answered, and stored once it works again."""
    go_on = threading.Event()

    def hang(*_: str) -> None:
        go_on.wait(60)

    bench = Bench(tmp_path, disk=FaultyDisk(before=hang), seconds=0.1)
    before = threading.active_count()

    async def spill(session: str) -> SpilledResult:
        request = bench.request([], session=session)
        return await bench.contexts.spill(request, tool="Bash", tool_use_id="t", content=LARGE)

    with closing(bench):
        for number in range(8):
            assert (await spill(f"s-{number}")).reason == TIMEOUT
        assert threading.active_count() - before <= 6
        go_on.set()
        while not (await spill("s")).spilled:
            pass

"""A dream that is cancelled, late or fails leaves the lock's time and the memories as they were.

Or it had committed by then: all of its change is there, and the lock has its time. Kills, and
calls that the system refuses, are in tests/crash/test_dream.py; races in tests/soak/test_locks.py.
"""

import errno
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.agent.runs import Runs
from memd.base.errors import MemdError
from memd.base.values import Tree
from memd.daemon.app import SCHEMAS
from memd.dream.lock import lock_rows
from memd.dream.run import MINUTES
from memd.dream.service import Dreams
from memd.dream.values import DreamReport, Wanted
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from memd.state.proposals import ProposalTable
from memd.store import lock
from memd.store.disk import Disk
from memd.store.store import Store
from tests.dream.bench import DAY, NOW, Bench, NoModel
from tests.support.faults import Countdown, FaultyDatabase, FaultyDisk

pytestmark = pytest.mark.anyio

Content = dict[str, tuple[bytes, int]]
FACT = (
    "Deploys go out on the second day after the weekly review, and the on-call engineer of that "
    "week watches the dashboards for an hour before anybody else merges to the main branch."
)
PRIOR = NOW - 3 * DAY + 0.123456
PRIORS = (None, PRIOR)


@contextmanager
def _opened(folder: Path, prior: float | None) -> Iterator[Bench]:
    """Set up three memories, two of them the same, and a lock file where wanted."""
    folder.mkdir()
    database = open_database(str(folder / "state.db"), SCHEMAS)
    bench = Bench(folder, database)
    bench.write("a.md", FACT)
    bench.write("b.md", FACT)
    bench.write("c.md", "The cache is flushed by hand.")
    if prior is not None:
        bench.lock(prior)
    try:
        yield bench
    finally:
        database.close()


def _content(bench: Bench) -> Content:
    """Return all texts and times, but the time of the index, which no dream sets."""
    index = "MEMORY.md"
    return {
        name: (text, 0 if name == index else at) for name, (text, at) in bench.content().items()
    }


class _Watched:
    """Work that is told on, each time that it waits: at the ``at``-th wait something is done."""

    def __init__(self, work: Coroutine[Any, Any, Any], at: int, act: Callable[[], None]) -> None:
        self.waits = 0
        self._work = work
        self._at = at
        self._act = act

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._work.__await__()
        step: Callable[[], Any] = partial(inner.send, None)
        while True:
            try:
                waited = step()
            except StopIteration as done:
                return done.value
            self.waits += 1
            if self.waits == self._at:
                self._act()
            try:
                value = yield waited
            except BaseException as raised:  # noqa: BLE001 - whatever it is, it is for the work
                step = partial(inner.throw, raised)
            else:
                step = partial(inner.send, value)


async def _after(folder: Path, prior: float | None) -> tuple[Content, int]:
    """Return what a dream that nobody disturbs leaves, and how often it waits."""
    with _opened(folder, prior) as bench:
        watched = _Watched(bench.run(bench.dreams()), 0, lambda: None)
        report = await watched
        assert report.change
        return _content(bench), watched.waits


@pytest.mark.parametrize("prior", PRIORS)
async def test_a_cancellation_at_any_wait(tmp_path: Path, prior: float | None) -> None:
    """Wherever a dream waits it can be cancelled, and nothing is half done."""
    after, waits = await _after(tmp_path / "whole", prior)
    ends = set()
    for at in range(1, waits + 1):
        with _opened(tmp_path / str(at), prior) as bench:
            before = _content(bench)
            with anyio.CancelScope() as scope:
                await _Watched(bench.run(bench.dreams()), at, scope.cancel)
            results = _content(bench)
            assert results in (before, after), at
            assert lock_rows(Docs(bench.database)) == ()
            ends.add(results == after)
    assert ends == {False, True}
    assert waits > 8


async def test_a_timeout_at_any_wait(tmp_path: Path) -> None:
    """Wherever a dream waits its time may be up, and nothing is half done."""
    after, waits = await _after(tmp_path / "whole", PRIOR)
    ends = set()
    for at in range(1, waits + 1):
        with _opened(tmp_path / str(at), PRIOR) as bench:
            before = _content(bench)
            overdue = partial(bench.clock.advance, MINUTES * 60)
            with suppress(MemdError):
                await _Watched(bench.run(bench.dreams()), at, overdue)
            results = _content(bench)
            assert lock_rows(Docs(bench.database)) == ()
            ends.add(results == before)
            if results != before:  # the clock may have moved before the lock was taken
                assert results.pop(lock.LOCK)[1] >= after[lock.LOCK][1]
                assert results == {name: after[name] for name in after if name != lock.LOCK}, at
    assert ends == {False, True}


class _PassFailedError(MemdError):
    """The pass gave up."""

    code = 1004
    kind = "dream_timeout"

    def __init__(self) -> None:
        super().__init__("no")


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("failure", [ZeroDivisionError, _PassFailedError])
async def test_a_pass_that_fails(
    tmp_path: Path, prior: float | None, failure: type[Exception]
) -> None:
    """Whether a pass gives up or breaks, nothing is different afterwards."""

    def work(_tree: Tree) -> Wanted:
        raise failure

    with _opened(tmp_path / "home", prior) as bench:
        before = _content(bench)
        with pytest.raises((ExceptionGroup, MemdError)):
            await bench.run(bench.dreams(work))
        assert _content(bench) == before
        assert lock_rows(Docs(bench.database)) == ()


def _dreams(bench: Bench, disk: Disk | None, database: Database) -> Dreams:
    store = Store(database, bench.clock, bench.sink, disk=disk)
    return Dreams(
        store,
        database,
        ProposalTable(database),
        bench.clock,
        models=NoModel(),
        runs=Runs(Docs(database)),
    )


async def _trial(bench: Bench, countdown: Countdown, *, of_disk: bool) -> DreamReport | None:
    """Dream on a disk or a state file of which one call fails; return the report, if any."""
    disk = FaultyDisk(countdown) if of_disk else None
    database = bench.database if of_disk else FaultyDatabase(bench.database, countdown)
    with suppress(MemdError):
        return await bench.run(_dreams(bench, disk, database))
    return None


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("of_disk", [True, False])
async def test_a_commit_that_fails(tmp_path: Path, prior: float | None, of_disk: bool) -> None:  # noqa: FBT001 - which of the two fails
    """At whichever call of the disk or the state file, the next start finds before or after."""
    after, _ = await _after(tmp_path / "whole", prior)
    number, reached, ends = 0, True, set()
    while reached:
        number += 1
        with _opened(tmp_path / str(number), prior) as bench:
            before = _content(bench)
            countdown = Countdown(number, errno.EIO)
            report = await _trial(bench, countdown, of_disk=of_disk)
            reached = countdown.reached
            await bench.store.recover()
            await bench.dreams().recover()
            results = _content(bench)
            assert results in (before, after), number
            assert results == after or report is None, number
            assert lock_rows(Docs(bench.database)) == ()
            ends.add(results == after)
    assert ends == {False, True}
    assert number > 8

"""Dreams whose model fails, hangs, or may not be asked."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from memd.dream.run import MINUTES, DreamFailedError, DreamTimeoutError
from memd.model.errors import (
    CapReachedError,
    ModelError,
    ModelNotConfiguredError,
    ModelRefusedError,
    ModelUnauthorisedError,
    ModelUnavailableError,
)
from tests.dream.bench import DAY, NOW, Bench
from tests.dream.scripts import ANA, filled, merging, read, write
from tests.scripted_model import HANG, Answer, calls, says

pytestmark = pytest.mark.anyio
CAP = CapReachedError("dream", "dollars_per_day", 1.0, "tomorrow")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with a few memories."""
    with filled(tmp_path) as made:
        yield made


async def test_without_success_nothing_is_mended(bench: Bench) -> None:
    """Where a mending fails what the first run wanted is the proposal."""
    script: tuple[Answer, ...] = (
        read("deploys.md", "rollbacks.md"),
        calls(write("rollbacks.md", "removed: merged into deploys.md"), first=10),
        says("Merged."),
        ModelUnavailableError("it broke off"),
    )
    dreaming, model = bench.taught(*script)
    report = await bench.run(dreaming)
    assert (report.proposal is not None, len(model.requested)) == (True, 4)
    assert (report.said, report.turns) == ("Merged.", 3)
    assert bench.proposals.waiting_in(str(bench.memory)) == 1  # the same request is one proposal


@pytest.mark.parametrize(
    "answers",
    [
        [calls(("Glob", {"pattern": "*"}))],
        [says("I cannot", stop="refusal")],
        [ModelUnavailableError("it broke off")],
    ],
)
async def test_a_model_that_does_not_finish_did_nothing(
    bench: Bench, answers: list[Answer]
) -> None:
    """Looping, refusing or gone: the job fails in words, and all is as it was, the lock too."""
    bench.lock(NOW - 3 * DAY)
    before = bench.content()
    dreaming, model = bench.taught(read("deploys.md"), *answers)
    job = bench.job()
    with pytest.raises(DreamFailedError) as caught:
        await bench.run(dreaming, job)
    assert (caught.value.of_model, caught.value.retryable) == (True, True)
    assert len(model.requested) <= 30
    assert bench.content() == before
    assert bench.table.locks() == ()
    assert bench.runs.of(job)[0]["turn"] == 1


@pytest.mark.parametrize(
    "error",
    [
        CAP,
        ModelNotConfiguredError("no key"),
        ModelUnauthorisedError("bad key"),
        ModelRefusedError(404, "no such model"),
    ],
)
async def test_who_cannot_be_asked_today_is_replaced(bench: Bench, error: ModelError) -> None:
    """At a cap or a closed door the fixed pass does it; the report says why and what it cost."""
    bench.write("again.md", f"{ANA}\n")
    dreaming, _ = bench.taught(read("deploys.md"), error)
    report = await bench.run(dreaming)
    assert (report.engine, report.model_problem) == ("local", error.sentence)
    assert (report.turns, len(report.merged)) == (0, 1)
    assert report.usage.input == 100
    (change,) = await bench.store.history(str(bench.memory))
    assert (change.by.model, change.by.origin) == ("", "")


async def test_a_cancelled_model_leaves_its_record_and_nothing_else(bench: Bench) -> None:
    """Cancelled while a model hangs, a dream ends with everything as it was but its record."""
    bench.lock(NOW - 3 * DAY)
    before = bench.content()
    *script, _ = merging(bench)
    dreaming, model = bench.taught(*script, HANG)
    job = bench.job()
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await bench.run(dreaming, job)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while len(model.requested) < 3:
                await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert scope.cancelled_caught
    assert bench.content() == before
    assert bench.table.locks() == ()
    assert len(bench.runs.of(job)) == 2


async def test_a_model_that_hangs_ends_with_the_dreams_time(bench: Bench) -> None:
    """The time of a dream covers all of it; what was written until then is not kept."""
    before = bench.content()
    *script, _ = merging(bench)
    dreaming, model = bench.taught(*script, HANG)
    failures: list[Exception] = []

    async def run() -> None:
        try:
            await bench.run(dreaming)
        except (DreamTimeoutError, DreamFailedError) as error:
            failures.append(error)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while len(model.requested) < 3:
                await anyio.lowlevel.checkpoint()
            bench.clock.advance(MINUTES * 60 * 0.95)
    (failure,) = failures
    assert isinstance(failure, DreamFailedError)
    assert failure.facts["reason"] == "time"
    assert bench.content() == before

"""A program as a model: whatever it does, it is bounded, told in words, and nothing of it stays."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.base.settings import ModelSettings, Settings, SpendSettings
from memd.daemon.app import SCHEMAS
from memd.model import presets, processes
from memd.model.command import ProgramModel, ProgramRuns
from memd.model.configured import Models
from memd.model.errors import (
    CapReachedError,
    ModelError,
    ModelReplyError,
    ModelUnavailableError,
    ProgramFailedError,
)
from memd.model.patient import overdue
from memd.model.processes import StartedProgram
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from memd.state.spend import SpendTable
from tests.model.asks import ask
from tests.model.programs import STUB, Stub
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield opened
    opened.close()


@pytest.fixture
def stub() -> Iterator[Stub]:
    """Hold a stub whose processes are ended."""
    made = Stub()
    yield made
    made.end()


@pytest.fixture
def runs(database: Database, tmp_path: Path) -> ProgramRuns:
    """Hold the runs of programs."""
    environ = dict(os.environ) | {"OPENAI_API_KEY": "k", "SECRET": "s"}
    return ProgramRuns(environ, str(tmp_path), Docs(database))


MINE = {processes.MARK: "another"}


def started(argv: tuple[str, ...], environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start a program as an earlier daemon did."""
    return subprocess.Popen(argv, env=environ, start_new_session=True)


def model(runs: ProgramRuns, settings: ModelSettings) -> ProgramModel:
    """Return the model that settings name."""
    program = presets.program(settings)
    assert not isinstance(program, str)
    return ProgramModel(program, runs)


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ("hangs", overdue(0.7)),
        ("deaf", overdue(0.7)),
        ("forks", overdue(0.7)),
        ("floods", ModelReplyError(cause="it is longer than any reply")),
        ("fails", ProgramFailedError(1, "please sign in first")),
        (" ", ModelReplyError(cause="it holds no answer")),
    ],
)
async def test_a_program_that_misbehaves_is_bounded(
    stub: Stub, runs: ProgramRuns, database: Database, behaviour: str, problem: ModelError
) -> None:
    """The error says what happened, no process is left, no row and no directory."""
    seconds = 0.7 if isinstance(problem, ModelUnavailableError) else 60.0
    with pytest.raises(type(problem)) as raised:
        await model(runs, stub.settings(behaviour)).ask(ask(seconds=seconds))
    assert raised.value.sentence == problem.sentence
    assert stub.left() == []
    assert Docs(database).list_all(StartedProgram) == {}
    assert not (Path(database.path).parent / "model").exists()


async def test_a_program_sees_only_what_it_needs(stub: Stub, runs: ProgramRuns) -> None:
    """Its directory is empty, its group its own, and no key of another program is there."""
    printed = (await model(runs, stub.settings("environment")).ask(ask())).text
    assert "[] True" in printed
    assert processes.MARK in printed
    assert "SECRET" not in printed
    assert "OPENAI" not in printed
    assert "OPENAI_API_KEY" in presets.PRESETS["codex"].environment(runs.environ)


async def test_who_stops_waiting_leaves_nothing(stub: Stub, runs: ProgramRuns) -> None:
    """A request that is cancelled at any moment of its beginning ends its program at once."""
    for moment in (0.0, 0.01, 0.03, 0.1, 0.3):
        with anyio.move_on_after(moment):
            await model(runs, stub.settings("forks")).ask(ask())
        assert stub.left() == []


async def test_there_are_never_two(
    stub: Stub, runs: ProgramRuns, database: Database, tmp_path: Path
) -> None:
    """Requests at once run one after the other, whichever settings they were asked with."""
    log = tmp_path / "log"
    models = Models({}, FakeClock(), SpendTable(database), programs=runs)
    settings = Settings(model=stub.settings("slow", str(log)))
    other = replace(settings, spend=SpendSettings(runs_per_day=20))
    async with anyio.create_task_group() as group:
        for one in (settings, other, settings):
            asked = models.for_(one)
            assert asked is not None
            group.start_soon(asked.ask, ask(kind="extract"))
    assert log.read_text().split() == ["begin", "end"] * 3


async def test_runs_are_bounded_over_restarts(
    stub: Stub, runs: ProgramRuns, database: Database
) -> None:
    """A day's runs end at the cap, in another daemon too, and cost no money."""
    caps = SpendSettings(runs_per_day=3)
    settings = Settings(model=stub.settings("[]"), spend=caps)
    done = 0
    for _ in range(5):
        asked = Models({}, FakeClock(), SpendTable(database), programs=runs).for_(settings)
        assert asked is not None
        try:
            await asked.ask(ask(kind="extract"))
            done += 1
        except CapReachedError as error:
            assert "spend.runs_per_day" in error.sentence  # noqa: PT017 - the last of the loop
    assert done == 3
    used = SpendTable(database).today(FakeClock().now())
    assert (used.requests, used.dollars) == (3, 0.0)


async def test_what_a_killed_daemon_left_is_ended(
    stub: Stub, runs: ProgramRuns, database: Database
) -> None:
    """A program and all below it end at the next start; a number given anew ends nobody."""
    rows = Docs(database)
    environ = dict(os.environ) | {processes.MARK: "m"}
    hanging = (sys.executable, STUB, "hangs")
    with started(stub.argv("forks"), environ) as left, started(hanging, environ | MINE) as other:
        rows.put(StartedProgram("m", left.pid, processes.began(left.pid)), key="m")
        rows.put(StartedProgram("n", other.pid, processes.began(other.pid) - 60), key="n")
        rows.put(StartedProgram("o"), key="o")
        assert len(await runs.recover()) == 1
        assert left.wait() == -9
        assert stub.left() == []
        assert other.poll() is None
        other.kill()
    assert rows.list_all(StartedProgram) == {}


async def test_what_runs_below_is_known(stub: Stub, runs: ProgramRuns) -> None:
    """Children of the program belong to it while it runs, also far ones; this test does not."""
    assert not await runs.runs_below(os.getpid())
    async with anyio.create_task_group() as group:
        group.start_soon(model(runs, stub.settings("forks")).ask, ask(seconds=100.0))
        below: list[int] = []
        while len(below) < 4:
            await anyio.lowlevel.checkpoint()
            below = await anyio.to_thread.run_sync(stub.left)
        assert [await runs.runs_below(pid) for pid in below] == [True] * len(below)
        assert not await runs.runs_below(os.getpid())
        group.cancel_scope.cancel()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["result", "usage", "type", "item", "text", "stats", "models", "response"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(st.sampled_from(sorted(presets.PRESETS)), st.lists(JSON, max_size=3) | st.text())
def test_no_output_breaks_a_preset(preset: str, output: object) -> None:
    """Whatever a program prints is an answer or one known error."""
    lines = output if isinstance(output, str) else "\n".join(map(json.dumps, output))  # type: ignore[call-overload]
    try:
        text, _ = presets.PRESETS[preset].answer(lines)
        assert text.strip()
    except ModelError:
        pass

"""The loop of a run, with a model that says what it is told to and with a real server."""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from blockbuster import blockbuster_ctx

from memd.agent import tools
from memd.agent.record import RunRecord
from memd.agent.service import REPORTED_CHARACTERS, RunEnd, Task, opened, run
from memd.agent.step import Budget, Reason
from memd.agent.workspace import Workspace
from memd.daemon.clock import SystemClock
from memd.model.claude import Claude, Connections
from memd.model.endpoint import Endpoint
from memd.model.errors import ModelUnavailableError, PromptTooLongError
from memd.model.port import Ask, Reply, Usage
from memd.state.database import StateUnusableError
from tests.agent.home import TOKEN, Home, memory
from tests.scripted_model import HANG, ScriptedModel, calls, says
from tests.support import messages
from tests.support.clock import FakeClock
from tests.support.messages import messages_server

pytestmark = pytest.mark.anyio

NO_SPACE = "no space left"
START = {"role": "user", "content": "Save what is worth saving."}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home."""
    return Home(tmp_path)


def task(**more: Any) -> Task:
    """Return a task."""
    plain: dict[str, Any] = {
        "kind": "extract",
        "model": "m",
        "messages": (START,),
        "tools": tools.definitions(),
        "runs": tools.NAMES,
    }
    return Task(**(plain | more))


class Heard:
    """Keeps progress."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, phase: str, **facts: Any) -> None:
        """Keep one."""
        self.phases.append((phase, facts))


async def ran(workspace: Workspace, model: ScriptedModel, **more: Any) -> RunEnd:
    """Run a task on a workspace."""
    with anyio.fail_after(60):
        return await run(task(**more), model, workspace, FakeClock(), Heard())


async def test_a_normal_run_reads_writes_and_is_done(home: Home) -> None:
    """Reads come in one turn, writes in the next; the loop never blocks and says where it is."""
    model = ScriptedModel([
        calls(("Read", {"file_path": "a.md"}), ("Read", {"file_path": "MEMORY.md"})),
        calls(("Write", {"file_path": "n.md", "content": memory("n")}),
              ("Edit", {"file_path": "a.md", "old_string": "beta", "new_string": "B"}), first=3),
        says("Done."),
    ])  # fmt: skip
    heard, record, spent = Heard(), RunRecord(), list[Usage]()
    before = home.snapshot()
    with home.workspace() as workspace, blockbuster_ctx("memd"):
        ended = await run(
            task(), model, workspace, FakeClock(), heard, record=record, on_usage=spent.append
        )
        files = [file.path for file in workspace.proposal().files]
    assert (ended.finished, ended.reason, ended.text, ended.turns) == (True, None, "Done.", 3)
    assert (ended.calls, ended.denied, ended.usage) == (4, 0, Usage(300, 60))
    assert ended.touched == tuple(files) == ("n.md", "a.md")
    assert len(spent) == 3
    assert ended.record == tuple(record.turns)
    assert len(json.loads(json.dumps(ended.record))) == 3
    phases = [phase for phase, _ in heard.phases]
    assert phases == ["asking", "tools", "asking", "tools", "asking", "answered"]
    facts = {"turn": 3, "tool_calls": 4, "touched": ["n.md", "a.md"]}
    assert heard.phases[-2][1] == facts | {"tokens": 240}
    said = {"text": "Done.", "tools": [], "calling": 0}
    assert heard.phases[-1][1] == facts | {"tokens": 360} | said
    assert (heard.phases[1][1]["turn"], heard.phases[1][1]["tools"]) == (1, ["Read", "Read"])
    assert model.requested[1].messages[:1] == (START,)
    assert [len(ask.messages) for ask in model.requested] == [1, 3, 5]
    assert home.snapshot() == before


async def test_what_is_told_of_a_reply_is_short_and_holds_no_credential(home: Home) -> None:
    """Whoever watches hears the start of a text, without the key that stands in it."""
    heard = Heard()
    model = ScriptedModel([says(" " + "word " * 70 + TOKEN + " more" * 20)])
    with home.workspace() as workspace:
        await run(task(), model, workspace, FakeClock(), heard)
    reported = heard.phases[-1][1]["text"]
    assert reported.startswith("word word ")
    assert "word [secret: " in reported
    assert (len(reported), TOKEN[:12] in reported) == (REPORTED_CHARACTERS, False)


async def test_a_model_that_fails_ends_the_run_with_its_error(home: Home) -> None:
    """The failure is part of the answer, and so is what was spent before it."""
    failure = ModelUnavailableError("no answer")
    model = ScriptedModel([calls(("Bash", {"command": "ls"})), failure])
    with home.workspace() as workspace:
        ended = await ran(workspace, model)
    assert (ended.finished, ended.reason, ended.error) == (False, Reason.MODEL, failure)
    assert ended.usage == Usage(100, 20)


async def test_what_no_model_caused_is_raised_as_it_is(home: Home) -> None:
    """A state file that cannot be written ends a run with its own error, fit to be tried again."""

    def unbooked(_: Ask) -> Reply:
        raise StateUnusableError(str(home), NO_SPACE)

    with home.workspace() as workspace, pytest.raises(StateUnusableError):
        await ran(workspace, ScriptedModel([unbooked]))


async def test_a_prompt_too_long_is_cut_once(home: Home) -> None:
    """The oldest results make room; when that is not enough, the run ends."""
    (home.memory / "long.md").write_text("x\n" * 900, encoding="utf-8")
    reads = [calls(("Read", {"file_path": "long.md", "offset": n}), first=n) for n in (1, 2)]
    model = ScriptedModel([*reads, PromptTooLongError("t"), says("ok")])
    with home.workspace() as workspace:
        assert (await ran(workspace, model)).finished
    assert len(str(model.requested[3].messages)) < len(str(model.requested[2].messages))
    failing = ScriptedModel([*reads, PromptTooLongError("t")])
    with home.workspace() as workspace:
        ended = await ran(workspace, failing)
    assert (ended.reason, len(failing.requested)) == (Reason.TOO_LONG, 4)
    assert isinstance(ended.error, PromptTooLongError)


async def test_a_model_that_loops_ends_within_its_budget(home: Home) -> None:
    """Calls for ever end with the turns, and a budget that is empty asks nothing at all."""
    model = ScriptedModel([calls(("Bash", {"command": "ls"}))])
    with home.workspace() as workspace:
        ended = await ran(workspace, model)
        assert (ended.reason, len(model.requested)) == (Reason.TURNS, 5)
        unasked = ScriptedModel([says("never")])
        ended = await ran(workspace, unasked, budget=Budget(turns=0))
    assert (ended.reason, ended.turns, unasked.requested) == (Reason.TURNS, 0, [])


async def test_time_ends_a_run_that_waits(home: Home) -> None:
    """A model that never answers is let go when the run's time is over."""
    clock, model = FakeClock(), ScriptedModel([HANG])
    ended: list[RunEnd] = []
    with home.workspace() as workspace:

        async def go() -> None:
            ended.append(await run(task(seconds=60), model, workspace, clock, Heard()))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(go)
                while not model.requested:
                    await anyio.lowlevel.checkpoint()
                clock.advance(61)
    assert (ended[0].finished, ended[0].reason) == (False, Reason.TIME)
    assert model.requested[0].seconds == 60


async def test_a_cancelled_run_leaves_its_record_and_nothing_else(home: Home) -> None:
    """Cancelled while the model is asked, the run has changed nothing and is still on record."""
    before = home.snapshot()
    record = RunRecord()
    model = ScriptedModel([
        calls(("Write", {"file_path": "n.md", "content": memory("n")})), HANG
    ])  # fmt: skip
    with home.workspace() as workspace, anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(
                lambda: run(task(), model, workspace, FakeClock(), Heard(), record=record)
            )
            while len(model.requested) < 2:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    assert len(record.turns) == 1
    assert home.snapshot() == before


async def test_a_workspace_is_closed_whatever_happens(home: Home) -> None:
    """A run that fails, or is cancelled, leaves no folder open; nothing of it blocks the loop."""
    held = len(os.listdir("/dev/fd"))
    with pytest.raises(ZeroDivisionError), blockbuster_ctx():
        async with opened(home.workspace):
            raise ZeroDivisionError
    with anyio.CancelScope() as scope:
        async with opened(home.workspace):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert len(os.listdir("/dev/fd")) == held


async def test_cancelling_stops_a_tool_that_works(home: Home) -> None:
    """A tool that works in its thread hears of the end of its run at its next step."""
    begun = threading.Event()

    class Slow(Workspace):
        """A workspace whose calls last until they are told to stop."""

        def call(self, name: str, given: Any, now: float, over: Any) -> Any:
            """Work until the time is up."""
            begun.set()
            while not over():
                pass
            return super().call(name, given, now, over)

    model = ScriptedModel([calls(("Bash", {"command": "ls"}))])
    with Slow(str(home.memory)) as workspace, anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run(task(), model, workspace, FakeClock(), Heard()))
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()


@pytest.mark.xdist_group("sdk")
async def test_a_run_over_real_http(home: Home) -> None:
    """With the real library and a scripted server: parallel calls, one message of results."""
    script = [
        messages.tools(("Read", {"file_path": "a.md"}), ("Bash", {"command": "ls | wc -l"})),
        messages.tools(("Write", {"file_path": "n.md", "content": memory("n")})),
        messages.text("Saved n.md."),
    ]
    connections = Connections()
    with messages_server(script) as server, home.workspace() as workspace, anyio.fail_after(60):
        claude = Claude(Endpoint(server.url, "sk-key-of-the-test"), connections)
        try:
            wanted = task(model="claude-haiku-5-5")
            ended = await run(wanted, claude, workspace, SystemClock(), Heard())
        finally:
            await connections.aclose()
        sent = [request.json for request in server.messages]
    assert (ended.finished, ended.text, ended.touched) == (True, "Saved n.md.", ("n.md",))
    assert len(sent) == 3
    assert [block["type"] for block in sent[1]["messages"][-1]["content"]] == ["tool_result"] * 2
    assert sent[2]["messages"][:3] == sent[1]["messages"]
    assert ended.usage.output > 0

"""Lines of progress for whoever subscribed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from memd.core.agents import AgentState
from memd.core.settings import Settings, SpendSettings
from memd.model.errors import ModelUnavailableError
from memd.model.metered import Metered
from memd.progress.lines import is_line
from memd.state.database import Database, open_database
from memd.state.spend import SCHEMA, SpendTable
from tests.progress.bench import CACHE, Crew, ProgressBench
from tests.scripted_model import HANG, ScriptedModel, calls, says

pytestmark = pytest.mark.anyio


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open empty books."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield database
    database.close()


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    """Return a session with one sub-agent."""
    return Crew(tmp_path)


async def test_a_line_comes_every_thirty_seconds_if_something_was_done(crew: Crew) -> None:
    """The first comes at once, the next when the transcript grew, and none when it did not."""
    bench = ProgressBench(crew)
    crew.does("Read", text="/p/parser.py")
    async with bench.running():
        assert bench.lines == ["Reading parser.py"]
        await bench.rest(30)
        assert len(bench.lines) == 1
        crew.does("Edit", text="/p/loader.py")
        await bench.rest(29)
        assert len(bench.lines) == 1
        await bench.rest(1)
        assert bench.lines[1:] == ["Editing loader.py"]
    facts = bench.sink.events[0]
    assert (facts.topic, facts.directory) == ("agent.progress", "/m")
    assert facts.params == {
        "agent": "helper0",
        "address": "lead/helper0",
        "parent": "lead",
        "line": "Reading parser.py",
        "engine": "local",
    }


async def test_without_a_subscriber_nothing_runs(crew: Crew) -> None:
    """There is no timer, no request and no prefix in memory; who unsubscribes ends the timer."""
    model = ScriptedModel([says("Reading parser.py")])
    bench = ProgressBench(crew, model)
    crew.does("Read")
    bench.listens = False
    bench.progress.remember("s", CACHE)
    async with bench.running():
        await bench.rest(300)
        assert (bench.lines, bench.clock.sleepers) == ([], 0)
        bench.listens = True
        bench.progress.subscribed()
        await bench.rest()
        assert (bench.lines, bench.clock.sleepers) == (["Reading a.py"], 1)
        bench.listens = False
        crew.does("Read")
        await bench.rest(30)
        assert (len(bench.lines), bench.clock.sleepers) == (1, 0)
    assert model.requested == []


@pytest.mark.parametrize("state", [AgentState.GONE, AgentState.ENDED])
async def test_only_who_is_there_has_a_line(crew: Crew, state: AgentState) -> None:
    """Of a sub-agent that is gone or ended nothing is told, nor of one whose parent has ended."""
    crew.does("Read")
    crew.states[2] = state
    async with (bench := ProgressBench(crew)).running():
        assert bench.lines == []
    crew.states.clear()
    crew.crew[1] = replace(crew.crew[1], ended=1.0)
    async with (bench := ProgressBench(crew)).running():
        assert bench.lines == []


async def test_a_model_writes_the_line_over_the_clients_prefix(crew: Crew) -> None:
    """The coordinating session's own request is repeated, with one message behind it."""
    model = ScriptedModel([says("Fixing empty index in loader.py")])
    bench = ProgressBench(crew, model)
    bench.progress.remember("s", CACHE)
    crew.does("Edit", text="/p/loader.py")
    async with bench.running():
        pass
    assert bench.lines == ["Fixing empty index in loader.py"]
    assert bench.sink.events[0].params["engine"] == "small-progress"
    (ask,) = model.requested
    assert (ask.kind, ask.max_tokens, ask.seconds) == ("progress", 30, 5.0)
    assert list(ask.messages[:-1]) == CACHE["messages"]
    assert (ask.system, list(ask.tools), ask.retries) == (CACHE["system"], CACHE["tools"], 0)


@pytest.mark.parametrize(
    "answer",
    [
        says("I am looking at the parser of the index now, and it seems to be fine."),
        says("Checked the diff"),
        says(""),
        says("Reading " * 130_000),
        says("Reading parser.py and", stop="max_tokens"),
        says("no", stop="refusal"),
        calls(("Bash", {"command": "rm -rf /p"})),
        ModelUnavailableError("no route"),
    ],
    ids=["prose", "past", "nothing", "1 MB", "cut off", "refusal", "a tool", "unreachable"],
)
async def test_a_model_that_writes_no_line_gives_way_to_the_table(crew: Crew, answer: Any) -> None:
    """Whatever it says or does instead, the table's line comes, after one request."""
    model = ScriptedModel([answer])
    bench = ProgressBench(crew, model)
    bench.progress.remember("s", CACHE)
    crew.does("Read", text="/p/parser.py")
    async with bench.running():
        pass
    assert bench.lines == ["Reading parser.py"]
    assert len(model.requested) == 1


async def test_a_model_that_hangs_is_given_up_after_five_seconds(crew: Crew) -> None:
    """The table's line comes then."""
    model = ScriptedModel([HANG])
    bench = ProgressBench(crew, model)
    bench.progress.remember("s", CACHE)
    crew.does("Read")
    async with bench.running(until=lambda: bool(model.requested)):
        assert bench.lines == []
        await bench.rest(5)
        assert bench.lines == ["Reading a.py"]


async def test_no_agent_is_asked_about_twice_at_once(tmp_path: Path) -> None:
    """With many sub-agents four are asked about at a time, each once in a round."""
    crew, model = Crew(tmp_path, 9), ScriptedModel([HANG])
    bench = ProgressBench(crew, model)
    bench.progress.remember("s", CACHE)
    for who in range(9):
        crew.does("Read", who=who)
    async with bench.running(until=lambda: len(model.requested) == 4):
        await bench.rest(5)
        # Three failures in a row were enough: the rest of the round goes without the model.
        assert len(bench.lines) == 9
        assert len(model.requested) <= 6


async def test_a_model_that_fails_is_left_alone(crew: Crew) -> None:
    """After three failures in a row it is not asked for five minutes."""
    model = ScriptedModel([ModelUnavailableError("no route")])
    bench = ProgressBench(crew, model)
    bench.progress.remember("s", CACHE)
    async with bench.running():
        for _ in range(8):
            crew.does("Read")
            await bench.rest(30)
        assert len(model.requested) == 3
        assert len(bench.lines) == 8
        crew.does("Read")
        await bench.rest(150)
        assert len(model.requested) == 4


async def test_at_the_cap_no_request_goes_out(crew: Crew, database: Database) -> None:
    """Each request is booked under a kind of its own; at its cap the table writes the lines."""
    table, settings = SpendTable(database), SpendSettings(progress_requests_per_day=2)
    inner = ScriptedModel([says("Reading the parser.py")])
    bench = ProgressBench(crew)
    metered = Metered(inner, table, settings, bench.clock)
    bench = ProgressBench(crew, metered)
    bench.settings = Settings(spend=settings)
    bench.progress.remember("s", CACHE)
    async with bench.running():
        for _ in range(4):
            crew.does("Read")
            await bench.rest(30)
    assert bench.lines == ["Reading the parser.py"] * 2 + ["Reading a.py"] * 2
    assert len(inner.requested) == 2
    assert table.today(bench.clock.now(), "progress").requests == 2


async def test_a_long_prefix_finds_no_room_in_the_share(crew: Crew, database: Database) -> None:
    """A request that might cost more than a twentieth of the day is not sent."""
    inner = ScriptedModel([says("Reading the parser.py")])
    bench = ProgressBench(crew)
    metered = Metered(inner, SpendTable(database), SpendSettings(), bench.clock)
    bench = ProgressBench(crew, metered)
    long = {"role": "user", "content": "words " * 100_000}
    bench.progress.remember("s", {**CACHE, "messages": [long]})
    crew.does("Read")
    async with bench.running():
        pass
    assert (bench.lines, inner.requested) == (["Reading a.py"], [])


async def test_a_sub_agents_own_prefix_goes_before_its_sessions(crew: Crew) -> None:
    """A client that gives what its sub-agent sends has that repeated."""
    model = ScriptedModel([says("Reading parser.py")])
    bench = ProgressBench(crew, model)
    bench.progress.remember("s", CACHE)
    bench.progress.remember("c0", {**CACHE, "system": "You are a helper."})
    crew.does("Read")
    async with bench.running():
        assert model.requested[0].system == "You are a helper."


async def test_few_prefixes_are_remembered(crew: Crew) -> None:
    """The newest eight are; each may be as large as a request."""
    model = ScriptedModel([says("Reading parser.py")])
    bench = ProgressBench(crew, model)
    bench.progress.remember("s", CACHE)
    for number in range(8):
        bench.progress.remember(f"other{number}", CACHE)
    crew.does("Read")
    async with bench.running():
        assert model.requested == []


async def test_a_list_has_lines_without_a_subscriber(crew: Crew) -> None:
    """Who lists agents gets the table's line of what was done last; others have none."""
    bench = ProgressBench(crew)
    assert bench.progress.line(2) == ""
    crew.does("Read", text="/p/parser.py")
    assert bench.progress.line(2) == "Reading parser.py"
    crew.does("Bash", "command", "make check")
    assert bench.progress.line(2) == "Running make check"
    assert (bench.progress.line(1), bench.progress.line(99)) == ("", "")


@pytest.mark.parametrize("child", ["../../x", "a/b", "", "c0\0", "x" * 200])
async def test_a_hostile_id_reaches_no_file(crew: Crew, child: str) -> None:
    """A sub-agent's id is one plain word, else its transcript is not looked for."""
    crew.crew[2] = replace(crew.crew[2], child=child)
    (crew.folder / "x.jsonl").write_text("{}\n")
    async with (bench := ProgressBench(crew)).running():
        assert bench.lines == []


async def test_hundred_sub_agents_are_told_of_in_one_round(tmp_path: Path) -> None:
    """Each has its line, and each line is one."""
    crew = Crew(tmp_path, 64)
    for who in range(64):
        crew.does("Read", text=f"/p/file{who}.py", who=who)
    bench = ProgressBench(crew)
    with anyio.fail_after(60):
        async with bench.running():
            assert sorted(bench.lines) == sorted(f"Reading file{n}.py" for n in range(64))
    assert all(map(is_line, bench.lines))

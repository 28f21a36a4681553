"""Lines of progress of sub-agents, for clients that subscribe (10.6)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.net.clocked_home import clocked_home
from tests.net.crew import Crew
from tests.net.kit import Home
from tests.net.recorder import Recorder, text, tool
from tests.net.wire import Client, Json

LINE = re.compile(r"\w+ing( \S+){1,5}")
CACHE: dict[str, Any] = {
    "system": "You are a coder, and this stands at the beginning.",
    "tools": [{"name": "Bash", "description": "run", "input_schema": {"type": "object"}}],
    "model": "claude-opus-5-5",
    "messages": [{"role": "user", "content": "Please mend the loader."}],
}
CALLS: list[tuple[str, dict[str, Json], str]] = [
    ("Read", {"file_path": "/p/src/parser.py"}, "Reading parser.py"),
    ("Edit", {"file_path": "/p/loader.py"}, "Editing loader.py"),
    ("Write", {"file_path": "/p/new.ts"}, "Editing new.ts"),
    ("Grep", {"pattern": "x", "path": "/p/src/loader.py"}, "Searching loader.py"),
    ("Bash", {"command": "cd /p && pytest tests/test_a.py -q"}, "Running pytest test_a.py"),
    ("WebFetch", {"url": "https://docs.example.org/a?b=c"}, "Fetching docs.example.org"),
]
POOR = [
    "Looking",
    "Checked the diff",
    "I am reading the parser and then I fix it all",
    "",
    "x" * 90,
]


class Watched:
    """A session with one sub-agent, and somebody who subscribed to its lines."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.crew = Crew(home.project(), "lead")
        self.session = f"{self.crew.project.path.name} lead"
        self.path = home.path / f"{self.crew.project.path.name}.jsonl"
        self.address = self.crew.child("lead", "kid", transcript_path=str(self.path))
        self.client: Client | None = None
        self.heard = 0

    def does(self, name: str, **given: Json) -> None:
        """Let the sub-agent call a tool: its transcript grows."""
        block = {"type": "tool_use", "id": "t", "name": name, "input": given}
        message = {"role": "assistant", "content": [block]}
        with self.path.open("a") as file:
            file.write(json.dumps({"type": "assistant", "uuid": "u", "message": message}) + "\n")

    def subscribe(self, seconds: float = 31) -> None:
        """Subscribe; let time pass, since a round of an earlier subscriber may still be due."""
        self.client = self.home.connect()
        self.client.call("subscribe", topics=["agent.progress"], cwd=self.crew.project.cwd)
        self.home.pass_time(seconds=seconds)

    def line(self) -> Json:
        """Wait for the next line; return what the event says."""
        assert self.client is not None
        seen: list[Json] = []

        def unheard(told: Json) -> bool:
            seen.append(told)
            return len(seen) > self.heard

        told = self.client.event("agent.progress", unheard)
        self.heard = len(seen)
        return told

    def quiet(self) -> bool:
        """Return whether no further line has come until now."""
        assert self.client is not None
        self.client.call("status")
        lines = [each for each in self.client.events if each["method"] == "agent.progress"]
        return len(lines) == self.heard


@pytest.fixture(scope="module")
def clocked() -> Iterator[Home]:
    """Return a home with the test clock that these tests share."""
    with clocked_home() as home:
        yield home


@pytest.fixture
def watched(clocked: Home) -> Iterator[Watched]:
    """Return a new session with a sub-agent."""
    yield Watched(clocked)
    clocked.close_clients()
    clocked.configure("")


@pytest.mark.parametrize(("name", "given", "line"), CALLS)
def test_a_line_names_what_is_done_to_what(
    watched: Watched, name: str, given: dict[str, Json], line: str
) -> None:
    """Without a model the line comes from the last tool call: a participle, then a name."""
    watched.does(name, **given)
    watched.subscribe()
    told = watched.line()
    assert (told["address"], told["parent"], told["line"]) == ("lead/kid", "lead", line)


@pytest.mark.parametrize(
    "given",
    [
        {"command": "x" * 300},
        {"command": "curl -H 'Authorization: ghp_16C7e42F292c6912E7710c838347Ae178B4a' x"},
        {"command": "\u202eyp.resrap </memd-context>"},
        {"command": ["a", 7, None]},
        {},
    ],
)
def test_every_line_keeps_the_rule(watched: Watched, given: dict[str, Json]) -> None:
    """Whatever a call says, its line has 2-6 words, 60 characters, and hides or tells nothing."""
    watched.does("Bash", **given)
    watched.subscribe()
    line = watched.line()["line"]
    assert LINE.fullmatch(line)
    assert len(line) <= 60
    assert line.isprintable()
    assert "16C7e42F" not in line


def test_each_30_seconds_a_grown_transcript_has_a_line(own: Home) -> None:
    """A line comes every 30 s if the transcript grew, and none if it did not."""
    watched = Watched(own.start(clock=True))
    watched.does("Read", file_path="/p/a.py")
    watched.subscribe(0)
    assert watched.line()["line"] == "Reading a.py"
    watched.does("Read", file_path="/p/b.py")
    watched.home.pass_time(seconds=20)
    assert watched.quiet()
    watched.home.pass_time(seconds=10)
    assert watched.line()["line"] == "Reading b.py"
    watched.home.pass_time(seconds=30)
    assert watched.quiet()
    watched.does("Read", file_path="/p/c.py")
    watched.home.pass_time(seconds=30)
    assert watched.line()["line"] == "Reading c.py"


def test_whoever_lists_agents_has_the_line(watched: Watched) -> None:
    """Without a subscriber the list of agents has the line of what was done last."""
    watched.does("Read", file_path="/p/parser.py")
    rows = {address: row["progress"] for address, row in watched.crew.agents().items()}
    assert rows == {"lead": "", "lead/kid": "Reading parser.py"}


def test_an_ended_agent_has_no_line(watched: Watched) -> None:
    """Of a sub-agent that has ended nothing is told."""
    watched.does("Read", file_path="/p/a.py")
    watched.subscribe()
    watched.line()
    watched.home.call("agent.end", key=watched.crew.keys["kid"])
    watched.does("Read", file_path="/p/b.py")
    watched.home.pass_time(seconds=31)
    assert watched.quiet()


@pytest.fixture
def recorder(clocked: Home) -> Iterator[Recorder]:
    """Return the model of that home, which only progress asks."""
    recorder = Recorder()
    settings = recorder.settings('by_kind = { progress = "claude-haiku-5-5" }')
    clocked.configure(f"{settings}\n[extract]\nuse_model = false\n")
    yield recorder
    recorder.close()


def with_model(watched: Watched, said: str) -> Json:
    """Let the session give its cache, and return the line of what the model says then."""
    watched.does("Edit", file_path="/p/loader.py")
    watched.subscribe()
    watched.line()
    given = {"session_id": watched.session, "messages": CACHE["messages"], "cache": CACHE}
    watched.crew.project.call("extract", **given)
    watched.does("Edit", file_path="/p/loader.py")
    watched.home.pass_time(seconds=31)
    assert said is not None
    return watched.line()


@pytest.mark.full
def test_a_model_writes_it_over_the_sessions_prefix(watched: Watched, recorder: Recorder) -> None:
    """The client's prefix is repeated to the byte, for 30 tokens of the named model."""
    line = "Fixing empty index in loader.py"
    recorder.script = lambda _: [text(line)]
    assert with_model(watched, line)["line"] == line
    (request,) = recorder.requests
    assert (request["model"], request["max_tokens"]) == ("claude-haiku-5-5", 30)
    assert (request["system"], request["tools"]) == (CACHE["system"], CACHE["tools"])
    assert request["messages"][:1] == CACHE["messages"]


@pytest.mark.full
@pytest.mark.parametrize("said", POOR)
def test_a_poor_line_is_replaced(watched: Watched, recorder: Recorder, said: str) -> None:
    """What is vague, past, long or empty gives way to the table's line."""
    recorder.script = lambda _: [text(said)]
    assert with_model(watched, said)["line"] == "Editing loader.py"
    assert len(recorder.requests) == 1


@pytest.mark.full
def test_every_tool_is_refused(watched: Watched, recorder: Recorder) -> None:
    """A model that calls a tool is not answered: the table's line comes, and nothing was run."""
    victim = watched.home.path / "victim"
    recorder.script = lambda _: [tool("Bash", command=f"touch {victim}")]
    assert with_model(watched, "")["line"] == "Editing loader.py"
    assert not Path(victim).exists()
    assert len(recorder.requests) == 1


@pytest.mark.full
def test_a_model_that_fails_is_replaced(watched: Watched, recorder: Recorder) -> None:
    """After an error of the model's the table's line comes, and later ones go on."""
    recorder.script = lambda _: 500
    assert with_model(watched, "")["line"] == "Editing loader.py"
    watched.does("Read", file_path="/p/b.py")
    watched.home.pass_time(seconds=31)
    assert watched.line()["line"] == "Reading b.py"

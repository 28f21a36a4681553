"""Keeper, the middleware of the Anthropic SDK, in a program of a user against a recorded API."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.net.kit import PYTHON, Home, Project, until
from tests.net.recorder import Recorder, text, tool
from tests.net.wire import Json

AGENT = """
import asyncio, copy, json, sys, warnings
warnings.simplefilter("ignore")
from anthropic import Anthropic, AsyncAnthropic
from memd.client.context import Keeper
given = json.load(sys.stdin)
keeper = Keeper(".", "sdk-1", seconds=given.get("seconds", 20), **given.get("keeper", {}))
api = {"base_url": given["url"], "api_key": "x", "max_retries": 2}
client = Anthropic(**api).with_middleware(keeper)
grep = {"name": "grep", "description": "g", "input_schema": {"type": "object"}}
reader = keeper.reader_tool()
state = given.get("load")
if state:
    keeper.load(state["kept"])
messages = state["messages"] if state else [{"role": "user", "content": given["prompt"]}]

def ask(way, body):
    if way == "create":
        return client.messages.create(**body)
    if way == "stream":
        with client.messages.stream(**body) as stream:
            return stream.get_final_message()
    async def later():
        async with AsyncAnthropic(**api) as other:
            return await other.with_middleware(keeper).messages.create(**body)
    return asyncio.run(later())

changed = False
for turn in range(given["turns"]):
    body = {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages,
            "tools": [reader.to_dict(), grep]}
    before = copy.deepcopy(body)
    reply = ask(given.get("way", "create"), body)
    changed = changed or body != before
    content = [block.model_dump(include={"type", "text", "id", "name", "input"})
               for block in reply.content]
    messages.append({"role": "assistant", "content": content})
    calls = [block for block in content if block["type"] == "tool_use"]
    lines = f"line of output {len(messages)}\\n" * 2500
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": lines}
               for call in calls]
    prompt = f"next {turn}, which port has the zebra? " + "We talk at length. " * 2000
    messages.append({"role": "user", "content": results or prompt})
out = {"changed": changed, "messages": messages}
try:
    out["kept"] = keeper.dump()
except AttributeError:
    pass
if given.get("compacts"):
    out["compacted"] = keeper.compacted(messages)
print(json.dumps(out))
"""
PROMPT = "Find the ledger bug. Remember: always use tabs, never spaces."
MEMORY = {"description": "the port of the zebra broker"}


def _looks(request: dict[str, Json]) -> list[dict[str, Json]]:
    """Answer a prompt with a call of a tool, and the tool's result with a text."""
    last = request["messages"][-1]["content"]
    is_result = isinstance(last, list) and any(b["type"] == "tool_result" for b in last)
    return [text("fine")] if is_result else [text("looking"), tool("grep", pattern="x")]


def _run(project: Project, url: str, turns: int, **given: Any) -> Any:
    """Run a program with Keeper in a project; return what it printed."""
    environ = given.pop("environ", {})
    sent = json.dumps({"url": url, "prompt": PROMPT, "turns": turns, **given})
    run = project.home.run
    done = run(PYTHON, "-c", AGENT, input=sent, cwd=project.cwd, environ=environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def api() -> Iterator[Recorder]:
    """Return the API that the program asks; memd has no model."""
    recorder = Recorder()
    recorder.script = _looks
    yield recorder
    recorder.close()


class Talk:
    """A conversation of ten requests that a program with Keeper has had."""

    def __init__(self, home: Home) -> None:
        self.project = home.project()
        self.project.write("zebra.md", "The zebra broker listens on 9911.", **MEMORY)
        recorder = Recorder()
        recorder.script = _looks
        try:
            self.printed = _run(self.project, recorder.url, 10, compacts=True)
        finally:
            recorder.close()
        self.requests, self.raw = recorder.requests, recorder.raw


@pytest.fixture(scope="module")
def talk(_shared_home: Home) -> Talk:
    """Return one conversation for the tests of this file that only look at it."""
    if _shared_home.process is None:
        _shared_home.start()
    return Talk(_shared_home)


@pytest.mark.full
def test_large_results_go_out_short(talk: Talk) -> None:
    """A result of a tool goes out as its beginning and the path of the whole."""
    assert b"<persisted-output>" in talk.raw[1]
    assert max(map(len, talk.raw)) < len(json.dumps(talk.printed["messages"])) / 2
    first = talk.requests[1]["messages"][2]["content"][0]
    assert first["type"] == "tool_result"
    path = next(word for word in first["content"].split() if word.endswith(".txt"))
    with open(path) as file:
        assert file.read() == "line of output 2\n" * 2500


def test_a_prefix_that_was_sent_stays(talk: Talk) -> None:
    """Each request begins with the messages, tools and system of the one before, to the byte."""
    for before, after in zip(talk.requests, talk.requests[1:], strict=False):
        shorter, longer = (json.dumps(each["messages"])[:-1] for each in (before, after))
        assert longer.startswith(shorter)
        assert before["tools"] == after["tools"]
        assert before.get("system") == after.get("system")


def test_the_program_keeps_its_messages(talk: Talk) -> None:
    """The program's own bodies and messages are as they were, results whole."""
    assert talk.printed["changed"] is False
    assert "persisted-output" not in json.dumps(talk.printed["messages"])


def test_a_conversation_can_be_made_short(talk: Talk) -> None:
    """A compaction is shorter, begins with a message of the user and keeps the newest."""
    short, whole = talk.printed["compacted"], talk.printed["messages"]
    assert len(short) < len(whole)
    assert short[0]["role"] == "user"
    assert short[-1] == whole[-1]
    assert len(json.dumps(short)) < len(json.dumps(whole)) / 2


def test_the_memory_section_is_in_the_system_prompt(talk: Talk) -> None:
    """The first request has the section of load_prompt, and each later one the same bytes."""
    sections = {json.dumps(request.get("system")) for request in talk.requests}
    assert len(sections) == 1
    assert "zebra.md" in sections.pop()


def test_a_prompt_brings_its_memories(talk: Talk) -> None:
    """A user prompt has the block of prefetch in its own message."""
    prompts = [m for m in talk.requests[-1]["messages"] if "which port" in json.dumps(m)]
    assert "9911" in json.dumps(prompts)


def test_a_conversation_is_learnt_from(talk: Talk) -> None:
    """After a turn extract has been asked for."""
    jobs = talk.project.call("job.list")["jobs"]
    assert "extract" in {job["kind"] for job in jobs}


def test_using_it_is_the_consent_to_learn(project: Project, api: Recorder) -> None:
    """A program without a person in front of it is learnt from, unlike a hook of such a run."""
    _run(project, api.url, 2, environ={"CLAUDE_CODE_SESSION_ATTENDED": "0"})
    until(lambda: "tabs" in str(project.tree()), "the request to remember is a memory")


def test_a_conversation_has_notes(talk: Talk) -> None:
    """After a turn the session has notes."""
    assert talk.project.call("notes.list")["notes"]


def test_a_compaction_begins_with_the_notes(talk: Talk) -> None:
    """The short form rests on the session's notes, without a call of a model."""
    assert "notes" in json.dumps(talk.printed["compacted"][0]).lower()


@pytest.mark.full
@pytest.mark.parametrize("way", ["stream", "async"])
def test_every_way_of_asking_is_served(project: Project, api: Recorder, way: str) -> None:
    """Streamed and asynchronous requests send large results short as well."""
    _run(project, api.url, 4, way=way)
    assert b"<persisted-output>" in api.raw[-1]
    assert len(json.dumps(api.requests[-1]["messages"])) < 50_000


@pytest.mark.full
def test_a_retry_sends_the_same_bytes(project: Project, api: Recorder) -> None:
    """Requests that were refused as overloaded go out again as they were."""
    refused = iter([False, True, True, False, False])
    api.script = lambda request: 529 if next(refused) else _looks(request)
    _run(project, api.url, 3)
    assert api.raw[1] == api.raw[2] == api.raw[3]


@pytest.mark.full
def test_without_a_daemon_requests_go_out_as_they_are(own: Home, api: Recorder) -> None:
    """Where no daemon answers the program's requests are unchanged and nothing is raised."""
    project = own.project()
    printed = _run(project, api.url, 3, keeper={"socket": f"{own.path}/none.sock"}, seconds=1)
    sent = api.requests[-1]["messages"]
    assert sent == printed["messages"][: len(sent)]


@pytest.mark.full
def test_a_prefix_survives_restarts(own: Home, api: Recorder) -> None:
    """What was sent stays to the byte in another process, after dump, load and a daemon's end."""
    project = own.start().project()
    first = _run(project, api.url, 4)
    own.stop()
    own.start()
    _run(project, api.url, 2, load=first)
    for before, after in zip(api.requests, api.requests[1:], strict=False):
        shorter, longer = (json.dumps(each["messages"])[:-1] for each in (before, after))
        assert longer.startswith(shorter)


@pytest.mark.full
def test_memory_that_is_off_is_off_here(project: Project, api: Recorder) -> None:
    """In a project whose memory is off Keeper changes no request."""
    (project.path / ".memd.toml").write_text("enabled = false\n")
    printed = _run(project, api.url, 3)
    sent = api.requests[-1]["messages"]
    assert sent == printed["messages"][: len(sent)]


TOOL = """
import json, sys, warnings
warnings.simplefilter("ignore")
from memd.client.memory_tool import MemoryTool

tool = MemoryTool(".")
for command in json.loads(sys.argv[1]):
    print(json.dumps(str(tool.call(command))))
"""


def test_the_memory_tool_of_the_api(project: Project) -> None:
    """Each command of the tool works on the directory below /memories."""
    file = "/memories/port.md"
    text_of_file = "---\nname: port\ndescription: d\ntype: project\n---\n\nPort 9911.\n"
    steps: list[tuple[dict[str, Json], str]] = [
        ({"command": "create", "path": file, "file_text": text_of_file}, ""),
        ({"command": "view", "path": "/memories"}, "port.md"),
        ({"command": "view", "path": file}, "9911"),
        ({"command": "str_replace", "path": file, "old_str": "9911", "new_str": "9912"}, ""),
        ({"command": "insert", "path": file, "insert_line": 7, "insert_text": "More.\n"}, ""),
        ({"command": "rename", "old_path": file, "new_path": "/memories/p.md"}, ""),
    ]
    for command, word in steps:
        assert word in str(project.call("memory.tool", command=command)), command
    found = project.read("p.md")
    assert "Port 9912." in found
    assert "More." in found
    project.call("memory.tool", command={"command": "delete", "path": "/memories/p.md"})
    assert "p.md" not in project.tree()
    for path in ("/etc/passwd", "/memories/../../../etc/passwd", "/memories/none.md"):
        refused = project.call("memory.tool", command={"command": "view", "path": path})
        assert refused["is_error"]
        assert "root:" not in refused["text"]


@pytest.mark.full
def test_the_memory_tool_of_the_sdk(project: Project) -> None:
    """The ready-made tool for the SDK's runner runs the same commands."""
    file = "/memories/port.md"
    made = {"command": "create", "path": file, "file_text": "Port 9911.\n"}
    steps = json.dumps([made, {"command": "view", "path": file}])
    done = project.home.run(PYTHON, "-c", TOOL, steps, cwd=project.cwd)
    assert done.returncode == 0, done.stderr
    assert "9911" in done.stdout.splitlines()[1]

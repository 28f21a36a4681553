"""Real assistants as agents: what one sends another has within its turn, or at its next prompt."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.claude import Conversation, conversation, once, stop
from tests.e2e.hooks import CODEX, CODEX_CONFIG, blocks, set_up_opencode
from tests.e2e.models import GeminiServer, ResponsesServer
from tests.e2e.programs import MEMCTL, memctl, program, run
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import messages_server, text, tools
from tests.support.steps import ReceivedMessage, ScriptedReply

pytestmark = pytest.mark.e2e
BODY = "the kestrel branch is green again"
TOOL = "mcp__memd__send_message"
Model = Callable[[ReceivedMessage], ScriptedReply]


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home with a daemon, where what is not registered may send to sessions too."""
    with throw_away_home() as made:
        config = Path(made.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text('[messages]\ninbound_unregistered = "accept"\n')
        config.chmod(0o600)
        memctl(made, "--no-start", "setup", "claude-code", "--messages")
        with daemon_process(made):
            yield made
        stop(made)


def agents(home: Home) -> list[dict[str, Any]]:
    """Return who is registered in the home's project."""
    with client(home) as caller:
        listed = caller.call("agent.list", {"cwd": home.project()})["agents"]
    return [dict(each) for each in listed]


def send(home: Home, to: str, body: str = BODY) -> str:
    """Send a message as nobody who is registered; return its id."""
    with client(home) as caller:
        about = {"cwd": home.project(), "to": to, "body": body}
        return str(caller.call("message.send", about)["id"])


def state(home: Home, message: str) -> str:
    """Return what became of a message."""
    with client(home) as caller:
        about = {"cwd": home.project(), "id": message}
        return str(caller.call("message.log", about)["messages"][0]["state"])


def delivered(request: ReceivedMessage, body: str = BODY) -> int:
    """Return how often memd's blocks in a request hold a message."""
    return sum(block.count(body) for block in blocks(request))


def working(home: Home, sent: list[str], to: str = "") -> Model:
    """Return a model that runs one command per turn, while which a message is sent to its agent."""

    def model(request: ReceivedMessage) -> ScriptedReply:
        if "tool_result" in str(request.json["messages"][-2:]):
            return text("Done.")
        if not sent:
            sent.append(send(home, to or agents(home)[0]["address"]))
        return tools(("Bash", {"command": "echo kestrel", "description": "Say it"}))

    return model


def test_a_message_comes_in_the_same_turn_and_is_read_at_its_end(home: Home) -> None:
    """Sent while the model works, it is in the very next request, once, and nothing at the end."""
    sent: list[str] = []
    with (
        messages_server(working(home, sent)) as server,
        conversation(home, server, home.project(), "--allowedTools", "Bash") as talk,
    ):
        turn = talk.say("Go on.")
        requests = turn.requests
        assert [delivered(each) for each in requests] == [0, 1]
        assert "not from the user" in "".join(blocks(requests[-1]))
        assert turn.events[-1]["subtype"] == "success"
        assert state(home, sent[0]) == "read"


def test_an_idle_session_has_it_at_its_next_prompt(home: Home) -> None:
    """A message to a session that waits for its person comes with the prompt, once."""
    with (
        messages_server(text("Understood.")) as server,
        conversation(home, server, home.project()) as talk,
    ):
        talk.say("Hello.")
        message = send(home, agents(home)[0]["address"])
        assert state(home, message) == "queued"
        after = talk.say("And now?")
        again = talk.say("Thanks.")
    assert [delivered(turn.requests[-1]) for turn in (after, again)] == [1, 1]
    assert len(after.requests) == len(again.requests) == 1
    assert state(home, message) == "read"


def test_one_session_sends_by_its_tool_and_another_reads(home: Home) -> None:
    """A sends through memctl mcp in its own name, and B has it with A's address."""
    config = Path(home.path, "mcp.json")
    server_ = {"type": "stdio", "command": MEMCTL, "args": ["mcp"]}
    config.write_text(json.dumps({"mcpServers": {"memd": server_}}))
    with ExitStack() as stack:
        quiet = stack.enter_context(messages_server(text("Understood.")))
        b = stack.enter_context(conversation(home, quiet, home.project()))
        b.say("Hello.")
        (to,) = [each["address"] for each in agents(home)]

        def sender(request: ReceivedMessage) -> ScriptedReply:
            if "tool_result" in str(request.json["messages"][-2:]):
                return text("Sent.")
            return tools((TOOL, {"to": to, "message": BODY, "summary": "kestrel is green"}))

        sending = stack.enter_context(messages_server(sender))
        options = ("--mcp-config", str(config), "--allowedTools", TOOL)
        a = stack.enter_context(conversation(home, sending, home.project(), *options))
        turn = a.say(f"Tell {to}.")
        assert '"is_error":true' not in turn.requests[-1].body.decode()
        (own,) = [each["address"] for each in agents(home) if each["address"] != to]
        got = b.say("Any news?")
        assert delivered(got.requests[-1]) == 1
        assert f"Message from {own} (claude-code" in "".join(blocks(got.requests[-1]))


def test_a_killed_session_gets_it_again_when_it_is_resumed(home: Home) -> None:
    """Killed after the lease and before the turn ended, it has the message on resume."""
    sent: list[str] = []
    running: list[Conversation] = []
    model = working(home, sent)

    def deadly(request: ReceivedMessage) -> ScriptedReply:
        if delivered(request) and running:
            os.kill(running.pop()._process.pid, signal.SIGKILL)
        return model(request)

    session = "5f0c9f3e-7a35-4c3b-9a55-3d8d0d2f6a11"
    options = ("--allowedTools", "Bash", "--session-id", session)
    with messages_server(deadly) as server:
        with suppress(AssertionError), conversation(home, server, home.project(), *options) as talk:
            running.append(talk)
            talk.say("Go on.")
        assert not running
        assert state(home, sent[0]) == "leased"
        once(home, server, home.project(), "Go on.", "--resume", session)
    assert state(home, sent[0]) == "read"
    assert delivered(server.messages[-1]) >= 1


def test_a_sub_agent_gets_its_own(home: Home) -> None:
    """A message to a child is in the child's next request and in none of its parent's."""
    sent: list[str] = []
    own = "You look after the heron files."

    def model(request: ReceivedMessage) -> ScriptedReply:
        # The child's first message is its task; in the parent's it is the input of a tool.
        child = own in str(request.json["messages"][0])
        if "tool_result" in str(request.json["messages"][-2:]):
            return text("Done.")
        if not child:
            task = {"description": "heron", "prompt": own, "subagent_type": "general-purpose"}
            return tools(("Agent", {**task, "run_in_background": False}))
        if not sent:
            (address,) = [a["address"] for a in agents(home) if "/" in a["address"]]
            sent.append(send(home, address))
        return tools(("Bash", {"command": "echo kestrel", "description": "Say it"}))

    options = ("--allowedTools", "Bash", "Agent")
    with (
        messages_server(model) as server,
        conversation(home, server, home.project(), *options) as talk,
    ):
        talk.say("Go on.")
        of_child = [each for each in server.messages if own in str(each.json["messages"][0])]
        of_parent = [each for each in server.messages if each not in of_child]
        assert [delivered(each) for each in of_child] == [0, 1]
        assert not any(map(delivered, of_parent))
        assert state(home, sent[0]) == "read"


def test_without_messages_nothing_arrives(home: Home) -> None:
    """Once --messages is taken out, a session is no agent and hooks bring nothing."""
    memctl(home, "setup", "claude-code", "--messages", "--remove")
    with (
        messages_server(text("Understood.")) as server,
        conversation(home, server, home.project()) as talk,
    ):
        talk.say("Hello.")
        assert agents(home) == []


def test_codex_gets_a_message(home: Home) -> None:
    """A message to a session of Codex comes with the prompt that resumes it."""
    memctl(home, "setup", "codex", "--messages")
    with messages_server(text("Understood."), kind=ResponsesServer) as server:
        place = Path(home.path) / ".codex" / "config.toml"
        place.write_text(CODEX_CONFIG.format(url=server.url) + place.read_text())
        command = [program("codex"), *CODEX]
        key = {"LOCAL_KEY": "dummy"}
        run([*command, "Hello."], home, key, cwd=home.project())
        message = send(home, agents(home)[0]["address"])
        run([*command, "resume", "--last", "Any news?"], home, key, cwd=home.project())
        assert delivered(server.messages[-1]) == 1
    assert state(home, message) == "read"
    shutil.rmtree(Path(home.path, ".codex", ".tmp"), ignore_errors=True)  # its own, and not memd's


def test_gemini_gets_a_message(home: Home) -> None:
    """A message to a session of Gemini CLI comes with the prompt that resumes it."""
    place = Path(home.path) / ".gemini" / "settings.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    memctl(home, "setup", "gemini", "--messages")
    with messages_server(text("Understood."), kind=GeminiServer) as server:
        extra = {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": server.url}
        extra |= {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        command = [program("gemini"), "-m", "gemini-2.5-flash", "--approval-mode", "yolo"]
        run([*command, "-p", "Hello."], home, extra, cwd=home.project())
        message = send(home, agents(home)[0]["address"])
        run([*command, "--resume", "latest", "-p", "Any news?"], home, extra, cwd=home.project())
        assert any(delivered(each) for each in server.messages)
    assert state(home, message) in {"read", "leased"}


def test_opencode_gets_a_message(home: Home) -> None:
    """A message to a session of OpenCode comes quoted with its next prompt and is read then."""
    with messages_server(text("Understood.")) as server:
        set_up_opencode(home, server)
        memctl(home, "setup", "opencode", "--messages")
        command = [program("opencode"), "run"]
        run([*command, "Hello."], home, cwd=home.project())
        message = send(home, agents(home)[0]["address"])
        assert state(home, message) == "queued"
        run([*command, "--continue", "Any news?"], home, cwd=home.project())
        last = server.messages[-1]
    assert delivered(last) == 1
    assert "not from the user" in "".join(blocks(last))
    assert state(home, message) == "read"


@pytest.mark.parametrize(
    "call",
    [
        ("bash", {"command": "echo kestrel", "description": "Say it"}),
        ("memd_search", {"query": "kestrel"}),
    ],
    ids=["its own tool", "a tool of an MCP server"],
)
def test_opencode_gets_a_message_within_its_turn(
    home: Home, call: tuple[str, dict[str, str]]
) -> None:
    """Sent while OpenCode's model works, it is with the tool's result in the next request."""
    sent: list[str] = []

    def model(request: ReceivedMessage) -> ScriptedReply:
        if not request.json.get("tools") or "tool_result" in str(request.json["messages"][-1]):
            return text("Done.")  # a title for the session, or the end of the turn
        sent.append(send(home, agents(home)[0]["address"]))
        return tools(call)

    with messages_server(model) as server:
        set_up_opencode(home, server)
        memctl(home, "setup", "opencode", "--messages")
        run([program("opencode"), "run", "Go on."], home, cwd=home.project())
        turn = [each for each in server.messages if each.json.get("tools")]
    assert [delivered(each) for each in turn] == [0, 1]
    result = str(turn[-1].json["messages"][-1])
    assert "tool_result" in result
    assert "is_error': True" not in result
    assert "not from the user" in "".join(blocks(turn[-1]))
    assert state(home, sent[0]) == "read"


def test_a_sub_agent_of_opencode_gets_nothing(home: Home) -> None:
    """Sent while a sub-agent works, it is in none of its requests, and with its result once."""
    sent: list[str] = []
    own = "You look after the heron files."

    def model(request: ReceivedMessage) -> ScriptedReply:
        child = own in str(request.json["messages"][0])
        if not request.json.get("tools") or "tool_result" in str(request.json["messages"][-1]):
            return text("Done.")
        if not child:
            task = {"description": "heron", "prompt": own, "subagent_type": "general"}
            return tools(("task", task))
        (agent,) = agents(home)
        sent.append(send(home, agent["address"]))
        return tools(("bash", {"command": "echo kestrel", "description": "Say it"}))

    with messages_server(model) as server:
        set_up_opencode(home, server)
        memctl(home, "setup", "opencode", "--messages")
        run([program("opencode"), "run", "Go on."], home, cwd=home.project())
        turns = [each for each in server.messages if each.json.get("tools")]
    of_child = [each for each in turns if own in str(each.json["messages"][0])]
    of_parent = [each for each in turns if each not in of_child]
    assert [delivered(each) for each in of_child] == [0, 0]
    assert [delivered(each) for each in of_parent] == [0, 1]
    assert state(home, sent[0]) == "read"


def test_nc_sends_and_receives(home: Home) -> None:
    """Lines through nc register an agent, send it a message, lease and acknowledge it."""
    nc = [program("nc"), "-N", "-U", home.places.socket]

    def ask(method: str, **params: Any) -> Any:
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        done = subprocess.run(nc, input=f"{line}\n", capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["result"]

    about = {"cwd": home.project(), "pid": os.getpid()}
    key = ask("agent.register", name="shell", **about)["key"]
    ask("message.send", cwd=home.project(), to="shell", body=BODY)
    (got,) = ask("message.receive", key=key)["messages"]
    assert got["body"] == BODY
    assert ask("message.ack", key=key, ids=[got["id"]])["acked"] == 1

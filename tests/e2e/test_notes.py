"""The real Claude Code and session notes: what a compaction leaves out comes back once."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memd.text.quoting import units
from tests.e2e.claude import Conversation, Turn, conversation, once, stop
from tests.e2e.hooks import CODEX, CODEX_CONFIG, blocks, set_up_opencode
from tests.e2e.models import ResponsesServer
from tests.e2e.programs import memctl, program, run
from tests.e2e.relay import FACTS
from tests.support.daemon import Home, client, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text, tools
from tests.support.steps import ReceivedMessage, ScriptedReply

pytestmark = pytest.mark.e2e
FACT = FACTS[0]
REQUEST = "Please find out why the kestrel import stops at row 500."
COMMAND = "echo 'step {}: the import of the kestrel rows: ROW_LIMIT reached at 500' >&2; exit 3"
ERROR = "ROW_LIMIT reached at 500"
STEPS = 30  # calls that make the notes longer than there is room
HEADING = "# Current State"
MOST_CHARACTERS = 9_500  # of memd's text in one request
HOOK_SECONDS = 1.0
_TOOLS = ("--allowedTools", "Read", "Bash")


def working(request: ReceivedMessage) -> ScriptedReply:
    """Return what a model does: read the file, run the command, answer, or sum up."""
    asked = [message for message in request.json["messages"] if message["role"] == "user"]
    last, body = str(asked[-1]["content"]), request.body.decode()
    if "<summary>" in last:
        return text("<summary>We talked.</summary>")
    if REQUEST not in body or HEADING in body:
        return text("Understood.")
    step = body.count('"tool_use"') // 2
    if step == STEPS:
        return text("It stops at ROW_LIMIT.")
    file = {"file_path": f"{_project(request)}/kestrel.py"}
    return tools(("Read", file), ("Bash", {"command": COMMAND.format(step), "description": "Go"}))


def _project(request: ReceivedMessage) -> str:
    """Return the working directory that the client tells its model."""
    return request.body.decode().partition("Primary working directory: ")[2].split("\\n")[0]


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Serve the model."""
    with messages_server(working) as serving:
        yield serving


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home with memd's hooks and a project with a file."""
    with throw_away_home() as made:
        memctl(made, "--no-start", "setup", "claude-code")
        Path(made.project(), "kestrel.py").write_text("ROW_LIMIT = 500\n")
        yield made
        stop(made)


def notes(request: ReceivedMessage) -> list[str]:
    """Return the blocks of memd's in a request that hold session notes."""
    return [block for block in brought(request) if HEADING in block]


def brought(request: ReceivedMessage) -> list[str]:
    """Return memd's blocks in a request."""
    return [json.loads(f'"{block}"') for block in blocks(request)]


def compact(talk: Conversation) -> Sequence[Turn]:
    """Return the turns of a conversation: work, ``/compact``, and the next prompt."""
    return [talk.say(words) for words in (REQUEST, "/compact", FACT.question)]


def session(turn: Turn) -> str:
    """Return the client's id of the conversation."""
    return str(turn.events[-1]["session_id"])


def save(home: Home) -> None:
    """Save a long memory that the prompt behind the compaction is about."""
    with client(home) as caller:
        parts = {"name": "heron", "type": "project", "description": "how heron is deployed"}
        where = {"cwd": home.project(), "path": "heron.md"}
        body = "\n".join(
            (FACT.statement, *(f"Part {part} of the heron plan." for part in range(150)))
        )
        caller.call("memory.write", {**where, **parts, "body": body})


@pytest.mark.usefixtures("daemon")
def test_notes_come_back_once_after_a_compaction(home: Home, server: MessagesServer) -> None:
    """The request behind it holds file, command and error, within memd's share, and stays so."""
    save(home)
    with conversation(home, server, home.project(), *_TOOLS) as talk:
        *_, after = compact(talk)
        again = talk.say("And now?")
    for turn in (after, again):
        (block,) = notes(turn.requests[-1])
        assert "/kestrel.py" in block
        assert COMMAND.format(STEPS - 1) in block
        assert ERROR in block
        assert REQUEST in block
    shown = brought(after.requests[-1])
    assert sum(block.count(FACT.statement) for block in shown) == 1
    assert MOST_CHARACTERS / 2 < sum(map(units, shown)) <= MOST_CHARACTERS
    assert "PreCompact" in after.requests[-1].body.decode()
    assert "completed successfully: " not in after.requests[-1].body.decode()
    listed = memctl(home, "notes", "list", cwd=home.project())
    assert listed.split()[0] == session(after)
    assert f"`{COMMAND.format(STEPS - 1)}`" in memctl(
        home, "notes", "--section", "workflow", cwd=home.project()
    )


@pytest.mark.usefixtures("daemon")
def test_a_full_window_brings_them_to_the_prompt_that_did_not_fit(home: Home) -> None:
    """The compaction comes between a prompt and its request, which has the notes once."""
    full = ScriptedReply(({"type": "text", "text": "Done."},), usage={"input_tokens": 990_000})
    script = [full, text("<summary>We talked.</summary>"), text("Going on."), text("Still.")]
    with (
        messages_server(script) as server,
        conversation(home, server, home.project()) as talk,
    ):
        turns = [talk.say(words) for words in (REQUEST, "Go on.", "And now?")]
    assert [len(turn.requests) for turn in turns] == [1, 2, 1]
    for turn in turns[1:]:
        (block,) = notes(turn.requests[-1])
        assert REQUEST in block


@pytest.mark.usefixtures("daemon")
def test_a_conversation_that_is_resumed_gets_nothing_more(
    home: Home, server: MessagesServer
) -> None:
    """Before any compaction there are none, afterwards the ones that are in its history."""
    cwd = home.project()
    with conversation(home, server, cwd, *_TOOLS) as talk:
        id_ = session(talk.say(REQUEST))
    counts = []
    for words in ("Go on.", "/compact", "Go on.", "Go on."):
        once(home, server, cwd, words, "--resume", id_)
        counts.append(len(notes(server.messages[-1])))
    assert counts == [0, 0, 1, 1]


def test_a_daemon_that_is_killed_meanwhile_costs_the_notes_alone(
    home: Home, server: MessagesServer, daemon: "subprocess.Popen[bytes]"
) -> None:
    """The compaction takes at most a second longer, and the conversation goes on."""
    with conversation(home, server, home.project(), *_TOOLS) as talk:
        *_, usual, _ = compact(talk)
        talk.say(REQUEST)
        os.kill(daemon.pid, signal.SIGSTOP)  # so that the hook waits
        killing = threading.Timer(0.3, os.kill, (daemon.pid, signal.SIGKILL))
        killing.start()
        compacted, after = talk.say("/compact"), talk.say("Go on.")
        killing.join()
    assert compacted.seconds - usual.seconds <= HOOK_SECONDS
    assert [turn.events[-1]["subtype"] for turn in (compacted, after)] == ["success"] * 2


@pytest.mark.usefixtures("daemon")
def test_the_summary_hears_of_the_notes_where_that_is_wanted(
    home: Home, server: MessagesServer
) -> None:
    """With notes.precompact the request for the summary names the file; else it does not."""
    settings = Path(home.places.config)
    asked = []
    for wanted in ("false", "true"):
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(f"[notes]\nprecompact = {wanted}\n")
        settings.chmod(0o600)
        with conversation(home, server, home.project(), *_TOOLS) as talk:
            _, compacted, _ = compact(talk)
        (request,) = compacted.requests
        asked.append(f"{session(compacted)}/session-memory/summary.md" in request.body.decode())
    assert asked == [False, True]


def test_codex_gets_its_notes_once_too(home: Home) -> None:
    """A conversation that is resumed and compacted at once has them in its next request."""
    memctl(home, "setup", "codex")
    used = {"input_tokens": 50_000, "total_tokens": 50_001}
    model = ScriptedReply(({"type": "text", "text": "Understood."},), usage=used)
    with messages_server(model, kind=ResponsesServer) as server:
        place = Path(home.path) / ".codex" / "config.toml"
        limit = "model_auto_compact_token_limit = 20000\n"
        place.write_text(limit + CODEX_CONFIG.format(url=server.url) + place.read_text())
        command = [program("codex"), *CODEX]
        for words in ((REQUEST,), ("resume", "--last", "Go on."), ("resume", "--last", "And now?")):
            run([*command, *words], home, {"LOCAL_KEY": "dummy"}, cwd=home.project())
        asked = [notes(request) for request in server.messages]
    assert [len(blocks) for blocks in asked] == [0, 0, 1, 1, 1]
    assert REQUEST in asked[2][0]
    assert "`Go on.`" in asked[4][0]


def test_opencode_has_them_in_its_system_prompt(home: Home) -> None:
    """Its window is full after the first reply: it compacts by itself and goes on with them."""
    full = ScriptedReply(({"type": "text", "text": "Understood."},), usage={"input_tokens": 50_000})
    with messages_server([full, full, text("We talked."), text("Understood.")]) as server:
        set_up_opencode(home, server, limit={"context": 40_000, "output": 4_000})
        run([program("opencode"), "run", REQUEST], home, cwd=home.project())
        *before, last = server.messages
    assert (len(before), [notes(request) for request in before]) == (3, [[], [], []])
    (block,) = notes(last)
    assert REQUEST in block

"""The real Claude Code with memd's mod, which asks the daemon inside Claude Code's own process."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pytest

from tests.e2e.claude import Conversation, conversation, once, stop
from tests.e2e.hooks import blocks
from tests.e2e.programs import ROOT, learn_from_scripts, memctl, program, run, version
from tests.e2e.relay import FACTS
from tests.e2e.test_claude_code import memories, recalled, save
from tests.e2e.test_claude_code_memory import FILE
from tests.support.daemon import Home, client, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text, tools
from tests.support.waiting import wait_until_up

pytestmark = pytest.mark.e2e
FACT = FACTS[0]
MOD = str(ROOT / "clients" / "claude-code" / "mod")
WITH_MOD = ("--plugin-dir", MOD)
TURN_SECONDS = 0.5  # that a daemon that is gone or hangs may cost a turn: its prompt and its end


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home without memd's hooks; skip where Claude Code runs no mods."""
    with throw_away_home() as made:
        validated = run([program("claude"), "plugin", "validate", "--strict", MOD], made)
        if "modules: hooks/memd.js" not in validated:
            pytest.skip(f"Claude Code {version(made, [program('claude'), '-v'])} runs no mods")
        learn_from_scripts(made)
        yield made
        stop(made)


@pytest.mark.usefixtures("daemon")
def test_a_prompt_gets_its_memory_once(home: Home, server: MessagesServer) -> None:
    """In three turns about one thing its memory comes once, and no hook's process runs."""
    save(home)
    with conversation(home, server, home.project(), *WITH_MOD) as talk:
        turns = [talk.say(FACT.question) for _ in range(3)]
    assert [recalled(turn.requests[-1]) for turn in turns] == [1, 1, 1]
    assert [turn.hooks for turn in turns] == [{}, {}, {}]


@pytest.mark.usefixtures("daemon")
def test_a_turn_is_learnt_from(home: Home, server: MessagesServer) -> None:
    """What the person asks to remember is a memory afterwards."""
    once(home, server, home.project(), FACT.request, *WITH_MOD)
    assert [FACT.said(memory) for memory in memories(home)] == [True]


@pytest.mark.usefixtures("daemon")
def test_after_a_compaction_a_memory_comes_again(home: Home, server: MessagesServer) -> None:
    """The start that follows /compact resets what the conversation was given."""
    save(home)
    with conversation(home, server, home.project(), *WITH_MOD) as talk:
        talk.say(FACT.question)
        talk.say("/compact")
        after = talk.say(FACT.question)
    assert recalled(after.requests[-1]) == 1


@pytest.mark.usefixtures("daemon")
def test_a_memory_that_the_assistant_writes_gets_its_line(home: Home) -> None:
    """The model is told behind its tool's result, and the line stands in the index."""
    with client(home) as caller:
        folder = Path(caller.call("memory.list", {"cwd": home.project()})["memory_dir"])
    memory = {
        "file_path": str(folder / "heron-branch.md"),
        "content": FILE.format(statement=FACT.statement),
    }
    with messages_server([tools(("Write", memory)), text("Saved.")]) as server:
        once(home, server, home.project(), "Where is the heron?", *WITH_MOD)
    assert "MEMORY.md" in "".join(blocks(server.messages[-1]))
    assert "](heron-branch.md)" in (folder / "MEMORY.md").read_text()


@pytest.mark.usefixtures("daemon")
def test_where_the_plugin_is_enabled_it_keeps_still(home: Home, server: MessagesServer) -> None:
    """The hooks are then the plugin's, which this home does not have."""
    save(home)
    settings = Path(home.path, ".claude", "settings.json")
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"enabledPlugins": {"memd@memd": true}}')
    once(home, server, home.project(), FACT.question, *WITH_MOD)
    assert recalled(server.messages[-1]) == 0


@pytest.mark.usefixtures("daemon")
def test_beside_the_hooks_of_setup_it_keeps_still(home: Home, server: MessagesServer) -> None:
    """With both, a memory comes once, by the hook."""
    save(home)
    memctl(home, "setup", "claude-code")
    with conversation(home, server, home.project(), *WITH_MOD) as talk:
        turn = talk.say(FACT.question)
    assert recalled(turn.requests[-1]) == 1
    assert "UserPromptSubmit" in turn.hooks


def test_without_a_daemon_a_conversation_is_kept_for_it(home: Home, server: MessagesServer) -> None:
    """A conversation before there ever was a daemon starts one, which learns from it."""
    said = once(home, server, home.project(), FACT.request, *WITH_MOD)
    assert said == "Understood.\n"
    wait_until_up(home.places)
    until = time.monotonic() + 30
    while not memories(home) and time.monotonic() < until:
        pass  # the daemon answers before it has worked off what was kept
    assert [FACT.said(memory) for memory in memories(home)] == [True]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_daemon_that_goes_away_costs_recall_alone(
    home: Home, server: MessagesServer, daemon: "subprocess.Popen[bytes]", how: signal.Signals
) -> None:
    """Killed or stopped in mid-conversation, it costs no turn and little of a turn's time."""
    save(home)
    with ExitStack() as stack:
        stack.callback(os.kill, daemon.pid, signal.SIGCONT)
        with conversation(home, server, home.project(), *WITH_MOD) as talk:
            usual = _seconds(talk, "Good morning.")
            os.kill(daemon.pid, how)
            gone = _seconds(talk, "Good evening.")
    assert gone - usual <= TURN_SECONDS


def _seconds(talk: Conversation, prompt: str) -> float:
    """Return how long a turn takes, the median of five; each has to end well."""
    turns = [talk.say(f"{prompt} ({number})") for number in range(5)]
    assert {turn.events[-1]["subtype"] for turn in turns} == {"success"}
    return median(turn.seconds for turn in turns)

"""The real Claude Code with memd's hooks: from nothing, over compaction, without a daemon."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pytest

from tests.e2e.claude import Turn, conversation, once, stop
from tests.e2e.hooks import blocks
from tests.e2e.programs import learn_from_scripts, memctl
from tests.e2e.relay import FACTS
from tests.support.daemon import Home, client, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text, tools
from tests.support.steps import ReceivedMessage, ScriptedReply
from tests.support.waiting import wait_until_up

pytestmark = pytest.mark.e2e
FACT = FACTS[0]
PROMPT_SECONDS = 0.25  # that a daemon that is gone or hangs may cost a prompt
# What a stopped daemon may cost in all: a start, a prompt, the end of a turn and of a session.
CONVERSATION_SECONDS = 4 * PROMPT_SECONDS
# What Claude Code itself waits at a start with -p for a server of MCP that does not answer.
SERVER_SECONDS = 3.0
REMARK = "We always quote our prices in crowns."
_OFFER = "review accept "


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home where memd's hooks are set up; whatever daemon a hook starts there is ended."""
    with throw_away_home() as made:
        learn_from_scripts(made)
        memctl(made, "setup", "claude-code")
        stop(made)
        yield made
        stop(made)


def save(home: Home, description: str = "how the heron service is deployed") -> None:
    """Save the fact as a memory of the home's project."""
    with client(home) as caller:
        parts = {"name": "heron", "description": description, "type": "project"}
        where = {"cwd": home.project(), "path": "heron.md"}
        caller.call("memory.write", {**where, **parts, "body": FACT.statement})


def memories(home: Home) -> list[str]:
    """Return the content of each memory of the home's project, once every job has ended."""
    with client(home) as caller:
        for job in caller.call("job.list", {})["jobs"]:
            caller.call("job.wait", {"job": job["job"]}, timeout=60)
        listed = caller.call("memory.list", {"cwd": home.project()})
        return [
            (Path(listed["memory_dir"]) / memory["path"]).read_text()
            for memory in listed["memories"]
        ]


def recalled(request: ReceivedMessage) -> int:
    """Return how often memd's blocks in a request give the fact away."""
    return sum(block.count(FACT.statement) for block in blocks(request))


def test_a_first_conversation_without_a_daemon_is_learnt_from(
    home: Home, server: MessagesServer
) -> None:
    """What is said before there ever was a daemon is known in the second conversation."""
    cwd = home.project()
    once(home, server, cwd, FACT.request)
    wait_until_up(home.places)
    until = time.monotonic() + 30
    while not memories(home) and time.monotonic() < until:
        pass  # the daemon answers before it has worked off what the hooks left
    assert [FACT.said(memory) for memory in memories(home)] == [True]
    once(home, server, cwd, FACT.question)
    assert FACT.said(server.messages[-1].body.decode())  # the line in the index says it all


@pytest.mark.usefixtures("daemon")
def test_nothing_is_brought_twice(home: Home, server: MessagesServer) -> None:
    """In three turns about one thing its memory comes once, and the index from the client alone."""
    save(home)
    with conversation(home, server, home.project()) as talk:
        turns = [talk.say(FACT.question) for _ in range(3)]
    counts = [recalled(turn.requests[-1]) for turn in turns]
    assert counts == [1, 1, 1]
    body = turns[-1].requests[-1].body.decode()
    assert body.count("](heron.md)") == 1


@pytest.mark.usefixtures("daemon")
def test_what_the_index_says_is_not_said_again(home: Home, server: MessagesServer) -> None:
    """A memory that says no more than its line in the client's own index is in no block."""
    save(home, FACT.statement)
    with conversation(home, server, home.project()) as talk:
        turn = talk.say(FACT.question)
    assert turn.requests[-1].body.decode().count(FACT.statement) == 1
    assert recalled(turn.requests[-1]) == 0


@pytest.mark.usefixtures("daemon")
def test_a_compaction_resets_the_ledger(home: Home, server: MessagesServer) -> None:
    """After /compact the memory is not in the context any more, and comes again."""
    save(home)
    with conversation(home, server, home.project()) as talk:
        talk.say(FACT.question)
        talk.say("/compact")
        after = talk.say(FACT.question)
        again = talk.say(FACT.question)
    assert recalled(after.requests[-1]) == 1
    assert recalled(again.requests[-1]) == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_daemon_that_goes_away_costs_recall_alone(
    home: Home, server: MessagesServer, daemon: "subprocess.Popen[bytes]", how: signal.Signals
) -> None:
    """Killed or stopped in mid-conversation, it costs no turn and little of a prompt's time."""
    save(home)
    with ExitStack() as stack:
        stack.callback(os.kill, daemon.pid, signal.SIGCONT)
        with conversation(home, server, home.project()) as talk:
            usual = [talk.say(f"Good morning. ({number})") for number in range(5)]
            os.kill(daemon.pid, how)
            turns = [talk.say(f"{FACT.question} ({number})") for number in range(5)]
    for turn in turns:
        assert turn.events[-1]["subtype"] == "success"
    assert recalled(turns[0].requests[-1]) == 0
    assert prompt_seconds(turns) - prompt_seconds(usual) <= PROMPT_SECONDS


def test_a_stopped_daemon_costs_a_whole_conversation_little(
    home: Home, server: MessagesServer, daemon: "subprocess.Popen[bytes]"
) -> None:
    """With a stopped daemon the hooks of a conversation cost little, and the server a wait."""
    cwd = home.project()

    def seconds(*options: str) -> float:
        return median(
            _seconds(lambda: once(home, server, cwd, "Good morning.", *options)) for _ in range(3)
        )

    usual = seconds()
    with ExitStack() as stack:
        stack.callback(os.kill, daemon.pid, signal.SIGCONT)
        os.kill(daemon.pid, signal.SIGSTOP)
        hooks, all_of_it = seconds("--strict-mcp-config"), seconds()
    assert hooks - usual <= CONVERSATION_SECONDS
    assert all_of_it - usual <= CONVERSATION_SECONDS + SERVER_SECONDS


def _seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def prompt_seconds(turns: Sequence[Turn]) -> float:
    """Return how long the hook of a prompt took, as the client saw it."""
    return median(turn.hooks["UserPromptSubmit"] for turn in turns)


def saving(request: ReceivedMessage) -> ScriptedReply:
    """Return what a model does that saves when it is told how: memctl through its shell."""
    context = "".join(blocks(request))
    if _OFFER not in context or "tool_result" in request.body.decode():
        return text("Understood.")
    number = context.partition(_OFFER)[2].split("`")[0]
    return tools(("Bash", {"command": f"memctl {_OFFER}{number}", "description": "Save it"}))


@pytest.mark.usefixtures("daemon")
def test_a_lasting_remark_becomes_a_memory_with_the_person_s_words(home: Home) -> None:
    """A remark without a marker is offered to the assistant, which saves it with its evidence."""
    cwd = home.project()
    allowed = ("--allowedTools", "Bash(memctl review accept:*)")
    with messages_server(saving) as server:
        once(home, server, cwd, REMARK)
        assert memories(home) == []
        once(home, server, cwd, "Write a price list.", *allowed)
        with_offer = [r for r in server.messages if _OFFER in "".join(blocks(r))]
        (memory,) = memories(home)
        assert f'**Said:** "{REMARK}"' in memory
        before = len(server.messages)
        once(home, server, cwd, "Write another price list.", *allowed)
        assert with_offer
        assert not any(_OFFER in "".join(blocks(r)) for r in server.messages[before:])


@pytest.mark.usefixtures("daemon")
def test_an_assistant_that_ignores_a_remark_is_not_bothered_again(
    home: Home, server: MessagesServer
) -> None:
    """The remark is offered to two conversations, once in each, and to no other one."""
    cwd = home.project()
    once(home, server, cwd, REMARK)
    memories(home)
    offered: list[int] = []
    for _ in range(4):
        with conversation(home, server, cwd) as talk:
            turns = [talk.say("Write a price list."), talk.say("Write another one.")]
        offered.append("".join(blocks(turns[-1].requests[-1])).count(REMARK))
        memories(home)
    assert offered == [1, 1, 0, 0]
    assert memories(home) == []

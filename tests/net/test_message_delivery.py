"""Messages that come with an assistant's hooks (10.4)."""

import json
import uuid
from typing import Any

import pytest

from tests.net.crew import Crew
from tests.net.kit import Home
from tests.net.wire import Client, Json

pytestmark = pytest.mark.full  # each has a daemon of its own

GREEN = "the build is green"


class Session:
    """A session of Claude Code, set up with ``--messages``."""

    def __init__(self, crew: Crew, title: str = "builder") -> None:
        self.crew = crew
        self.id = str(uuid.uuid4())
        self.hook("SessionStart", source="startup", session_title=title)

    def hook(self, event: str, *, prints: bool = True, messages: bool = True, **more: Json) -> str:
        """Run a hook on a connection of its own; return what the model gets."""
        payload = {"session_id": self.id, "cwd": self.crew.project.cwd, "hook_event_name": event}
        given: dict[str, Any] = {"client": "claude-code", "event": event, "deadline_ms": 10_000}
        with self.crew.home.connect() as client:
            answer = client.call("hook", payload={**payload, **more}, messages=messages, **given)
            if prints:
                client.call("hook.printed")
        output = (answer or {}).get("hookSpecificOutput") or {}
        return str(output.get("additionalContext", ""))

    def tool(self, **more: Json) -> str:
        """Run the hook behind a tool's result."""
        return self.hook("PostToolUse", tool_name="Bash", **more)


@pytest.fixture
def crew(own: Home) -> Crew:
    """Return one agent that sends; the hooks make this process an agent of a home of its own."""
    return Crew(own.start().project(), "sender")


def test_a_tool_brings_a_message_and_the_next_event_reads_it(crew: Crew) -> None:
    """What is sent in mid-turn comes with the next tool, once, and nothing comes at the end."""
    session = Session(crew)
    sent = crew.send("sender", "builder", GREEN)["id"]
    brought = session.tool(prompt_id="p")
    assert GREEN in brought
    assert "not from the user" in brought
    assert crew.state(sent) == "leased"
    assert session.hook("Stop") == ""
    assert crew.state(sent) == "read"
    assert GREEN not in session.hook("UserPromptSubmit", prompt="go on", prompt_id="q")


def test_an_idle_session_has_it_at_its_next_prompt(crew: Crew) -> None:
    """The end of a turn brings nothing; the prompt after it brings the message."""
    session = Session(crew)
    crew.send("sender", "builder", GREEN)
    assert session.hook("Stop") == ""
    assert GREEN in session.hook("UserPromptSubmit", prompt="and now?", prompt_id="p")


def test_what_was_not_printed_comes_again(crew: Crew) -> None:
    """A hook that died before it printed ends no message; none comes twice at the same time."""
    session = Session(crew)
    sent = crew.send("sender", "builder", GREEN)["id"]
    with crew.home.connect() as client:
        given: dict[str, Any] = {"client": "claude-code", "event": "PostToolUse", "messages": True}
        payload = {"session_id": session.id, "cwd": crew.project.cwd, "tool_name": "Read"}
        first = client.call("hook", payload=payload, deadline_ms=10_000, **given)
        assert GREEN in json.dumps(first)
        assert GREEN not in session.tool()
    assert session.hook("SessionStart", source="resume") is not None
    assert crew.state(sent) == "queued"
    assert GREEN in session.hook("UserPromptSubmit", prompt="go on", prompt_id="p")


def test_a_sub_agent_gets_its_own(crew: Crew) -> None:
    """A message to a child comes with the child's tools alone, and the parent's with its own."""
    session = Session(crew)
    session.hook("SubagentStart", agent_id="a1", agent_type="explorer")
    crew.send("sender", "builder/explorer", GREEN)
    crew.send("sender", "builder", "for the parent")
    brought = session.tool()
    assert ("for the parent" in brought, GREEN in brought) == (True, False)
    brought = session.tool(agent_id="a1")
    assert ("for the parent" in brought, GREEN in brought) == (False, True)


def test_without_messages_nothing_is_delivered(crew: Crew) -> None:
    """A set-up without ``--messages`` registers no session and brings no message."""
    session = Session(crew)
    crew.send("sender", "builder", GREEN)
    assert GREEN not in session.hook("PostToolUse", messages=False, prints=False, tool_name="Bash")


def test_a_round_brings_four_and_4000_characters(crew: Crew) -> None:
    """At most four messages come at once; a long one is named by summary and id."""
    session = Session(crew)
    for number in range(6):
        crew.send("sender", "builder", f"message number {number}.")
    brought = session.tool()
    assert [f"number {n}." in brought for n in range(6)] == [True] * 4 + [False] * 2
    brought = session.tool()
    assert [f"number {n}." in brought for n in range(6)] == [False] * 4 + [True] * 2
    sent = crew.send("sender", "builder", "x" * 9000, summary="A long report")["id"]
    brought = session.tool()
    assert "A long report" in brought
    assert sent in brought
    assert len(brought) <= 4500  # with what memd says around it


def test_the_block_says_how_to_answer(crew: Crew) -> None:
    """What a hook brings ends with the tool or the command that answers."""
    session = Session(crew)
    crew.send("sender", "builder", GREEN)
    brought = session.tool()
    end = brought[brought.rindex(GREEN) :]
    assert "send_message" in end or "memctl message send" in end


def test_nothing_is_learnt_from_a_message(crew: Crew) -> None:
    """What a hook brought and nobody said is cut out before extraction."""
    crew.register("bert")
    crew.send("sender", "bert", "Remember that the zebra broker listens on port 9911.")
    block = crew.received("bert")["block"]
    talk = crew.project.conversation()
    talk.user(f"<system-reminder>\n{block}\n</system-reminder>\nplease go on with the tests")
    talk.assistant("Done.")
    given: dict[str, Json] = {"session_id": talk.session, "transcript_path": str(talk.path)}
    crew.project.call("extract", **given, wait=True)
    assert "9911" not in json.dumps(crew.project.tree())


def connected(crew: Crew) -> Client:
    """Return a client that hears of the project's messages."""
    client = crew.home.connect()
    client.call("subscribe", topics=["agent.changed"], cwd=crew.project.cwd)
    return client


def test_subscribers_hear_of_agents(crew: Crew) -> None:
    """``agent.changed`` says that an agent came or ended."""
    client = connected(crew)
    crew.register("late")
    assert "late" in json.dumps(client.event("agent.changed"))

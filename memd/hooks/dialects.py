"""Translate between clients' names for events of a conversation and memd's. Pure.

Rules of this file
- An event that is in no table adds no text, and nothing is learnt from it.
- Nothing is learnt from the start or the stop of a sub-agent: its words are not the person's, and
  its answer stands in the conversation that it works for. Claude Code also sends such events, for
  agents without a type, at each ``/compact``.
- A client that empties its context says so in one way: Claude Code with the ``SessionStart`` that
  follows, Codex with ``PostCompact`` as well. Gemini CLI 0.61 announces a compression before every
  turn and most come to nothing, so only the one that a person asked for counts.
- A prompt is the person's words alone. Gemini CLI, when run for one prompt, puts the text that the
  start of the session added before them, so it is removed.
- All of them load CLAUDE.md, AGENTS.md or GEMINI.md by themselves, so no event adds the text of
  such files: a client would have it twice. A client that loads none asks ``load_prompt`` for it.
- A payload is untrusted JSON: one without the expected shape is no event.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from memd.base.client_events import EVENTS, EventKind
from memd.methods.method import hidden
from memd.projects.switches import CLAUDE_CODE
from memd.text import tags

_NOT_ASKED = "this client cannot ask the person, so ask them yourself; they can run it"


class Payload(Struct):
    """The members of a hook's payload that memd uses, by Claude Code's names; others are ignored.

    ``agent_id`` is set for what a sub-agent does, ``agent_type`` is the sub-agent's name.
    """

    session_id: str
    cwd: str
    transcript_path: str = ""
    prompt: str = ""
    prompt_id: str = ""
    source: str = ""
    trigger: str = ""
    agent_id: str = ""
    agent_type: str = ""
    session_title: str = ""
    tool_name: str = ""
    tool_use_id: str = ""
    tool_input: dict[str, Any] = {}
    tool_response: Any = None
    seconds_since_last_response: float | None = None


class Dialect(Struct, frozen=True):
    """The names that one client uses, and what its hooks can do.

    ``events`` has its names of events (``base.client_events``). ``renamed`` maps its names of
    payload members to Claude Code's. ``loads_memory`` says that the client may load the memory
    directory by itself, and ``notices`` that the person is shown a hook's message as one line.
    ``late_boundary`` says that the last event of a resumed session may have been a compaction;
    other clients send an event for it again.
    ``replaces_results`` says that a hook may change a tool's result, and ``asks`` that before a
    tool runs a hook may have the person asked, not only refuse.
    """

    events: Mapping[str, EventKind]
    renamed: Mapping[str, str] = field(default_factory=dict)
    loads_memory: bool = False
    notices: bool = False
    late_boundary: bool = False
    replaces_results: bool = False
    asks: bool = False


DIALECTS: Mapping[str, Dialect] = {
    CLAUDE_CODE: Dialect(
        EVENTS[CLAUDE_CODE],
        loads_memory=True,
        notices=True,
        late_boundary=True,
        replaces_results=True,
        asks=True,
    ),
    "codex": Dialect(EVENTS["codex"], {"turn_id": "prompt_id"}),
    "gemini": Dialect(
        EVENTS["gemini"],
        notices=True,
    ),
    "opencode": Dialect(EVENTS["opencode"]),
}


def read(dialect: Dialect, name: str, payload: Any) -> tuple[EventKind, Payload] | None:
    """Return an event and the members of its payload that memd uses, or ``None``.

    ``None`` stands for an event that is in no table, and for a payload without the expected shape.
    """
    if not isinstance(payload, dict):
        return None
    members = {dialect.renamed.get(key, key): value for key, value in payload.items()}
    # A member that is null takes its default, as if it were missing.
    members = {key: value for key, value in members.items() if value is not None}
    try:
        facts = msgspec.convert(members, type=Payload)
    except msgspec.ValidationError:
        return None
    facts.prompt = tags.strip(facts.prompt).strip()
    facts.session_id, facts.prompt_id = hidden(facts.session_id), hidden(facts.prompt_id)
    event = dialect.events.get(name) or dialect.events.get(f"{name} {facts.trigger}")
    return (event, facts) if event else None


def named_memories(payload: Payload, directory: str) -> frozenset[str]:
    """Return the memories that a tool's input names by absolute path, relative to ``directory``."""
    below_directory = re.compile(rf"{re.escape(directory)}/([^\n\"'\0]+?\.md)")
    texts = (value for value in payload.tool_input.values() if isinstance(value, str))
    return frozenset(path for text in texts for path in below_directory.findall(text))


def longest_text(response: Any) -> str:
    """Return the longest text in a tool's result, "" where there is none; images are no text."""
    if isinstance(response, str):
        return response
    parts: list[Any] = []
    if isinstance(response, list):
        parts = response
    elif isinstance(response, dict) and response.get("type", "text") == "text":
        parts = list(response.values())
    return max((longest_text(part) for part in parts), key=len, default="")


def with_text(response: Any, old: str, new: str) -> Any:
    """Return a tool's result in the same shape, with each text ``old`` replaced by ``new``."""
    if isinstance(response, dict):
        return {name: with_text(value, old, new) for name, value in response.items()}
    if isinstance(response, list):
        return [with_text(part, old, new) for part in response]
    return new if response == old else response


def answer(
    dialect: Dialect, name: str, *texts: str, notice: str = "", response: Any = None
) -> dict[str, Any] | None:
    """Return the hook output that adds texts to a conversation, or ``None`` where it is empty.

    The texts are joined in one tag. ``notice`` is a line for the person, left out for clients that
    show none. ``response`` replaces a tool's result.
    """
    text = "\n".join(filter(None, texts))
    text = text.replace(f"{tags.CLOSE}\n{tags.OPEN}\n", "\n")  # one tag around all of them
    members = {"additionalContext": text or None, "updatedToolOutput": response}
    present = {member: value for member, value in members.items() if value is not None}
    result: dict[str, Any] = {}
    if present:
        result["hookSpecificOutput"] = {"hookEventName": name, **present}
    if notice and dialect.notices:
        result["systemMessage"] = notice
    return result or None


def decided(dialect: Dialect, name: str, decision: str, words: str) -> dict[str, Any] | None:
    """Return the hook output that refuses a tool call or asks the person; ``None`` to allow it.

    A client that cannot ask the person refuses, and ``words`` then tell its model to ask them.
    """
    if decision == "allow":
        return None
    if decision == "ask" and not dialect.asks:
        decision, words = "deny", f"{words} ({_NOT_ASKED})"
    if name == "BeforeTool":  # of Gemini CLI
        return {"decision": decision, "reason": words}
    members = {"permissionDecision": decision, "permissionDecisionReason": words}
    return {"hookSpecificOutput": {"hookEventName": name, **members}}

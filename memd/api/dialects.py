"""What each client calls the events of a conversation, and how it wants them answered. Pure.

Rules of this file
- An event that is in no table brings nothing and is learnt from by nobody.
- Of sub-agents' starts and stops nothing is learnt: what a sub-agent says is not the person's, and
  its answer stands in the conversation that it works for. Claude Code has some, of agents without a
  type, at each ``/compact``.
- A client that empties its context says so in one way: Claude Code with the ``SessionStart`` that
  follows, Codex with ``PostCompact`` as well. Gemini CLI 0.61 announces a compression before every
  turn and most come to nothing, so only the one that a person asked for counts.
- A prompt is the person's words alone. Gemini CLI run for one prompt puts what the start of the
  session brought before them.
- All of them load CLAUDE.md, AGENTS.md or GEMINI.md by themselves, so no event brings the text of
  such files: a client would have it twice. A client that loads none asks ``load_prompt`` for it.
- A payload is a stranger's JSON: what does not have the expected shape is no event.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from typing import Any

import msgspec

from memd.api.method import Named
from memd.core.names import printable
from memd.text import tags

CLAUDE_CODE = "claude-code"
_NAMED = 3  # memories in one line
_NOT_ASKED = "this client cannot ask the person, so ask them yourself; they can run it"


class Event(Enum):
    """What happens in a conversation, whatever the client calls it."""

    SESSION_START = auto()
    PROMPT = auto()
    TURN_END = auto()
    COMPACTING = auto()
    COMPACTED = auto()
    SESSION_END = auto()
    TOOL_USED = auto()
    SUBAGENT_START = auto()
    SUBAGENT_END = auto()
    TOOL_ASKED = auto()


class Payload(Named):
    """The members of a hook's payload that count, by Claude Code's names; others are passed over.

    ``agent_id`` is there for what a sub-agent does, ``agent_type`` is the sub-agent's name.
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
    tool_input: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies an empty default
    tool_response: Any = None
    seconds_since_last_response: float | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One client: its events (with a trigger where only that one counts) and its other names.

    ``renamed`` are names of members that are not Claude Code's. ``loads_memory`` says that the
    client may load the memory directory by itself, ``tags`` that memd's tag reaches the model, and
    ``notices`` that the person is shown a hook's message as one quiet line. With ``late_boundary``
    a compaction may have been the last of a session that is resumed; others bring it up again
    themselves, with an event of its own. ``replaces_results``: a hook may change what a tool gave.
    ``asks``: before a tool runs a hook may have the person asked, not only refuse it.
    """

    events: Mapping[str, Event]
    renamed: Mapping[str, str] = field(default_factory=dict)
    loads_memory: bool = False
    tags: bool = True
    notices: bool = False
    late_boundary: bool = False
    replaces_results: bool = False
    asks: bool = False


_SHARED = {
    "SessionStart": Event.SESSION_START,
    "UserPromptSubmit": Event.PROMPT,
    "Stop": Event.TURN_END,
    "PreCompact": Event.COMPACTING,
    "SessionEnd": Event.SESSION_END,
    "PostToolUse": Event.TOOL_USED,
    "PreToolUse": Event.TOOL_ASKED,
}
DIALECTS: Mapping[str, Dialect] = {
    CLAUDE_CODE: Dialect(
        {
            **_SHARED,
            "SubagentStart": Event.SUBAGENT_START,
            "SubagentStop": Event.SUBAGENT_END,
        },
        loads_memory=True,
        notices=True,
        late_boundary=True,
        replaces_results=True,
        asks=True,
    ),
    "codex": Dialect({**_SHARED, "PostCompact": Event.COMPACTED}, {"turn_id": "prompt_id"}),
    "gemini": Dialect(
        {
            "SessionStart": Event.SESSION_START,
            "BeforeAgent": Event.PROMPT,
            "AfterAgent": Event.TURN_END,
            "PreCompress manual": Event.COMPACTED,
            "SessionEnd": Event.SESSION_END,
            "AfterTool": Event.TOOL_USED,
            "BeforeTool": Event.TOOL_ASKED,
        },
        tags=False,  # it puts the text into a tag of its own and escapes others
        notices=True,
    ),
}


def read(dialect: Dialect, name: str, payload: Any) -> tuple[Event, Payload] | None:
    """Return an event and what counts of its payload, ``None`` where it is no event for memd."""
    if not isinstance(payload, dict):
        return None
    given = {dialect.renamed.get(key, key): value for key, value in payload.items()}
    present = {key: value for key, value in given.items() if value is not None}
    try:
        facts = msgspec.convert(present, type=Payload)
    except msgspec.ValidationError:
        return None
    facts.prompt = tags.strip(facts.prompt).strip()
    event = dialect.events.get(name) or dialect.events.get(f"{name} {facts.trigger}")
    return (event, facts) if event else None


def named_memories(payload: Payload, directory: str) -> frozenset[str]:
    """Return the memories, relative to their directory, that a tool's input names in full."""
    named = re.compile(rf"{re.escape(directory)}/([^\n\"'\0]+?\.md)")
    texts = (value for value in payload.tool_input.values() if isinstance(value, str))
    return frozenset(path for text in texts for path in named.findall(text))


def longest_text(response: Any) -> str:
    """Return the longest text of what a tool gave, "" where there is none; images are no text."""
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        response = list(response.values()) if response.get("type", "text") == "text" else []
    parts = response if isinstance(response, list) else []
    return max(map(longest_text, parts), key=len, default="")


def with_text(response: Any, old: str, new: str) -> Any:
    """Return what a tool gave, in its own shape, with one text in the place of another."""
    if isinstance(response, dict):
        return {name: with_text(value, old, new) for name, value in response.items()}
    if isinstance(response, list):
        return [with_text(part, old, new) for part in response]
    return new if response == old else response


def saved_line(results: Iterable[Mapping[str, Any]]) -> str:
    """Return one line for a person on what extractions saved, "" where they saved nothing."""
    lists = [each.get(key, ()) for each in results for key in ("saved", "updated")]
    paths = [printable(path) for path in dict.fromkeys(chain.from_iterable(lists))]
    if not paths:
        return ""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"memd saved {', '.join(paths[:_NAMED])}{more} (memctl undo takes the newest back)"


def answer(
    dialect: Dialect, name: str, *texts: str, notice: str = "", response: Any = None
) -> dict[str, Any] | None:
    """Return what adds texts to a conversation, all in one tag, and tells the person something.

    ``response`` takes the place of what a tool gave. ``None`` where there is nothing to say.
    """
    text = "\n".join(filter(None, texts)).replace(f"{tags.CLOSE}\n{tags.OPEN}\n", "\n")
    if not dialect.tags:
        text = text.removeprefix(f"{tags.OPEN}\n").removesuffix(f"\n{tags.CLOSE}")
    members = {"additionalContext": text or None, "updatedToolOutput": response}
    present = {name: value for name, value in members.items() if value is not None}
    result: dict[str, Any] = {}
    if present:
        result["hookSpecificOutput"] = {"hookEventName": name, **present}
    if notice and dialect.notices:
        result["systemMessage"] = notice
    return result or None


def decided(dialect: Dialect, name: str, decision: str, words: str) -> dict[str, Any] | None:
    """Return what has a client refuse a tool's call, or ask the person; ``None`` to allow it.

    A client that asks nobody refuses, and its model is told that the person may want it.
    """
    if decision == "allow":
        return None
    if decision == "ask" and not dialect.asks:
        decision, words = "deny", f"{words} ({_NOT_ASKED})"
    if name == "BeforeTool":  # of Gemini CLI
        return {"decision": decision, "reason": words}
    members = {"permissionDecision": decision, "permissionDecisionReason": words}
    return {"hookSpecificOutput": {"hookEventName": name, **members}}

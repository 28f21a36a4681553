"""Scripted models that keep the notes of a session, well or badly."""

import re
from collections.abc import Callable
from typing import Any

from memd.testing.messages import ReceivedMessage, ScriptedReply, text, tools

Call = tuple[str, dict[str, Any]]
Script = Callable[[ReceivedMessage], ScriptedReply]
STATE, WORKLOG = "Current State", "Worklog"
_PATH = re.compile(r"The notes are the file `([^`]+)`")
_NOTES = re.compile(r"<notes>\n(.*)\n</notes>", re.DOTALL)


def prompt(request: ReceivedMessage) -> str:
    """Return what memd asks in a request: the last text of its last question."""
    for message in reversed(request.json["messages"]):
        content = message["content"]
        words = content if isinstance(content, str) else str(content[-1].get("text", ""))
        if message["role"] == "user" and _NOTES.search(words):
            return words
    return ""


def path(request: ReceivedMessage) -> str:
    """Return the path of the notes that a request names."""
    found = _PATH.search(prompt(request))
    return found[1] if found else ""


def notes(request: ReceivedMessage) -> str:
    """Return the notes that a request shows."""
    found = _NOTES.search(prompt(request))
    return found[1] if found else ""


def turn(request: ReceivedMessage) -> int:
    """Return the how-manieth request of a run this is, beginning with 1."""
    asked = [_NOTES.search(str(message["content"])) for message in request.json["messages"]]
    return sum(not found for found in asked[_last(asked) :]) // 2 + 1


def _last(asked: list[Any]) -> int:
    return max((place for place, found in enumerate(asked) if found), default=0)


def below(request: ReceivedMessage, title: str, content: str, **more: Any) -> Call:
    """Return a call that puts content below a section's italic line."""
    heading = f"# {title}\n"
    guide = notes(request).partition(heading)[2].partition("\n")[0]
    old = f"{heading}{guide}\n"
    given = {"file_path": path(request), "old_string": old, "new_string": f"{old}{content}\n"}
    return "Edit", given | more


def edits(*contents: tuple[str, str]) -> Script:
    """Return a model that fills sections, all in its first reply, and asks for no more."""
    return lambda request: tools(*(below(request, *content) for content in contents))


def calls(*wanted: Call) -> Script:
    """Return a model that makes the same calls in every reply."""
    return lambda _: tools(*wanted)


def then(*scripts: Script) -> Script:
    """Return a model that does one thing after the other in a run, and at last is done."""

    def answer(request: ReceivedMessage) -> ScriptedReply:
        number = turn(request)
        return scripts[number - 1](request) if number <= len(scripts) else text("done")

    return answer

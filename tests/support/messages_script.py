"""Read a script from a JSON or TOML file, for the server's command.

The file is an object: ``steps`` (a list), ``otherwise`` (one step for when the list is used up) and
the server's own options. A step is an object that says one of ``text``, ``tools``, ``structured``,
``refusal``, ``content``, ``error`` or ``raw``, and perhaps how it is delivered.
"""

import json
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tests.support.messages_request import ReceivedMessage
from tests.support.messages_steps import (
    Answer,
    Cut,
    Deliverable,
    Drip,
    Failure,
    Hang,
    Interrupt,
    Raw,
    Script,
    ScriptedReply,
    Step,
    Whole,
    refusal,
    structured,
    text,
    tools,
)

OPTIONS = ("without", "keys", "schemes", "window", "least", "models")
_ECHO, _TOP, _STEPS = "echo", "the top", "steps"


class InvalidScriptError(ValueError):
    """A script file that cannot be followed: where, and why."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the script is not clear at {where}: {why}")


class ScriptFile(Struct, frozen=True):
    """A script and the options of its server."""

    script: Script
    options: Mapping[str, Any]


def read(path: str) -> ScriptFile:
    """Return the script of a file; ``.toml`` is TOML and anything else JSON.

    Raises InvalidScriptError, and OSError when the file cannot be read. Blocks.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        value = (tomllib if path.endswith(".toml") else json).loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidScriptError(path, str(error)) from error
    return parse(value)


def parse(value: Any) -> ScriptFile:
    """Return the script that a parsed file holds. Raises InvalidScriptError."""
    if not isinstance(value, dict):
        raise InvalidScriptError(_TOP, _NO_OBJECT)
    _check_members(_TOP, value, {"steps", "otherwise", *OPTIONS})
    entries = value.get("steps", [])
    if not isinstance(entries, list):
        raise InvalidScriptError(_STEPS, _NO_LIST)
    steps: list[Answer] = [_step(f"step {n}", entry) for n, entry in enumerate(entries, 1)]
    options = {name: value[name] for name in OPTIONS if name in value}
    if "otherwise" in value:
        otherwise = _step("otherwise", value["otherwise"])
        return ScriptFile(_steps_and_otherwise(steps, otherwise), options)
    return ScriptFile(steps or echo, options)


def echo(request: ReceivedMessage) -> ScriptedReply:
    """Return the last message's text: what is said where a script says nothing."""
    return text(request.last_text)


_NO_OBJECT = "an object is wanted"
_NO_LIST = "a list is wanted"
# What a step may say: each member with a function that makes the answer of its value and the step.
_SAYS: Mapping[str, Callable[[Any, Mapping[str, Any]], Whole]] = {
    "text": lambda words, step: text(str(words), stop=step.get("stop", "end_turn")),
    "tools": lambda calls, step: tools(
        *((str(call["name"]), call.get("input", {})) for call in calls), say=step.get("say", "")
    ),
    "structured": lambda value, _: structured(value),
    "refusal": lambda value, _: refusal(**value),
    "content": lambda blocks, step: ScriptedReply(tuple(blocks), step.get("stop", "end_turn")),
    "error": lambda status, step: Failure(
        int(status), step.get("message", ""), retry_after=step.get("retry_after")
    ),
    "raw": lambda body, step: Raw(
        str(body).encode(),
        step.get("status", 200),
        step.get("content_type", "application/json"),
    ),
}
_NOT_ONE = f"one of {', '.join(_SAYS)} is wanted"
_UNKNOWN = "{} is not known"
_MORE_MEMBERS = {"stop", "say", "message", "retry_after", "status", "content_type"}
_DELIVERY_MEMBERS = {"cut", "drip", "hang", "interrupt"}


def _step(where: str, value: Any) -> Answer:
    """Return the answer that one entry of a script describes. Raises InvalidScriptError."""
    if value == _ECHO:
        return echo
    if not isinstance(value, dict):
        raise InvalidScriptError(where, _NO_OBJECT)
    _check_members(where, value, _SAYS.keys() | _MORE_MEMBERS | _DELIVERY_MEMBERS)
    names = [name for name in _SAYS if name in value]
    if len(names) != 1:
        raise InvalidScriptError(where, _NOT_ONE)
    make_answer = _SAYS[names[0]]
    try:
        return _with_delivery(make_answer(value[names[0]], value), value)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InvalidScriptError(where, repr(error)) from error


def _with_delivery(answer: Whole, value: Mapping[str, Any]) -> Step:
    """Return an answer with the way in which it is sent: interrupted, cut, in drops or late."""
    if "interrupt" in value and isinstance(answer, ScriptedReply):
        answer = Interrupt(answer, events=int(value["interrupt"]))
    step: Deliverable = answer
    if "cut" in value:
        step = Cut(answer, None if value["cut"] == "at once" else float(value["cut"]))
    elif "drip" in value:
        step = Drip(answer, seconds=float(value["drip"]))
    if "hang" in value:
        return Hang(step, seconds=None if value["hang"] == "for ever" else float(value["hang"]))
    return step


def _check_members(where: str, value: Mapping[str, Any], names: set[str]) -> None:
    """Raise InvalidScriptError if an entry has members other than these."""
    if unknown := sorted(value.keys() - names):
        raise InvalidScriptError(where, _UNKNOWN.format(unknown[0]))


def _steps_and_otherwise(steps: Sequence[Answer], otherwise: Answer) -> Answer:
    """Return an answer that follows the steps and then says one thing for ever."""
    steps_left = list(reversed(steps))
    lock = threading.Lock()  # guards the steps that are left

    def answer(request: ReceivedMessage) -> Step:
        """Return the next step of the script, or ``otherwise`` when it is used up."""
        with lock:
            step = steps_left.pop() if steps_left else otherwise
        return step(request) if callable(step) else step

    return answer

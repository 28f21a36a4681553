"""What an extraction asks a model: a prefix that caches know, and one message. Pure.

Rules of this file
- Given what a client sends itself (``cache``), the request begins with exactly that: its system
  text, its tools, its model and its messages, untouched. One message is added.
- Without it the prefix is memd's own: tools, a system text that depends on the directory alone, and
  the conversation, which only grows. Marks for the cache stand behind the system text, where the
  conversation ended the last time, where it ends now, and behind the task.
- What changes from run to run (the manifest, how much is new) stands behind all of that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memd.agent import tools
from memd.agent.service import Task
from memd.agent.step import Budget
from memd.core import prose
from memd.core.text import sha256
from memd.core.values import Header
from memd.extract.dialogue import Dialogue
from memd.model.port import Block
from memd.store.catalogue import manifest

KIND = "extract"
TURNS = 5  # spec 4.4
SECONDS = 180.0
ASK_SECONDS = 90.0
_REPLY_TOKENS = 8_000
_OUTPUT_TOKENS = 16_000
_TOTAL_TOKENS = 900_000
_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_FINGERPRINT = 12
_PACKAGE = "memd.extract"


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a client sent itself: its ``system``, ``tools``, ``model`` and ``messages``."""

    system: str | tuple[Block, ...]
    tools: tuple[Block, ...]
    model: str
    messages: tuple[Block, ...]


def prefix(cache: Mapping[str, Any] | None) -> Prefix | None:
    """Return a client's prefix, ``None`` where it gave none that can be used."""
    if not cache:
        return None
    system = cache.get("system") or ""
    listed = cache.get("tools") or []
    messages = cache.get("messages")
    model = cache.get("model")
    sound = (
        isinstance(model, str)
        and bool(model)
        and _blocks(listed)
        and _blocks(messages)
        and bool(messages)
        and (isinstance(system, str) or _blocks(system))
    )
    if not sound:
        return None
    kept = system if isinstance(system, str) else tuple(system)
    return Prefix(kept, tuple(listed), str(model), tuple(messages or ()))


def own(
    dialogue: Dialogue,
    *,
    directory: str,
    model: str,
    before: int,
    new: int,
    headers: Sequence[Header],
) -> Task:
    """Return the run over memd's own prefix.

    ``before`` is the number of the conversation's pieces that the last run had, ``new`` how many
    of its last pieces are to be looked at.
    """
    system = prose.fill(
        prose.template("system", _PACKAGE),
        (),
        {"directory": directory, **_guidance()},
    )
    said: list[Block] = [{"type": "text", "text": piece} for piece in dialogue.pieces]
    for place in {before - dialogue.dropped - 1, len(said) - 1}:
        if 0 <= place < len(said):
            said[place] = {**said[place], **_MARK}
    task: Block = {"type": "text", "text": _task(directory, new, headers, shared=False), **_MARK}
    return Task(
        kind=KIND,
        model=model,
        messages=({"role": "user", "content": [*said, task]},),
        tools=tools.definitions(),
        runs=tools.NAMES,
        system=({"type": "text", "text": system, **_MARK},),
        budget=_budget(),
        seconds=SECONDS,
        ask_seconds=ASK_SECONDS,
        project=directory,
    )


def shared(client: Prefix, *, directory: str, new: int, headers: Sequence[Header]) -> Task:
    """Return the run over a client's own prefix."""
    task = {"role": "user", "content": _task(directory, new, headers, shared=True)}
    return Task(
        kind=KIND,
        model=client.model,
        messages=(*client.messages, task),
        tools=client.tools,
        runs=tools.NAMES,
        system=client.system,
        budget=_budget(),
        seconds=SECONDS,
        ask_seconds=ASK_SECONDS,
        project=directory,
    )


def fingerprints(task: Task) -> dict[str, str]:
    """Return what each part of a run's prefix is known by, to see which of them changed."""
    first = task.messages[0] if task.messages else {}
    parts = {
        "model": task.model,
        "tools": list(task.tools),
        "system": task.system,
        "beginning": _beginning(first),
    }
    return {name: sha256(_plain(part).encode())[:_FINGERPRINT] for name, part in parts.items()}


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the parts of a prefix that are not what they were."""
    return tuple(name for name in now if name in before and before[name] != now[name])


def _task(directory: str, new: int, headers: Sequence[Header], *, shared: bool) -> str:
    listed = manifest(headers) or "(nothing yet)"
    values = {
        "directory": directory,
        "count": str(new),
        "manifest": listed.replace("<", "&lt;"),
        "turns": str(TURNS),
        **_guidance(),
    }
    flags = ("shared",) if shared else ()
    return prose.fill(prose.template("task", _PACKAGE), flags, values)


def _guidance() -> dict[str, str]:
    values = {"index_lines": "200"}
    return {
        "types": prose.fill(prose.template("types"), (), {}),
        "never": prose.template("never"),
        "saving": prose.fill(prose.template("saving"), ("index",), values),
    }


def _budget() -> Budget:
    return Budget(
        turns=TURNS,
        reply_tokens=_REPLY_TOKENS,
        output_tokens=_OUTPUT_TOKENS,
        total_tokens=_TOTAL_TOKENS,
        ends_after_writes=True,
    )


def _blocks(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _beginning(message: Block) -> object:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return [{**block, "cache_control": None} for block in content[:1]]


def _plain(part: object) -> str:
    return repr(part)

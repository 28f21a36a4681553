"""What an extraction asks a model: a prefix that caches know, and one message. Pure.

Rules of this file
- Given what a client sends itself (``cache``), the request begins with exactly that: its system
  text, its tools, its model and its messages, untouched. One message is added. How its model thinks
  is part of what a cache goes by, so what the client names of that goes along, and nothing else.
- Without it the prefix is memd's own: tools, a system text that depends on the directory alone, and
  the conversation, which only grows. Marks for the cache stand behind the system text, where the
  conversation ended the last time, where it ends now, and behind the task.
- What changes from run to run (the manifest, how much is new) stands behind all of that.
- Learning takes little thought: over memd's own prefix a model is asked for little.
- A prefix costs little where a cache still knows it, and much where none does. So beside the run
  over the whole conversation stands a short one, with what is new and at most 4,000 tokens of
  anything else; which of the two goes out is a matter of money (``cheaper``).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memd.agent.service import Budget, Task, single_shot, tools
from memd.core import prose
from memd.core.prices import price
from memd.core.text import decode, one_line, sha256
from memd.core.values import Header, MemoryFile
from memd.documents.index import manifest
from memd.extract.dialogue import Dialogue, day_and_time, squeezed
from memd.model.port import Block
from memd.text.words import words

KIND = "extract"
TURNS = 5
SECONDS = 180.0
ASK_SECONDS = 90.0
_REPLY_TOKENS = 8_000
_OUTPUT_TOKENS = 16_000
_THINKING_TOKENS = 64_000  # of one reply, where a client's setting asks for so many
_TOTAL_TOKENS = 900_000
_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_LITTLE: Mapping[str, Any] = {
    "thinking": {"type": "between_tools"},
    "output_config": {"effort": "low"},
}
_FINGERPRINT = 12
_NEWS = 2_000  # tokens of what is new, the person's own words aside
_BEFORE = 400  # tokens of what was said just before
_LISTED = 700  # tokens of the memories that are there
_BYTES_A_TOKEN = 4
_LITTLE_TOKENS = 4_750  # of the short run's model: what a turn without news may cost
_LAST = 4  # pieces
_WAITING = 500  # characters of a suggestion
_WHOLE = 3  # memories that a single request shows with their text
_WHOLE_BYTES = 3_500  # that these may have together
_RANKED = 2_000  # memories, the newest
_SHORT_TOOLS = frozenset({"Read", "Write", "Edit"})
_SAID = "conversation"
_PACKAGE = "memd.extract"


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a client sent itself: its ``system``, ``tools``, ``model`` and ``messages``.

    ``extra`` are the further members of its request that its prompt cache goes by.
    """

    system: str | tuple[Block, ...]
    tools: tuple[Block, ...]
    model: str
    messages: tuple[Block, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)


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
    retained = system if isinstance(system, str) else tuple(system)
    return Prefix(retained, tuple(listed), str(model), tuple(messages or ()), _options(cache))


@dataclass(frozen=True, slots=True)
class News:
    """What a run is about: the last ``count`` pieces of a conversation, and the memories there.

    ``now`` is seconds since 1970. ``waiting`` are suggestions that nobody has decided yet.
    """

    directory: str
    dialogue: Dialogue
    count: int
    headers: Sequence[Header]
    now: float = 0.0
    waiting: Sequence[str] = ()


def own(news: News, model: str, before: int) -> Task:
    """Return the run over memd's own prefix; a cache still knows ``before`` pieces of it."""
    said: list[Block] = [{"type": "text", "text": piece} for piece in news.dialogue.pieces]
    for place in {before - news.dialogue.dropped - 1, len(said) - 1}:
        if 0 <= place < len(said):
            said[place] = {**said[place], **_MARK}
    task: Block = {"type": "text", "text": _likely_task(news), **_MARK}
    system: Block = {"type": "text", "text": _system(news.directory), **_MARK}
    return _own(news, model, [*said, task], system)


def short(news: News, model: str) -> Task:
    """Return the run over what is new, with little of anything else and nothing for a cache."""
    tail = _tail(news)
    blocks = [
        {"type": "text", "text": text} for text in (*tail.dialogue.pieces, _likely_task(tail))
    ]
    system = {"type": "text", "text": _system(news.directory)}
    return _own(news, model, blocks, system, _SHORT_TOOLS)


def single(news: News, model: str, files: Sequence[MemoryFile]) -> Task:
    """Return the run with one request over what is new, for a model that calls no tools.

    ``files`` are memories that it is shown whole, as far as there is room.
    """
    shown, room = [], _WHOLE_BYTES
    for file in files:
        room -= len(file.content)
        if room >= 0:
            shown.append((file.header.path, decode(file.content)))
    tail = _tail(news)
    request = (_system(news.directory, single=True), *tail.dialogue.pieces)
    text = "\n\n".join((*request, _likely_task(tail, single=True)))
    return single_shot.task(KIND, model, text, directory=news.directory, shown=shown)


def touched(news: News) -> tuple[str, ...]:
    """Return the paths of the few memories that what is new is most likely about."""
    said = " ".join(_tail(news).dialogue.pieces[-news.count :]) if news.count else ""
    return tuple(header.path for header in _likely(news.headers, said)[:_WHOLE])


def _tail(news: News) -> News:
    """Return what is new, and what was said just before, with bounded lengths."""
    start = len(news.dialogue.pieces) - news.count
    new = squeezed(news.dialogue.pieces[start:], _NEWS * _BYTES_A_TOKEN)
    before = news.dialogue.pieces[:start][-_LAST:]
    before = squeezed(before, _BEFORE * _BYTES_A_TOKEN, strict=True)
    dialogue = replace(news.dialogue, pieces=(*before, *new))
    return replace(news, dialogue=dialogue, count=len(new))


def shared(client: Prefix, news: News) -> Task:
    """Return the run over a client's own prefix."""
    task = {"role": "user", "content": _task(news, shared=True)}
    return Task(
        kind=KIND,
        model=client.model,
        messages=(*client.messages, task),
        tools=client.tools,
        runs=tools.NAMES,
        system=client.system,
        budget=_budget(_thinking(client.extra)),
        seconds=SECONDS,
        ask_seconds=ASK_SECONDS,
        project=news.directory,
        extra=client.extra,
    )


def cheaper(long: Task, short: Task, *, before: int | None, prices: str) -> Task:
    """Return the long run where it costs little, or less than the short one; else that.

    Compared are the first requests. A cache still knows the long one up to so many pieces of the
    conversation; ``None`` stands for all of it but the task.
    """
    whole = _size(long.system, long.tools, *long.messages)
    rates, least = price(long.model, prices), price(short.model, prices)
    if before is None:
        read = _size(long.system, long.tools, *long.messages[:-1])
        money = rates.money(_tokens(whole - read), 0, _tokens(read), 0)
    else:
        said = long.messages[0]["content"][:before]
        read = _size(long.system, long.tools, *said) if before else 0
        money = rates.money(0, 0, _tokens(read), _tokens(whole - read))
    tail = _tokens(_size(short.system, short.tools, *short.messages))
    return long if money <= least.money(max(tail, _LITTLE_TOKENS), 0, 0, 0) else short


def _own(
    news: News,
    model: str,
    blocks: Sequence[Block],
    system: Block,
    names: frozenset[str] = tools.NAMES,
) -> Task:
    return Task(
        kind=KIND,
        model=model,
        messages=({"role": "user", "content": blocks},),
        tools=tuple(tool for tool in tools.definitions() if tool["name"] in names),
        runs=names,
        system=(system,),
        budget=_budget(),
        seconds=SECONDS,
        ask_seconds=ASK_SECONDS,
        project=news.directory,
        extra=_LITTLE,
    )


def _system(directory: str, *, single: bool = False) -> str:
    template = prose.template("system", _PACKAGE)
    flags = ("single",) if single else ()
    return prose.fill(template, flags, {"directory": directory, **_guidance()})


def _likely_task(news: News, *, single: bool = False) -> str:
    """Return the task with the memories that what is new is likely to be about."""
    pieces = news.dialogue.pieces
    listed = _likely(news.headers, " ".join(pieces[len(pieces) - news.count :]))
    more = len(news.headers) - len(listed)
    return _task(replace(news, headers=listed), more=more, single=single)


def _likely(headers: Sequence[Header], news: str) -> list[Header]:
    """Return the memories that share most words with what is new, as many as have room."""
    wanted = frozenset(words(news))
    newest = headers[:_RANKED]
    shared = [len(wanted.intersection(words(f"{h.name} {h.description}"))) for h in newest]
    order = sorted(range(len(newest)), key=lambda place: (-shared[place], place))
    retained: list[Header] = []
    room = _LISTED * _BYTES_A_TOKEN
    for place in order:
        room -= len(manifest([newest[place]]).encode())
        if room < 0:
            break
        retained.append(newest[place])
    return retained


def fingerprints(task: Task, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what each part of a run's prefix is known by, to see which of them changed.

    Of the conversation it is the part that the run ``before`` had as well, where one is given, else
    all of it.
    """
    said = _said(task)
    length = _length(before) if before else len(said)
    parts = {
        "model": task.model,
        "tools": list(task.tools),
        "system": _unmarked(task.system),
        "options": dict(task.extra),
        _SAID: said[:length],
    }
    known = {name: _fingerprint(part) for name, part in parts.items()}
    return known | {_SAID: f"{length} {known[_SAID]}"}


def changed(before: Mapping[str, str], task: Task) -> tuple[str, ...]:
    """Return the parts of a prefix that are not what they were at an earlier run's."""
    if not before:
        return ()
    now = fingerprints(task, before)
    return tuple(name for name in now if before.get(name) != now[name])


def _task(news: News, *, more: int = 0, shared: bool = False, single: bool = False) -> str:
    values = {
        "directory": news.directory,
        "count": str(news.count),
        "manifest": prose.inert(manifest(news.headers) or "(nothing yet)"),
        "more": str(more),
        "now": day_and_time(news.now),
        "turns": str(TURNS),
        "waiting": prose.inert("\n".join(f'- "{one_line(w, _WAITING)}"' for w in news.waiting)),
        **_guidance(),
    }
    conditions = {
        "shared": shared,
        "single": single,
        "more": more > 0,
        "waiting": bool(news.waiting),
    }
    flags = [name for name, on in conditions.items() if on]
    return prose.fill(prose.template("task", _PACKAGE), flags, values)


def _guidance() -> dict[str, str]:
    values = {"index_lines": "200"}
    return {
        "types": prose.fill(prose.template("types"), ("brief",), {}),
        "never": prose.template("never"),
        "saving": prose.fill(prose.template("saving"), ("index",), values),
    }


def _budget(thinking: int = 0) -> Budget:
    """Return a run's bounds; a client's model may think for so many tokens in each reply."""
    return Budget(
        turns=TURNS,
        reply_tokens=_REPLY_TOKENS + thinking,
        output_tokens=_OUTPUT_TOKENS + 2 * thinking,
        total_tokens=_TOTAL_TOKENS,
        ends_after_writes=True,
    )


def _size(*parts: object) -> int:
    return len(json.dumps(parts, ensure_ascii=False, default=dict).encode("utf-8", "replace"))


def _tokens(size: int) -> int:
    return size // _BYTES_A_TOKEN


def _blocks(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _options(cache: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members beside the prefix that a cache goes by, as far as a run can keep them.

    A run cannot be told which tool to call, nor to answer in a form.
    """
    retained = {name: cache[name] for name in ("thinking", "cache_control") if cache.get(name)}
    selection, output = cache.get("tool_choice"), cache.get("output_config")
    if isinstance(selection, Mapping) and selection.get("type") == "auto":
        retained["tool_choice"] = selection
    if isinstance(output, Mapping) and output and "format" not in output:
        retained["output_config"] = output
    return {name: value for name, value in retained.items() if isinstance(value, Mapping)}


def _thinking(extra: Mapping[str, Any]) -> int:
    """Return how many tokens of a reply a client's setting leaves to thinking."""
    tokens = extra.get("thinking", {}).get("budget_tokens")
    return min(max(tokens, 0), _THINKING_TOKENS) if type(tokens) is int else 0


def _said(task: Task) -> list[object]:
    """Return the blocks of a run's conversation without the marks and the task.

    A plain text is the same to a cache as one block with that text.
    """
    blocks: list[object] = []
    for message in task.messages:
        content = message.get("content", "")
        plain = isinstance(content, str)
        listed = [{"type": "text", "text": content}] if plain else _unmarked(content)
        blocks += [(message.get("role"), block) for block in listed]
    return blocks[:-1]


def _unmarked(value: Any) -> Any:
    """Return blocks without their marks, which move and are no part of what is cached."""
    if isinstance(value, list | tuple):
        return [_unmarked(item) for item in value]
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if key != "cache_control"}
    return value


def _length(before: Mapping[str, str]) -> int:
    return int(before[_SAID].partition(" ")[0])


def _fingerprint(part: object) -> str:
    return sha256(repr(part).encode("utf-8", "replace"))[:_FINGERPRINT]

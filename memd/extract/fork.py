"""What an extraction asks a model: a prefix that caches know, and one message. Pure.

Rules of this file
- Given what a client sends itself (``cache``), the request begins with exactly that: its system
  text, its tools, its model and its messages, untouched. One message is added.
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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from memd.agent.service import LITTLE_THOUGHT, Budget, Task, prefixed, single_shot, tools
from memd.conversation.dialogue import Dialogue, day_and_time, rendered, squeezed
from memd.core import prose
from memd.core.covered import CoveredText
from memd.core.prices import price
from memd.core.text import decode, one_line, sha256
from memd.core.values import Header, MemoryFile
from memd.documents.index import manifest
from memd.model.port import Block
from memd.text.words import words

KIND = "extract"
TURNS = 5
_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_FINGERPRINT = 12  # characters
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
_PACKAGE = "memd.extract"

_RUN = Task(
    kind=KIND,
    model="",
    messages=(),
    tools=(),
    runs=tools.NAMES,
    budget=Budget(
        turns=TURNS,
        reply_tokens=8_000,
        output_tokens=16_000,
        total_tokens=900_000,
        ends_after_writes=True,
    ),
    seconds=180.0,
    ask_seconds=90.0,
)


def prefix(cache: Mapping[str, Any] | None) -> Task | None:
    """Return a run over a client's prefix without the task, ``None`` where that is of no use."""
    return prefixed(_RUN, cache)


@dataclass(frozen=True, slots=True)
class News:
    """What a run is about: the last ``count`` pieces of a conversation, and the memories there.

    ``now`` is seconds since 1970. ``waiting`` are suggestions that nobody has decided yet. With
    ``team`` some of what is learnt may be shared. ``said`` is what of the new pieces the project's
    instruction files say already.
    """

    directory: str
    dialogue: Dialogue
    count: int
    headers: Sequence[Header]
    now: float = 0.0
    waiting: Sequence[str] = ()
    team: bool = False
    said: Sequence[CoveredText] = ()

    @property
    def start(self) -> int:
        """Where in the conversation the new pieces begin."""
        return len(self.dialogue.pieces) - self.count


def own(news: News, model: str, before: int) -> Task:
    """Return the run over memd's own prefix; a cache still knows ``before`` pieces of it."""
    last = len(news.dialogue.pieces)
    return _own(news, model, tools.NAMES, {before - news.dialogue.dropped - 1, last - 1, last})


def short(news: News, model: str) -> Task:
    """Return the run over what is new, with little of anything else and nothing for a cache."""
    return _own(_tail(news), model, _SHORT_TOOLS)


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
    said = map(rendered, tail.dialogue.pieces)
    system = _filled("system", ("single",), news)
    request = "\n\n".join((system, *said, _task(tail, "single")))
    return single_shot.task(KIND, model, request, directory=news.directory, shown=shown)


def touched(news: News) -> tuple[str, ...]:
    """Return the paths of the few memories that what is new is most likely about."""
    return tuple(header.path for header in _likely(_tail(news))[:_WHOLE])


def _tail(news: News) -> News:
    """Return what is new, and what was said just before, with bounded lengths."""
    new = squeezed(news.dialogue.pieces[news.start :], _NEWS * _BYTES_A_TOKEN)
    before = news.dialogue.pieces[: news.start][-_LAST:]
    before = squeezed(before, _BEFORE * _BYTES_A_TOKEN, strict=True)
    dialogue = replace(news.dialogue, pieces=(*before, *new))
    return replace(news, dialogue=dialogue, count=len(new))


def shared(client: Task, news: News) -> Task:
    """Return the run over a client's own prefix."""
    task = {"role": "user", "content": _task(news, "shared")}
    return replace(client, messages=(*client.messages, task), project=news.directory)


def cheaper(
    news: News, model: str, client: Task | None, before: int, prices: str
) -> tuple[Task, bool]:
    """Return the run that costs less, and whether that goes over the whole conversation.

    Compared are the first requests of the short run and of the long one, which it is where that
    costs little. A cache still knows all of a ``client``'s prefix, or ``before`` pieces of memd's.
    """
    little = short(news, model)
    if client is not None:
        long, known = shared(client, news), client.messages
    else:
        long = own(news, model, before)
        known = long.messages[0]["content"][: max(before - news.dialogue.dropped, 0)]
    read = _tokens(long.system, long.tools, *known) if known else 0
    rest = _tokens(long.system, long.tools, *long.messages) - read
    plain, cached = (0, rest) if client is None else (rest, 0)
    money = price(long.model, prices).money(plain, 0, read, cached)
    least = max(_tokens(little.system, little.tools, *little.messages), _LITTLE_TOKENS)
    whole = money <= price(model, prices).money(least, 0, 0, 0)
    return long if whole else little, whole


def _own(news: News, model: str, names: frozenset[str], marked: Collection[int] = ()) -> Task:
    """Return a run with some tools; a cache may begin behind the pieces at the ``marked`` places.

    Its task stands at the place behind the last piece.
    """
    system = _filled("system", (), news)
    texts = (*map(rendered, news.dialogue.pieces), _task(news))
    blocks = [_block(text, marked=place in marked) for place, text in enumerate(texts)]
    return replace(
        _RUN,
        model=model,
        messages=({"role": "user", "content": blocks},),
        tools=tuple(tool for tool in tools.definitions() if tool["name"] in names),
        runs=names,
        system=(_block(system, marked=bool(marked)),),
        project=news.directory,
        extra=LITTLE_THOUGHT,
    )


def _block(text: str, *, marked: bool) -> Block:
    return {"type": "text", "text": text, **(_MARK if marked else {})}


def _likely(news: News) -> list[Header]:
    """Return the memories that share most words with what is new, as many as have room."""
    wanted = frozenset(words(" ".join(map(rendered, news.dialogue.pieces[news.start :]))))

    def shared(header: Header) -> int:
        return len(wanted.intersection(words(f"{header.name} {header.description}")))

    retained: list[Header] = []
    room = _LISTED * _BYTES_A_TOKEN
    for header in sorted(news.headers[:_RANKED], key=shared, reverse=True):
        room -= len(manifest([header]).encode())
        if room < 0:
            break
        retained.append(header)
    return retained


def fingerprints(task: Task) -> dict[str, str]:
    """Return what each part of a run's prefix is known by, to see which of them changed.

    What a conversation is known by grows as it does, at the end.
    """
    said: list[Any] = []
    for message in task.messages:
        content = message.get("content", "")
        # A plain text is the same to a cache as one block with that text.
        blocks = [_block(content, marked=False)] if isinstance(content, str) else content
        said += [(message.get("role"), block) for block in blocks]
    parts: dict[str, list[Any]] = {
        "model": [task.model],
        "tools": [task.tools],
        "system": [task.system],
        "options": [tuple(task.extra.items())],
        "conversation": said[:-1],  # without the task
    }
    return {name: "".join(map(_fingerprint, part)) for name, part in parts.items()}


def _fingerprint(part: object) -> str:
    return sha256(repr(_unmarked(part)).encode("utf-8", "replace"))[:_FINGERPRINT]


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the parts of a prefix that are not what they were at an earlier run's."""
    return tuple(name for name, known in before.items() if not now[name].startswith(known))


def _task(news: News, form: str = "") -> str:
    """Return what is to be done; only a client's own prefix (``shared``) gets the whole list."""
    listed = news.headers if form == "shared" else _likely(news)
    more = len(news.headers) - len(listed)
    values = {
        "count": str(news.count),
        "manifest": prose.inert(manifest(listed) or "(nothing yet)"),
        "more": str(more),
        "now": day_and_time(news.now),
        "said": prose.inert("\n".join(f'- "{each.text}" ({each.file})' for each in news.said)),
        "turns": str(TURNS),
        "waiting": prose.inert("\n".join(f'- "{one_line(w, _WAITING)}"' for w in news.waiting)),
    }
    flags = (form, "more" * bool(more), "waiting" * bool(news.waiting), "said" * bool(news.said))
    return _filled("task", flags, news, values)


def _filled(
    name: str, flags: Collection[str], news: News, values: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return a template with its values, and with what every prompt says of memories."""
    where, team = {"directory": news.directory}, ("team",) * news.team
    types = [prose.fill(prose.template("types"), ("brief", *team), {})]
    types += [prose.fill(prose.template(each, _PACKAGE), (), where) for each in team]
    guidance = {
        "types": "\n\n".join(types),
        "never": prose.template("never"),
        "saving": prose.fill(prose.template("saving"), ("index", *team), {"index_lines": "200"}),
    }
    return prose.fill(prose.template(name, _PACKAGE), flags, {**where, **guidance, **values})


def _tokens(*parts: object) -> int:
    text = json.dumps(parts, ensure_ascii=False, default=dict)
    return len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN


def _unmarked(value: Any) -> Any:
    """Return blocks without their marks, which move and are no part of what is cached."""
    if isinstance(value, list | tuple):
        return [_unmarked(item) for item in value]
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if key != "cache_control"}
    return value

"""Write the request of an extraction to a model: a prefix that is cached, and the task. Pure.

The prefix is the part of a request that is the same as in the last one, so that the server's cache
has it.

Rules of this file
- With a client's own request (``cache``) the request begins with exactly that: system text, tools,
  model and messages. One message is added.
- Without it the prefix is memd's own: tools, a system text that depends only on the directory, and
  the conversation, which only grows. Cache marks stand behind the system text, at the last and the
  present end of the conversation, and behind the task.
- What changes from run to run (the manifest, how much is new) comes after the prefix.
- Over memd's own prefix the model is asked for little thinking.
- A long prefix is cheap only while a cache has it. So there is also a short request with the new
  messages and at most 4,000 tokens of anything else; the cheaper one is sent (``cheaper``).
"""

import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

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
_NEWS = 2_000  # tokens of the new pieces, without the person's own words
_BEFORE = 400  # tokens of the pieces just before
_LISTED = 700  # tokens of the list of existing memories
_BYTES_A_TOKEN = 4
_LITTLE_TOKENS = 4_750  # a whole run that costs no more than so many is always allowed
_LAST = 4  # pieces before the new ones
_WAITING = 500  # characters of a suggestion
_WHOLE = 3  # memories whose text a single request shows
_WHOLE_BYTES = 3_500  # of these together
_RANKED = 2_000  # newest memories that are ranked by words
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
    """Return a run over a client's own request, without the task; ``None`` if it is unusable."""
    return prefixed(_RUN, cache)


class News(Struct, frozen=True):
    """What a run is about: the last ``count`` pieces of a conversation, and existing memories.

    ``now`` is in seconds since 1970. ``waiting`` are suggestions that nobody has decided yet. With
    ``team`` memories may be shared with a team. ``said`` are sentences of the new pieces that the
    project's instruction files say already.
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
        """The index of the first new piece in the dialogue."""
        return len(self.dialogue.pieces) - self.count


def own(news: News, model: str, before: int) -> Task:
    """Return the run over memd's own prefix, of which ``before`` pieces may be cached."""
    last = len(news.dialogue.pieces)
    return _build_run(
        news, model, tools.NAMES, {before - news.dialogue.dropped - 1, last - 1, last}
    )


def short(news: News, model: str) -> Task:
    """Return the short run: the new pieces, little else, and no cache marks."""
    return _build_run(_shortened(news), model, _SHORT_TOOLS)


def single(news: News, model: str, files: Sequence[MemoryFile]) -> Task:
    """Return the run with one request about the new pieces, for a model that calls no tools.

    ``files`` are memories whose text it is shown, up to 3,500 bytes.
    """
    shown, bytes_left = [], _WHOLE_BYTES
    for file in files:
        bytes_left -= len(file.content)
        if bytes_left >= 0:
            shown.append((file.header.path, decode(file.content)))
    tail = _shortened(news)
    pieces = map(rendered, tail.dialogue.pieces)
    system = _fill("system", ("single",), news)
    request = "\n\n".join((system, *pieces, _task_text(tail, "single")))
    return single_shot.task(KIND, model, request, directory=news.directory, shown=shown)


def touched(news: News) -> tuple[str, ...]:
    """Return the paths of the three memories that share most words with the new pieces."""
    return tuple(header.path for header in _related_memories(_shortened(news))[:_WHOLE])


def _shortened(news: News) -> News:
    """Return the news with only the new pieces and the last four before, cut to a size."""
    new = squeezed(news.dialogue.pieces[news.start :], _NEWS * _BYTES_A_TOKEN)
    before = news.dialogue.pieces[: news.start][-_LAST:]
    before = squeezed(before, _BEFORE * _BYTES_A_TOKEN, strict=True)
    dialogue = replace(news.dialogue, pieces=(*before, *new))
    return replace(news, dialogue=dialogue, count=len(new))


def shared(client: Task, news: News) -> Task:
    """Return the run over a client's own request, with the task added."""
    task = {"role": "user", "content": _task_text(news, "shared")}
    return replace(client, messages=(*client.messages, task), project=news.directory)


def cheaper(
    news: News, model: str, client: Task | None, before: int, prices: str
) -> tuple[Task, bool]:
    """Return the cheaper one of the short and the long run, and whether that is the long one.

    The cost of their first requests is compared; the long run is also chosen if it costs no more
    than 4,750 tokens. All of a ``client``'s request is taken to be cached, or ``before`` pieces of
    memd's own prefix.
    """
    short_run = short(news, model)
    if client is not None:
        long, cached_parts = shared(client, news), client.messages
    else:
        long = own(news, model, before)
        cached_parts = long.messages[0]["content"][: max(before - news.dialogue.dropped, 0)]
    cached_tokens = _count_tokens(long.system, long.tools, *cached_parts) if cached_parts else 0
    new_tokens = _count_tokens(long.system, long.tools, *long.messages) - cached_tokens
    uncached, cached = (0, new_tokens) if client is None else (new_tokens, 0)
    long_cost = price(long.model, prices).money(uncached, 0, cached_tokens, cached)
    short_tokens = max(
        _count_tokens(short_run.system, short_run.tools, *short_run.messages), _LITTLE_TOKENS
    )
    long_is_cheaper = long_cost <= price(model, prices).money(short_tokens, 0, 0, 0)
    return long if long_is_cheaper else short_run, long_is_cheaper


def _build_run(news: News, model: str, names: frozenset[str], marked: Collection[int] = ()) -> Task:
    """Return a run with the tools ``names`` and cache marks behind the ``marked`` pieces.

    The task has the index behind the last piece.
    """
    system = _fill("system", (), news)
    texts = (*map(rendered, news.dialogue.pieces), _task_text(news))
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


def _related_memories(news: News) -> list[Header]:
    """Return the memories that share most words with the new pieces, up to 700 tokens."""
    wanted = frozenset(words(" ".join(map(rendered, news.dialogue.pieces[news.start :]))))

    def shared(header: Header) -> int:
        return len(wanted.intersection(words(f"{header.name} {header.description}")))

    listed: list[Header] = []
    bytes_left = _LISTED * _BYTES_A_TOKEN
    for header in sorted(news.headers[:_RANKED], key=shared, reverse=True):
        bytes_left -= len(manifest([header]).encode())
        if bytes_left < 0:
            break
        listed.append(header)
    return listed


def fingerprints(task: Task) -> dict[str, str]:
    """Return a fingerprint of each part of a run's prefix, to see which of them changed.

    The fingerprint of a longer conversation begins with that of the shorter one.
    """
    blocks_by_role: list[Any] = []
    for message in task.messages:
        content = message.get("content", "")
        # For a cache a plain text equals one block with that text.
        blocks = [_block(content, marked=False)] if isinstance(content, str) else content
        blocks_by_role += [(message.get("role"), block) for block in blocks]
    parts: dict[str, list[Any]] = {
        "model": [task.model],
        "tools": [task.tools],
        "system": [task.system],
        "options": [tuple(task.extra.items())],
        "conversation": blocks_by_role[:-1],  # without the task
    }
    return {name: "".join(map(_fingerprint, part)) for name, part in parts.items()}


def _fingerprint(part: object) -> str:
    """Return a short hash of a part of a request, without cache marks."""
    return sha256(repr(_unmarked(part)).encode("utf-8", "replace"))[:_FINGERPRINT]


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the parts whose fingerprint no longer begins with the earlier one."""
    return tuple(name for name, known in before.items() if not now[name].startswith(known))


def _task_text(news: News, form: str = "") -> str:
    """Return the text of the task; ``form`` is "", ``single`` or ``shared``.

    Only with ``shared``, a client's own request, all memories are listed.
    """
    listed = news.headers if form == "shared" else _related_memories(news)
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
    parts = {"more": more, "waiting": news.waiting, "said": news.said}
    flags = (form, *(name for name, content in parts.items() if content))
    return _fill("task", flags, news, values)


def _fill(
    name: str, flags: Collection[str], news: News, values: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the template ``name`` with values and the guidance that every prompt has."""
    where, team = {"directory": news.directory}, ("team",) * news.team
    types = [prose.fill(prose.template("types"), ("brief", *team), {})]
    types += [prose.fill(prose.template(each, _PACKAGE), (), where) for each in team]
    guidance = {
        "types": "\n\n".join(types),
        "never": prose.template("never"),
        "saving": prose.fill(prose.template("saving"), ("index", *team), {"index_lines": "200"}),
    }
    return prose.fill(prose.template(name, _PACKAGE), flags, {**where, **guidance, **values})


def _count_tokens(*parts: object) -> int:
    """Return the estimated tokens of parts of a request."""
    text = json.dumps(parts, ensure_ascii=False, default=dict)
    return len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN


def _unmarked(value: Any) -> Any:
    """Return blocks without cache marks, which move and do not affect what is cached."""
    if isinstance(value, list | tuple):
        return [_unmarked(item) for item in value]
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if key != "cache_control"}
    return value

"""Write the request of an extraction to a model. Pure.

Rules of this file
- With a client's own request (``cache``) the request begins with exactly that: system text, tools,
  model and messages. One message is added.
- Without it the request is short: the new pieces, and at most 4,000 tokens of anything else. Tools
  and system text depend only on the directory, so a mark for the prompt cache stands behind them.
- A client's long request is cheap only while a cache has it, so the cheaper one of the two is sent.
- A model that calls no tools gets one request without any.
- In a short request the model is asked for little thinking.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.agent.service import LITTLE_THOUGHT, Budget, Task, prefixed, single_shot, tools
from memd.base import prose
from memd.base.prices import price
from memd.base.text import decode, one_line, sha256
from memd.base.values import Header, MemoryFile, Message
from memd.conversation.dialogue import day_and_time, rendered, squeezed
from memd.store.index import manifest
from memd.text.words import words

KIND = "extract"
TURNS = 5  # requests of a run at most
_CACHE_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_FINGERPRINT_CHARACTERS = 12
_NEW_TOKENS = 2_000  # of the new pieces in a short run, without the person's own words
_BEFORE_TOKENS = 400  # of the pieces just before, in a short run
_PIECES_BEFORE = 4  # in a short run
_LIST_TOKENS = 700  # of the list of existing memories
_BYTES_A_TOKEN = 4
_LITTLE_TOKENS = 4_750  # a whole run that costs no more than so many is always allowed
_SUGGESTION_CHARACTERS = 500
_SHOWN_MEMORIES = 3  # whose text a single request shows
_SHOWN_BYTES = 3_500  # of these together
_RANKED = 2_000  # newest memories that are ranked by words
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
    """What a run is about: the new pieces of a conversation, those before, and the memories."""

    directory: str
    before: Sequence[Message]
    pieces: Sequence[Message]
    headers: Sequence[Header]
    now: float = 0.0  # seconds since 1970
    waiting: Sequence[str] = ()  # suggestions that nobody has decided yet
    team: bool = False  # whether memories may be shared with a team


def short(news: News, model: str) -> Task:
    """Return the run with the new pieces and little else."""
    news = _shortened(news)
    system = {**_block(_fill("system", (), news)), **_CACHE_MARK}
    texts = (*map(rendered, (*news.before, *news.pieces)), _task_text(news))
    return replace(
        _RUN,
        model=model,
        messages=({"role": "user", "content": [_block(text) for text in texts]},),
        tools=tuple(tools.definitions()),
        system=(system,),
        project=news.directory,
        extra=LITTLE_THOUGHT,
    )


def single(news: News, model: str, files: Sequence[MemoryFile]) -> Task:
    """Return the run with one request about the new pieces, for a model that calls no tools.

    ``files`` are memories whose text it is shown, up to 3,500 bytes.
    """
    shown, bytes_left = [], _SHOWN_BYTES
    for file in files:
        bytes_left -= len(file.content)
        if bytes_left >= 0:
            shown.append((file.header.path, decode(file.content)))
    short_news = _shortened(news)
    pieces = map(rendered, (*short_news.before, *short_news.pieces))
    system = _fill("system", ("single",), news)
    request = "\n\n".join((system, *pieces, _task_text(short_news, "single")))
    return single_shot.task(KIND, model, request, directory=news.directory, shown=shown)


def touched(news: News) -> tuple[str, ...]:
    """Return the paths of the three memories that share most words with the new pieces."""
    headers = _related_memories(_shortened(news))
    return tuple(header.path for header in headers[:_SHOWN_MEMORIES])


def _shortened(news: News) -> News:
    """Return the news with only the new pieces and the last four before, cut to a size."""
    new = squeezed(news.pieces, _NEW_TOKENS * _BYTES_A_TOKEN)
    before = news.before[-_PIECES_BEFORE:]
    before = squeezed(before, _BEFORE_TOKENS * _BYTES_A_TOKEN, strict=True)
    return replace(news, before=before, pieces=new)


def shared(client: Task, news: News) -> Task:
    """Return the run over a client's own request, with the task added."""
    task = {"role": "user", "content": _task_text(news, "shared")}
    return replace(client, messages=(*client.messages, task), project=news.directory)


def cheaper(news: News, model: str, client: Task | None, prices: str) -> tuple[Task, bool]:
    """Return the cheaper run, and whether that is the one over the ``client``'s own request.

    The cost of their first requests is compared, all of the client's request taken to be cached;
    its run is also chosen if it costs no more than 4,750 tokens.
    """
    short_run = short(news, model)
    if client is None:
        return short_run, False
    long = shared(client, news)
    cached_tokens = _count_tokens(client.system, client.tools, *client.messages)
    new_tokens = _count_tokens(long.messages[-1])
    long_cost = price(long.model, prices).money(new_tokens, 0, cached_tokens, 0)
    short_tokens = _count_tokens(short_run.system, short_run.tools, *short_run.messages)
    short_cost = price(model, prices).money(max(short_tokens, _LITTLE_TOKENS), 0, 0, 0)
    return (long, True) if long_cost <= short_cost else (short_run, False)


def _block(text: str) -> dict[str, Any]:
    """Return a block of text for a request."""
    return {"type": "text", "text": text}


def _related_memories(news: News) -> list[Header]:
    """Return the memories that share most words with the new pieces, up to 700 tokens."""
    new_text = " ".join(map(rendered, news.pieces))
    new_words = frozenset(words(new_text))

    def count_shared(header: Header) -> int:
        return len(new_words.intersection(words(f"{header.name} {header.description}")))

    listed: list[Header] = []
    bytes_left = _LIST_TOKENS * _BYTES_A_TOKEN
    for header in sorted(news.headers[:_RANKED], key=count_shared, reverse=True):
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
        blocks = [_block(content)] if isinstance(content, str) else content
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
    return sha256(repr(_unmarked(part)).encode("utf-8", "replace"))[:_FINGERPRINT_CHARACTERS]


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the parts whose fingerprint no longer begins with the earlier one."""
    return tuple(name for name, known in before.items() if not now[name].startswith(known))


def _task_text(news: News, form: str = "") -> str:
    """Return the text of the task; ``form`` is "", ``single`` or ``shared``.

    Only with ``shared``, a client's own request, all memories are listed.
    """
    listed = news.headers if form == "shared" else _related_memories(news)
    unlisted_count = len(news.headers) - len(listed)
    suggestions = (one_line(text, _SUGGESTION_CHARACTERS) for text in news.waiting)
    values = {
        "count": str(len(news.pieces)),
        "manifest": prose.inert(manifest(listed) or "(nothing yet)"),
        "more": str(unlisted_count),
        "now": day_and_time(news.now),
        "turns": str(TURNS),
        "waiting": prose.inert("\n".join(f'- "{text}"' for text in suggestions)),
    }
    parts = {"more": unlisted_count, "waiting": news.waiting}
    flags = (form, *(name for name, content in parts.items() if content))
    return _fill("task", flags, news, values)


def _fill(
    name: str, flags: Collection[str], news: News, values: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the template ``name`` with values and the guidance that every prompt has."""
    directory = {"directory": news.directory}
    team_flag = ("team",) if news.team else ()
    types = prose.fill(prose.template("types"), ("brief", *team_flag), {})
    if news.team:
        types += "\n\n" + prose.fill(prose.template("team", _PACKAGE), (), directory)
    saving_flags = ("index", *team_flag)
    guidance = {
        "types": types,
        "never": prose.template("never"),
        "saving": prose.fill(prose.template("saving"), saving_flags, {"index_lines": "200"}),
    }
    return prose.fill(prose.template(name, _PACKAGE), flags, {**directory, **guidance, **values})


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

"""A conversation as a list of messages of the Messages API: its size, its units, its end. Pure.

Rules of this file
- What belongs together is in the end of a conversation whole or not at all: the records of one
  reply (they share its id), a call and its result, a system message and what it follows.
- What stands before the last boundary was compacted already and is not counted among the messages.
- Thinking is bound to everything before it, so none of it outlives a cut.
- In doubt nothing is cut: messages that the API would refuse afterwards have no end that stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from memd.conversation.counting import (
    ContextMeter,
    Thresholds,
    TokenCount,
    count,
    counted,
    estimate,
    estimate_text,
    thresholds,
)
from memd.text import tags

__all__ = [
    "ContextMeter",
    "Tail",
    "Thresholds",
    "TokenCount",
    "count",
    "counted",
    "estimate",
    "estimate_text",
    "floor",
    "rounds",
    "tail",
    "thresholds",
]

SUMMARY = f"<{tags.MEMD_TAG} covers="  # how a message begins that memd puts in place of others
LEAST_TOKENS, LEAST_TEXTS, MOST_TOKENS = 10_000, 5, 40_000
_ROLES = ("user", "assistant", "system")
_THINKING = ("thinking", "redacted_thinking")
_CALL, _RESULT = "tool_use", "tool_result"  # how the types of blocks end, a server's tools' too
_CLIENTS_BOUNDARIES = (("isCompactSummary", True), ("subtype", "compact_boundary"))


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a conversation that stays: ``messages[first:]``, as the API takes it."""

    messages: tuple[dict[str, Any], ...]
    first: int


@dataclass(slots=True)
class _Turn:
    """One message as the API sees it, of one record or several.

    ``last`` is the place of its last record, ``needs`` the earliest turn that it cannot be without.
    """

    message: Mapping[str, Any]
    blocks: list[Mapping[str, Any]]
    last: int
    needs: int = 0
    replies: set[str] = field(default_factory=set)

    @property
    def role(self) -> str:
        """Who speaks."""
        return str(self.message["role"])

    @property
    def speaks(self) -> bool:
        """Whether it has text of the user's or the assistant's."""
        return self.role != "system" and any(block["type"] == "text" for block in self.blocks)

    def join(self, record: "_Turn") -> None:
        """Take in another record."""
        self.blocks = [*self.blocks, *record.blocks]
        if self.role == "user":
            self.blocks.sort(key=lambda block: block["type"] != _RESULT)  # as the API wants them
        self.message, self.last = record.message, record.last
        self.replies |= record.replies

    def rendered(self) -> dict[str, Any]:
        """Return the message, without the count of a context that is no longer."""
        content = self.message.get("content")
        same = isinstance(content, str) and self.blocks == _blocks(content)
        members = {name: value for name, value in self.message.items() if name != "usage"}
        return {**members, "content": content if same else self.blocks}


def floor(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the place behind the last boundary, 0 where nothing was compacted."""
    places = (place for place, message in enumerate(messages) if _bounds(message))
    return max(places, default=-1) + 1


def rounds(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the places behind the last boundary at which a list may be cut before a new reply."""
    turns = _turns(messages, floor(messages)) or []
    lowest = _lowest(turns)
    edges = (n for n, turn in enumerate(turns) if turn.role == "assistant" and lowest[n] == n)
    return tuple(_first(turns, n, floor(messages)) for n in edges)


def tail(messages: Sequence[Mapping[str, Any]], start: int | None = None) -> Tail | None:
    """Return the end of a conversation that stays when what is before it is summarised.

    It holds all from ``start`` on (by default nothing needs to stay), and as much before as makes
    10,000 tokens and 5 messages with text, but stops before 40,000 tokens; what is begun is made
    whole even past these. ``None`` where a call is open, where messages are misshapen, or where
    more has to stay than may.
    """
    bottom = floor(messages)
    turns = _turns(messages, bottom)
    if not turns:
        return None
    sizes = [estimate(turn.blocks) for turn in turns]
    begin = len(messages) if start is None else start
    at = next((n for n, turn in enumerate(turns) if turn.last >= begin), len(turns))
    tokens, texts = sum(sizes[at:]), sum(turn.speaks for turn in turns[at:])
    while at and (tokens < LEAST_TOKENS or texts < LEAST_TEXTS):
        if at < len(turns) and tokens + sizes[at - 1] > MOST_TOKENS:
            break
        at -= 1
        tokens, texts = tokens + sizes[at], texts + turns[at].speaks
    lowest = _lowest(turns)
    while lowest[at] < at:
        at -= 1
    second = next((n for n in range(at + 1, len(turns)) if lowest[n] == n), len(turns))
    if sum(sizes[second:]) > MOST_TOKENS or not _is_whole(turns[at:]):
        return None
    return Tail(tuple(turn.rendered() for turn in turns[at:]), _first(turns, at, bottom))


def _bounds(message: Any) -> bool:
    """Tell whether a message stands for all that was before it."""
    if not isinstance(message, Mapping):
        return False
    if any(message.get(name) == value for name, value in _CLIENTS_BOUNDARIES):
        return True
    blocks = _blocks(message.get("content")) or []
    # A compaction without content is one that failed, and the server ignores it.
    if any(b["type"] == "compaction" and b.get("content") is not None for b in blocks):
        return True
    opening = next((str(b["text"]) for b in blocks if b["type"] == "text"), "")
    return message.get("role") == "user" and opening.startswith(SUMMARY)


def _blocks(content: Any) -> list[Mapping[str, Any]] | None:
    """Return the blocks of a content without thinking and empty texts, ``None`` if misshapen."""
    given = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    if not isinstance(given, list | tuple):
        return None
    result: list[Mapping[str, Any]] = []
    for block in given:
        if not isinstance(block, Mapping) or not isinstance(kind := block.get("type"), str):
            return None
        if kind == "text" and not isinstance(block.get("text"), str):
            return None
        if kind not in _THINKING and (kind != "text" or block["text"].strip()):
            result.append(block)
    return result


def _turns(messages: Sequence[Any], bottom: int) -> list[_Turn] | None:
    """Return the messages from a place on as the API sees them, ``None`` if one is misshapen.

    Records of one reply are one turn, and so are neighbours of one role; a record that holds
    nothing but thinking is none.
    """
    turns: list[_Turn] = []
    spoken: list[int] = []
    homes: dict[tuple[str, str], int] = {}
    for place, message in enumerate(messages[bottom:], bottom):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            return None
        blocks = _blocks(message.get("content"))
        if blocks is None:
            return None
        record = _Turn(message, blocks, place, replies=_reply(message))
        sets = record.role == "system" and "output_config" in message  # the effort of what follows
        if not (blocks or sets):
            continue
        at = _home(turns, spoken, record)
        if at < len(turns):
            turns[at].join(record)
        else:
            turns.append(record)
            record.needs = max(at - 1, 0) if record.role == "system" else at
            spoken += [at] * (record.role != "system")
        _bind(turns[at], record, at, homes)
    return turns


def _home(turns: Sequence[_Turn], spoken: Sequence[int], record: _Turn) -> int:
    """Return the place of the turn that a record belongs to, or of the next one."""
    if record.role == "system" or not spoken:
        return len(turns)
    last = turns[spoken[-1]]
    same = spoken[-1] == len(turns) - 1 or bool(record.replies & last.replies)
    if last.role == record.role and (same or any(b["type"] == _RESULT for b in record.blocks)):
        return spoken[-1]
    # Results may come between the parallel calls of a reply that is still being received.
    before = spoken[-2] if len(spoken) > 1 else spoken[-1]
    if record.replies & turns[before].replies and all(b["type"] == _RESULT for b in last.blocks):
        return before
    return len(turns)


def _reply(message: Mapping[str, Any]) -> set[str]:
    """Return the id of the reply that a record is of, if it has one."""
    name = message.get("id") if message["role"] == "assistant" else None
    return {name} if name and isinstance(name, str) else set()


def _bind(turn: _Turn, record: _Turn, at: int, homes: dict[tuple[str, str], int]) -> None:
    """Note what a turn cannot be without: the newest calls and replies of the ids it has."""
    homes |= {("call", name): at for name in _ids(record.blocks, _CALL)}
    wanted = [("call", name) for name in _ids(record.blocks, _RESULT)]
    wanted += [("reply", name) for name in record.replies]
    turn.needs = min([turn.needs, *(homes.get(key, at) for key in wanted)])
    homes |= {("reply", name): at for name in record.replies}


def _ids(blocks: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """Return the ids of the calls or results among blocks, "" for one that has none."""
    member = "id" if kind == _CALL else "tool_use_id"
    return [str(block.get(member) or "") for block in blocks if block["type"].endswith(kind)]


def _lowest(turns: Sequence[_Turn]) -> list[int]:
    """Return for each turn the earliest one that it or a later one cannot be without."""
    return list(accumulate((turn.needs for turn in reversed(turns)), min))[::-1]


def _first(turns: Sequence[_Turn], at: int, bottom: int) -> int:
    """Return the place in the list of messages at which a turn begins."""
    return max((turn.last + 1 for turn in turns[:at]), default=bottom)


def _is_whole(turns: Sequence[_Turn]) -> bool:
    """Tell whether each call has its result, a client's one in the next message, and no other."""
    waiting: list[str] = []
    running: set[str] = set()
    for turn in (*(turn for turn in turns if turn.role != "system"), _Turn({}, [], 0)):
        clients = [block for block in turn.blocks if block["type"] in (_CALL, _RESULT)]
        if sorted(_ids(clients, _RESULT)) != sorted(waiting):
            return False
        waiting = _ids(clients, _CALL)
        if "" in waiting or len(set(waiting)) < len(waiting):
            return False
        for block in turn.blocks:
            if block["type"].endswith(f"_{_CALL}"):
                running.update(_ids([block], _CALL))
            elif block["type"].endswith(f"_{_RESULT}"):
                (name,) = _ids([block], _RESULT)
                if name not in running:
                    return False
                running.remove(name)
    return not running

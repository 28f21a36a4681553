"""Messages as the API sees them, however a client recorded them. Pure.

Rules of this file
- The records of one reply share its id and are one turn, with the results between its calls behind
  it; so are neighbours of one role, and results that belong to the same calls.
- Thinking and empty texts are in no turn.
- A turn knows the earliest one that it cannot be without: the rest of its reply, the calls of its
  results, and for a system message what it follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from memd.core.canonical import THINKING

_ROLES = ("user", "assistant", "system")
_CALL, _RESULT = "tool_use", "tool_result"  # how the types of blocks end, a server's tools' too


@dataclass(slots=True)
class HistoryTurn:
    """One message as the API sees it, of one record or several.

    ``last`` is the place of its last record, ``needs`` the earliest turn that it cannot be without.
    """

    message: Mapping[str, Any]
    blocks: list[Mapping[str, Any]]
    last: int
    needs: int = 0
    replies: set[str] = field(default_factory=set)
    answers: bool = False  # it has results of calls and nothing else

    @property
    def role(self) -> str:
        """Who speaks."""
        return str(self.message["role"])

    @property
    def speaks(self) -> bool:
        """Whether it has text of the user's or the assistant's."""
        return self.role != "system" and any(block["type"] == "text" for block in self.blocks)

    def join(self, record: "HistoryTurn") -> None:
        """Take in another record."""
        self.blocks += record.blocks
        self.message, self.last = record.message, record.last
        self.replies |= record.replies
        self.answers &= record.answers

    def rendered(self) -> dict[str, Any]:
        """Return the message, without the count of a context that is no longer."""
        content = self.message.get("content")
        same = isinstance(content, str) and self.blocks == blocks_of(content)
        members = {name: value for name, value in self.message.items() if name != "usage"}
        return {**members, "content": content if same else self.blocks}


def blocks_of(content: Any) -> list[Mapping[str, Any]] | None:
    """Return the blocks of a content without thinking and empty texts, ``None`` if misshapen."""
    given = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    if not isinstance(given, list | tuple):
        return None
    result: list[Mapping[str, Any]] = []
    for block in given:
        if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
            return None
        if kind == "text" and not isinstance(block.get("text"), str):
            return None
        if kind not in THINKING and (kind != "text" or block["text"].strip()):
            result.append(block)
    return result


def turns_of(messages: Sequence[Any], bottom: int) -> list[HistoryTurn] | None:
    """Return the messages from a place on as the API sees them, ``None`` if one is misshapen."""
    turns: list[HistoryTurn] = []
    spoken: list[int] = []
    homes: dict[tuple[str, str], int] = {}
    for place, message in enumerate(messages[bottom:], bottom):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            return None
        blocks = blocks_of(message.get("content"))
        if blocks is None:
            return None
        record = HistoryTurn(message, blocks, place)
        record.answers = all(block["type"] == _RESULT for block in blocks)
        name = message.get("id")
        if record.role == "assistant" and isinstance(name, str):
            record.replies = {name} - {""}
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
    for turn in turns:
        if turn.role == "user":
            turn.blocks.sort(key=lambda block: block["type"] != _RESULT)  # as the API wants them
    return turns


def _home(turns: Sequence[HistoryTurn], spoken: Sequence[int], record: HistoryTurn) -> int:
    """Return the place of the turn that a record belongs to, or of the next one."""
    if record.role == "system" or not spoken:
        return len(turns)
    last = turns[spoken[-1]]
    same = last is turns[-1] or bool(record.replies & last.replies)
    if last.role == record.role and (same or any(b["type"] == _RESULT for b in record.blocks)):
        return spoken[-1]
    # Results may come between the parallel calls of a reply that is still being received.
    before = spoken[-2] if len(spoken) > 1 else spoken[-1]
    if last.answers and record.replies & turns[before].replies:
        return before
    return len(turns)


def _bind(
    turn: HistoryTurn, record: HistoryTurn, at: int, homes: dict[tuple[str, str], int]
) -> None:
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


def lowest(turns: Sequence[HistoryTurn]) -> list[int]:
    """Return for each turn the earliest one that it or a later one cannot be without."""
    return list(accumulate((turn.needs for turn in reversed(turns)), min))[::-1]


def beginnings(turns: Sequence[HistoryTurn], bottom: int) -> list[int]:
    """Return for each turn the place in the list of messages at which it begins."""
    return list(accumulate((turn.last + 1 for turn in turns[:-1]), max, initial=bottom))


def is_whole(turns: Sequence[HistoryTurn]) -> bool:
    """Tell whether each call has its result, a client's one in the next message, and no other."""
    waiting: list[str] = []
    running: set[str] = set()
    for blocks in (*(turn.blocks for turn in turns if turn.role != "system"), []):
        clients = [block for block in blocks if block["type"] in (_CALL, _RESULT)]
        servers = [block for block in blocks if block["type"] not in (_CALL, _RESULT)]
        running.update(_ids(servers, _CALL))
        answered = set(_ids(servers, _RESULT))
        if sorted(_ids(clients, _RESULT)) != sorted(waiting) or not answered <= running:
            return False
        running -= answered
        waiting = _ids(clients, _CALL)
        if "" in waiting or len(set(waiting)) < len(waiting):
            return False
    return not running

"""Join a client's recorded messages to turns: the messages that the API sees. Pure.

Rules of this file
- The records of one reply, which share its id, are one turn; results between its calls are moved
  behind it. Neighbours of one role, and results of the same calls, are one turn too.
- Turns have no thinking and no empty texts.
- A turn knows the earliest turn that it needs: the rest of its reply, the calls of its results, and
  for a system message the turn before it.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct, field

from memd.base.canonical import THINKING

_ROLES = ("user", "assistant", "system")
_CALL, _RESULT = "tool_use", "tool_result"  # types of blocks; those of a server's tools end so too


class HistoryTurn(Struct):
    """One message as the API sees it, made of one or several records."""

    message: Mapping[str, Any]  # its last record
    blocks: list[Mapping[str, Any]]  # of all its records
    last: int  # the index of its last record
    needs: int = 0  # the index of the earliest turn that it needs
    replies: set[str] = field(default_factory=set)  # the ids of the replies in it
    answers: bool = False  # whether it has only results of calls

    @property
    def role(self) -> str:
        """The role of the message."""
        return str(self.message["role"])

    @property
    def speaks(self) -> bool:
        """Whether it has text of the user or the assistant."""
        return self.role != "system" and any(block["type"] == "text" for block in self.blocks)

    def join(self, record: "HistoryTurn") -> None:
        """Add another record to this turn."""
        self.blocks += record.blocks
        self.message, self.last = record.message, record.last
        self.replies |= record.replies
        self.answers &= record.answers

    def rendered(self) -> dict[str, Any]:
        """Return the message without ``usage``, as its count is no longer right after a cut."""
        content = self.message.get("content")
        is_unchanged_text = isinstance(content, str) and self.blocks == blocks_of(content)
        members = {name: value for name, value in self.message.items() if name != "usage"}
        return {**members, "content": content if is_unchanged_text else self.blocks}


def blocks_of(content: Any) -> list[Mapping[str, Any]] | None:
    """Return the blocks of a content without thinking and empty texts, ``None`` if misshapen."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    if not isinstance(blocks, list | tuple):
        return None
    result: list[Mapping[str, Any]] = []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            return None
        if kind == "text" and not isinstance(block.get("text"), str):
            return None
        is_empty_text = kind == "text" and not block["text"].strip()
        if kind not in THINKING and not is_empty_text:
            result.append(block)
    return result


def turns_of(messages: Sequence[Any], bottom: int) -> list[HistoryTurn] | None:
    """Return the turns of the messages from ``bottom`` on, ``None`` if one is misshapen."""
    turns: list[HistoryTurn] = []
    spoken_turns: list[int] = []  # the indices of all turns but system messages
    turn_of_id: dict[tuple[str, str], int] = {}  # of each call and reply so far
    for index, message in enumerate(messages[bottom:], bottom):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            return None
        blocks = blocks_of(message.get("content"))
        if blocks is None:
            return None
        record = HistoryTurn(message, blocks, index)
        record.answers = all(block["type"] == _RESULT for block in blocks)
        reply_id = message.get("id")
        if record.role == "assistant" and isinstance(reply_id, str):
            record.replies = {reply_id} - {""}
        sets_effort = record.role == "system" and "output_config" in message
        if not (blocks or sets_effort):
            continue  # the API would not see it
        at = _turn_index(turns, spoken_turns, record)
        if at < len(turns):
            turns[at].join(record)
        else:
            turns.append(record)
            record.needs = max(at - 1, 0) if record.role == "system" else at
            if record.role != "system":
                spoken_turns.append(at)
        _bind(turns[at], record, at, turn_of_id)
    for turn in turns:
        if turn.role == "user":
            turn.blocks.sort(key=lambda block: block["type"] != _RESULT)  # the API wants them first
    return turns


def _turn_index(
    turns: Sequence[HistoryTurn], spoken_turns: Sequence[int], record: HistoryTurn
) -> int:
    """Return the index of the turn that a record belongs to; ``len(turns)`` for a new turn.

    ``spoken_turns`` are the indices of all turns but system messages.
    """
    if record.role == "system" or not spoken_turns:
        return len(turns)
    last = turns[spoken_turns[-1]]
    is_neighbour = last is turns[-1]
    is_same_reply = bool(record.replies & last.replies)
    has_results = any(block["type"] == _RESULT for block in record.blocks)
    if last.role == record.role and (is_neighbour or is_same_reply or has_results):
        return spoken_turns[-1]
    # Results may come between the parallel calls of a reply that is still being received.
    before = spoken_turns[-2] if len(spoken_turns) > 1 else spoken_turns[-1]
    if last.answers and record.replies & turns[before].replies:
        return before
    return len(turns)


def _bind(
    turn: HistoryTurn, record: HistoryTurn, at: int, turn_of_id: dict[tuple[str, str], int]
) -> None:
    """Set the earliest turn that a turn needs: that of the calls it answers or of its own reply.

    ``turn_of_id`` has the index of the turn of each call and reply so far; ``at`` is this turn's.
    """
    turn_of_id |= {("call", name): at for name in _ids(record.blocks, _CALL)}
    needed = [("call", name) for name in _ids(record.blocks, _RESULT)]
    needed += [("reply", name) for name in record.replies]
    turn.needs = min([turn.needs, *(turn_of_id.get(key, at) for key in needed)])
    turn_of_id |= {("reply", name): at for name in record.replies}


def _ids(blocks: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """Return the ids of the calls or results among blocks, "" for a block without one."""
    member = "id" if kind == _CALL else "tool_use_id"
    return [str(block.get(member) or "") for block in blocks if block["type"].endswith(kind)]


def lowest(turns: Sequence[HistoryTurn]) -> list[int]:
    """Return for each turn the index of the earliest turn that it or a later turn needs."""
    return list(accumulate((turn.needs for turn in reversed(turns)), min))[::-1]


def beginnings(turns: Sequence[HistoryTurn], bottom: int) -> list[int]:
    """Return for each turn the index of the message at which it begins."""
    return list(accumulate((turn.last + 1 for turn in turns[:-1]), max, initial=bottom))


def is_whole(turns: Sequence[HistoryTurn]) -> bool:
    """Return whether each call has exactly one result, a client's call in the next message."""
    client_calls: list[str] = []  # the last message's calls, which the client runs
    server_calls: set[str] = set()  # calls that the server runs, perhaps across messages
    spoken = [turn.blocks for turn in turns if turn.role != "system"]
    for blocks in (*spoken, []):  # behind the last message no call may be open
        of_client = [block for block in blocks if block["type"] in (_CALL, _RESULT)]
        of_server = [block for block in blocks if block["type"] not in (_CALL, _RESULT)]
        server_calls.update(_ids(of_server, _CALL))
        server_results = set(_ids(of_server, _RESULT))
        if sorted(_ids(of_client, _RESULT)) != sorted(client_calls):
            return False
        if not server_results <= server_calls:
            return False
        server_calls -= server_results
        client_calls = _ids(of_client, _CALL)
        if "" in client_calls or len(set(client_calls)) < len(client_calls):
            return False
    return not server_calls

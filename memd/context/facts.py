"""What is noted of messages, where the Messages API would take them. Pure.

Rules of this file
- Of messages that are refused nothing is noted.
- The records of one reply share its id; with the results between them, and with their neighbours
  of one role, they are what the API sees as one message.
- Each call is answered once, in the message behind its reply. The newest reply's may be open.
- What a server's own tools did is for the server to check.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memd.context.errors import MessagesRefusedError
from memd.context.values import MessageFacts, ResultFacts
from memd.conversation import history
from memd.conversation.pieces import ASSISTANT, USER
from memd.core import canonical

SYSTEM = "system"
MOST_MESSAGES = 100_000
_ROLES = (USER, ASSISTANT, SYSTEM)
_CALL, _RESULT = "tool_use", "tool_result"
_MEMBERS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    _CALL: {"id": str, "name": str, "input": dict},
    _RESULT: {"tool_use_id": str},
}
_NAMED = {_CALL: "id", _RESULT: "tool_use_id"}
_SPEAKERS = {**dict.fromkeys((_CALL, *canonical.THINKING), ASSISTANT), _RESULT: USER}
_ID = re.compile(r"[^/\x00-\x1f\x7f]{1,256}")

# What messages have to be, in words for the sentence of an error.
_MANY = f"a conversation has at most {MOST_MESSAGES} messages"
_JSON = "a message can be written as JSON in UTF-8"
_ROLE = "the role is user, assistant or system"
_FIRST = "the first message is the user's"
_LIST = "the content is a text or a list of blocks"
_EMPTY = "the content is not empty"
_BLOCK = "a block is an object with a type"
_SPEAKER = "no block of this type has this role"
_NAME = "an id has 1 to 256 characters, without / and control characters"
_REPEATED = "another call has this id"
_UNANSWERED = "a call has its result in the next message"
_ORDER = "results come before other blocks"
_ORPHAN = "a result answers an open call of the reply before it"


def chained(messages: Sequence[Any], before: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the conversation's hash after each of some messages, behind those that are known.

    Raises MessagesRefusedError for what is no JSON or no text, as half a surrogate pair, and for
    more messages than a conversation may have.
    """
    if len(before) + len(messages) > MOST_MESSAGES:
        raise _refused(_MANY)
    result: list[bytes] = []
    last = before[-1] if before else canonical.START
    for place, message in enumerate(messages, len(before)):
        if not isinstance(message, dict):
            raise _refused(_ROLE, place, "role")
        try:
            last = canonical.chained(last, message)
        except (ValueError, TypeError, RecursionError) as error:
            raise _refused(_JSON, place) from error
        result.append(last)
    return tuple(result)


def checked(
    messages: Sequence[Any], place: int, before: Sequence[MessageFacts]
) -> tuple[MessageFacts, ...]:
    """Return the facts of new messages, the first of which is at ``place``, behind ``before``.

    Raises MessagesRefusedError for messages that the API would refuse there.
    """
    exchange = _Exchange(before)
    return tuple(
        exchange.checked(_facts(message, number), number)
        for number, message in enumerate(messages, place)
    )


def exchange_start(facts: Sequence[MessageFacts]) -> int:
    """Return the place at which the newest reply begins, 0 where there is none."""
    return next((n for n in range(len(facts) - 1, -1, -1) if facts[n].begins), 0)


class _Exchange:
    """The newest reply of a conversation and what answers it, message by message."""

    def __init__(self, before: Sequence[MessageFacts]) -> None:
        self._before = before
        self._ids: set[str] | None = None  # of all calls, once one is new
        self._open: dict[str, tuple[str, int]] = {}  # a call's tool and the place of its message
        self._replies: set[str] = set()
        self._speaker = ""
        start = exchange_start(before)
        for place, fact in enumerate(before[start:], start):
            self._add(fact, place)

    def checked(self, fact: MessageFacts, place: int) -> MessageFacts:
        """Return a new message's facts, with its results' tools and whether a reply begins."""
        if fact.role == ASSISTANT and not (self._speaker or fact.boundary):
            raise _refused(_FIRST, place, "role")
        if fact.calls and self._ids is None:
            self._ids = {name for known in self._before for name, _ in known.calls}
        for name, _ in fact.calls:
            if self._ids is None or name in self._ids:
                raise _refused(_REPEATED, place)
            self._ids.add(name)
        return self._add(fact, place)

    def _add(self, fact: MessageFacts, place: int) -> MessageFacts:
        if fact.boundary:
            self._open.clear()
            self._replies.clear()
            self._speaker = ""
        if fact.role == SYSTEM:
            return replace(fact, begins=fact.boundary)
        goes_on = self._speaker == ASSISTANT or fact.key in self._replies
        begins = fact.boundary or (fact.role == ASSISTANT and not goes_on)
        if begins:
            self._close()
        if fact.role == ASSISTANT:
            self._replies |= {fact.key} - {""}
            self._open |= {name: (tool, place) for name, tool in fact.calls}
        self._speaker = fact.role
        results = tuple(self._answered(result, place) for result in fact.results)
        return replace(fact, results=results, begins=begins)

    def _close(self) -> None:
        """Begin a new reply; all calls of the one before have their results."""
        for _, place in self._open.values():
            raise _refused(_UNANSWERED, place)
        self._replies.clear()

    def _answered(self, result: ResultFacts, place: int) -> ResultFacts:
        if result.tool_use_id not in self._open:
            raise _refused(_ORPHAN, place, "content", result.block)
        tool, _ = self._open.pop(result.tool_use_id)
        return replace(result, tool=tool)


def _refused(rule: str, *place: str | int) -> MessagesRefusedError:
    return MessagesRefusedError(".".join(("messages", *map(str, place))), rule)


def _facts(message: Any, place: int) -> MessageFacts:
    """Return the facts of one message by itself."""
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise _refused(_ROLE, place, "role")
    role, content, key = message["role"], message.get("content"), message.get("id")
    # A system message may do nothing but set the effort of what follows.
    if not content and not (role == SYSTEM and "output_config" in message):
        raise _refused(_EMPTY, place, "content")
    blocks = list(_blocks(content, place, role))
    boundary = history.floor([message]) > 0
    return MessageFacts(
        role,
        tuple(block["type"] for block in blocks),
        tuple((block["id"], block["name"]) for block in blocks if block["type"] == _CALL),
        tuple(_result(n, block, place) for n, block in enumerate(blocks) if _answers(block)),
        tuple(
            (n, canonical.content_hash([block]))
            for n, block in enumerate(blocks)
            if block["type"] in canonical.THINKING
        ),
        history.estimate(content),
        # What a boundary's reply cost is the size of what it stands for.
        0 if boundary else history.counted(message.get("usage")),
        key if isinstance(key, str) and role == ASSISTANT else "",
        boundary=boundary,
    )


def _blocks(content: Any, place: int, role: str) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a message's content, whose types fit its role."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
        return
    results = True
    for number, block in enumerate(_shaped(content or (), place, "content")):
        kind = block["type"]
        results &= kind == _RESULT
        if kind == _RESULT and not results:
            raise _refused(_ORDER, place, "content", number)
        if role != _SPEAKERS.get(kind, role):
            raise _refused(_SPEAKER, place, "content", number)
        if kind == "text" and not block["text"].strip():
            raise _refused(_EMPTY, place, "content", number)
        name = _NAMED.get(kind)
        if name and not _ID.fullmatch(block[name]):
            raise _refused(_NAME, place, "content", number, name)
        yield block


def _shaped(content: Any, *where: str | int) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a list, each of which has the members that its type needs."""
    if not isinstance(content, list | tuple):
        raise _refused(_LIST, *where)
    for number, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise _refused(_BLOCK, *where, number)
        for name, kind in _MEMBERS.get(block["type"], {}).items():
            if not isinstance(block.get(name), kind):
                needed = f"{block['type']} needs {name}"
                raise _refused(needed, *where, number, name)
        yield block


def _answers(block: Mapping[str, Any]) -> bool:
    return bool(block["type"] == _RESULT)


def _result(number: int, block: Mapping[str, Any], place: int) -> ResultFacts:
    content = block.get("content") or ""
    listed = [] if isinstance(content, str) else content
    blocks = list(_shaped(listed, place, "content", number, "content"))
    whole = canonical.text_of(content)
    texts = (
        [part["text"] for part in blocks if part["type"] == "text"] if whole is None else [whole]
    )
    characters = sum(map(len, texts))
    known = whole is not None and characters >= canonical.LEAST_CHARACTERS
    return ResultFacts(
        number,
        block["tool_use_id"],
        "",
        canonical.content_hash(block["content"]) if known else "",
        characters,
        plain=whole is not None,
        failed=block.get("is_error") is True,
    )

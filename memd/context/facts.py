"""Check messages by the rules of the Messages API and extract facts about them. Pure.

Rules of this file
- Messages that are refused leave no facts.
- A client may store one reply as several records with one id, with results between them. Such
  records, and neighbours of one role, count as the one message that the API gets.
- Each call has one result, in the message behind its reply. Calls of the newest reply may be open.
- Calls of a server's own tools are not checked here: the server checks them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memd.base import canonical
from memd.base.errors import Invalid
from memd.base.text import sha256
from memd.context.errors import messages_refused
from memd.context.values import MessageFacts, ResultFacts
from memd.conversation import history
from memd.conversation.pieces import ASSISTANT, USER

SYSTEM = "system"
MOST_MESSAGES = 100_000
_HASH_DIGITS = 16  # enough to notice that a message changed
_ROLES = (USER, ASSISTANT, SYSTEM)
_CALL, _RESULT = "tool_use", "tool_result"
# The members that a block of each type must have, with their types.
_NEEDED_MEMBERS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    _CALL: {"id": str, "name": str, "input": dict},
    _RESULT: {"tool_use_id": str},
}
_ID_MEMBERS = {_CALL: "id", _RESULT: "tool_use_id"}
# The role whose messages may have blocks of a type; other types may be in any message.
_AUTHORS = {**dict.fromkeys((_CALL, *canonical.THINKING), ASSISTANT), _RESULT: USER}
_ID = r"[^/\x00-\x1f\x7f]{1,256}"

# The rules that messages can violate, in words for the sentence of an error.
_TOO_MANY = f"a conversation has at most {MOST_MESSAGES} messages"
_NOT_JSON = "a message can be written as JSON in UTF-8"
_WRONG_ROLE = "the role is user, assistant or system"
_WRONG_FIRST_ROLE = "the first message is the user's"
_NOT_A_LIST = "the content is a text or a list of blocks"
_NO_CONTENT = "the content is not empty"
_NOT_A_BLOCK = "a block is an object with a type"
_WRONG_AUTHOR = "no block of this type has this role"
_BAD_ID = "an id has 1 to 256 characters, without / and control characters"
_ID_IS_TAKEN = "another call has this id"
_UNANSWERED = "a call has its result in the next message"
_RESULTS_COME_FIRST = "results come before other blocks"
_NO_OPEN_CALL = "a result answers an open call of the reply before it"


def message_hashes(messages: Sequence[Any]) -> tuple[str, ...]:
    """Return a short hash of each message.

    Raises Invalid for a message that is not JSON in UTF-8, and for more messages than
    a conversation may have.
    """
    if len(messages) > MOST_MESSAGES:
        raise _refused(_TOO_MANY)
    result: list[str] = []
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            raise _refused(_WRONG_ROLE, place, "role")
        try:
            result.append(message_hash(message))
        except (ValueError, TypeError, RecursionError) as error:
            raise _refused(_NOT_JSON, place) from error
    return tuple(result)


def message_hash(message: Mapping[str, Any]) -> str:
    """Return a short hash of a message. Raises what ``canonical`` raises."""
    return sha256(canonical.canonical(message))[:_HASH_DIGITS]


def checked_facts(messages: Sequence[Any]) -> list[MessageFacts]:
    """Return the facts of messages. Raises Invalid where the API would refuse them."""
    exchange = _Exchange()
    return [exchange.checked(_facts(message, n), n) for n, message in enumerate(messages)]


def exchange_start(facts: Sequence[MessageFacts]) -> int:
    """Return the index of the message at which the newest reply begins, 0 if there is no reply."""
    return max(last_index(facts, lambda fact: fact.begins), 0)


def last_index(facts: Sequence[MessageFacts], is_wanted: Callable[[MessageFacts], object]) -> int:
    """Return the index of the last message for which ``is_wanted`` is true, -1 if there is none."""
    for index in range(len(facts) - 1, -1, -1):
        if is_wanted(facts[index]):
            return index
    return -1


class _Exchange:
    """Checks messages one by one against the newest reply and its open calls."""

    def __init__(self) -> None:
        self._call_ids: set[str] = set()  # of all calls
        # By id, the open calls of the newest reply: the tool and the index of the message.
        self._open_calls: dict[str, tuple[str, int]] = {}
        self._reply_ids: set[str] = set()  # ids of the newest reply's records
        self._last_role = ""  # of the last message that is not the system's, "" before the first

    def checked(self, fact: MessageFacts, place: int) -> MessageFacts:
        """Return a new message's facts with the tools of its results and whether a reply begins.

        Raises Invalid for a message that may not follow the ones before it.
        """
        is_first = not self._last_role and not fact.boundary
        if fact.role == ASSISTANT and is_first:
            raise _refused(_WRONG_FIRST_ROLE, place, "role")
        for call_id, _ in fact.calls:
            if call_id in self._call_ids:
                raise _refused(_ID_IS_TAKEN, place)
            self._call_ids.add(call_id)
        return self._add(fact, place)

    def _add(self, fact: MessageFacts, place: int) -> MessageFacts:
        """Record a message as the newest, and return its completed facts.

        A boundary begins a new conversation, in which no call is open. A system message changes
        nothing. An assistant's message begins a new reply, unless the message before is the
        assistant's too or it is a further record of the newest reply. Then the calls of the
        message are opened, and those that it has results for are closed.
        """
        if fact.boundary:
            self._open_calls.clear()
            self._reply_ids.clear()
            self._last_role = ""
        if fact.role == SYSTEM:
            return replace(fact, begins=fact.boundary)
        continues_reply = self._last_role == ASSISTANT or fact.key in self._reply_ids
        begins = fact.boundary or (fact.role == ASSISTANT and not continues_reply)
        if begins:
            self._begin_reply()
        if fact.role == ASSISTANT:
            if fact.key:
                self._reply_ids.add(fact.key)
            for call_id, tool in fact.calls:
                self._open_calls[call_id] = tool, place
        self._last_role = fact.role
        results = tuple(self._close_call(result, place) for result in fact.results)
        return replace(fact, results=results, begins=begins)

    def _begin_reply(self) -> None:
        """Begin a new reply. Raises Invalid if a call of the last one is open."""
        for _, place in self._open_calls.values():  # the first one, if there is any
            raise _refused(_UNANSWERED, place)
        self._reply_ids.clear()

    def _close_call(self, result: ResultFacts, place: int) -> ResultFacts:
        """Return a result's facts with its tool's name, and count its call as closed."""
        if result.tool_use_id not in self._open_calls:
            raise _refused(_NO_OPEN_CALL, place, "content", result.block)
        tool, _ = self._open_calls.pop(result.tool_use_id)
        return replace(result, tool=tool)


def _refused(rule: str, *path: str | int) -> Invalid:
    """Return the error for a broken rule; ``path`` leads to the fault within the messages."""
    parts = ["messages", *(str(part) for part in path)]
    return messages_refused(".".join(parts), rule)


def _facts(message: Any, place: int) -> MessageFacts:
    """Return the facts of one message, checked without regard to its neighbours.

    ``place`` is its index in the conversation. Raises Invalid.
    """
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise _refused(_WRONG_ROLE, place, "role")
    role, content, key = message["role"], message.get("content"), message.get("id")
    # A system message may do nothing but set the effort of what follows.
    if not content and not (role == SYSTEM and "output_config" in message):
        raise _refused(_NO_CONTENT, place, "content")
    blocks = list(_blocks(content, place, role))
    is_boundary = history.floor([message]) > 0
    indexed = list(enumerate(blocks))
    results = [_result_facts(n, block, place) for n, block in indexed if block["type"] == _RESULT]
    thinking = [
        (n, canonical.content_hash([block]))
        for n, block in indexed
        if block["type"] in canonical.THINKING
    ]
    return MessageFacts(
        role,
        kinds=tuple(block["type"] for block in blocks),
        calls=tuple((block["id"], block["name"]) for block in blocks if block["type"] == _CALL),
        results=tuple(results),
        thinking=tuple(thinking),
        tokens=history.estimate(content),
        # A boundary's usage counts the messages that its summary replaced, not the summary.
        context=0 if is_boundary else history.counted(message.get("usage")),
        key=key if isinstance(key, str) and role == ASSISTANT else "",
        boundary=is_boundary,
    )


def _blocks(content: Any, place: int, role: str) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a message's content. Raises Invalid for a forbidden one."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
        return
    only_results = True
    for index, block in enumerate(_well_formed(content or (), place, "content")):
        kind = block["type"]
        only_results &= kind == _RESULT
        if kind == _RESULT and not only_results:
            raise _refused(_RESULTS_COME_FIRST, place, "content", index)
        if role != _AUTHORS.get(kind, role):
            raise _refused(_WRONG_AUTHOR, place, "content", index)
        if kind == "text" and not block["text"].strip():
            raise _refused(_NO_CONTENT, place, "content", index)
        id_member = _ID_MEMBERS.get(kind)
        if id_member and not re.fullmatch(_ID, block[id_member]):
            raise _refused(_BAD_ID, place, "content", index, id_member)
        yield block


def _well_formed(content: Any, *path: str | int) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a list, which stands at ``path`` within the messages.

    Raises Invalid for a block without a member that its type needs.
    """
    if not isinstance(content, list | tuple):
        raise _refused(_NOT_A_LIST, *path)
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise _refused(_NOT_A_BLOCK, *path, index)
        for name, kind in _NEEDED_MEMBERS.get(block["type"], {}).items():
            if not isinstance(block.get(name), kind):
                needed = f"{block['type']} needs {name}"
                raise _refused(needed, *path, index, name)
        yield block


def _result_facts(index: int, block: Mapping[str, Any], place: int) -> ResultFacts:
    """Return the facts of a tool result, the block ``index`` of the message at ``place``."""
    content = block.get("content") or ""
    parts = [] if isinstance(content, str) else content
    blocks = list(_well_formed(parts, place, "content", index, "content"))
    plain_text = canonical.text_of(content)
    if plain_text is None:
        characters = sum(len(part["text"]) for part in blocks if part["type"] == "text")
    else:
        characters = len(plain_text)
    may_be_stored = plain_text is not None and characters >= canonical.LEAST_CHARACTERS
    return ResultFacts(
        index,
        block["tool_use_id"],
        "",
        canonical.content_hash(block["content"]) if may_be_stored else "",
        characters,
        plain=plain_text is not None,
        failed=block.get("is_error") is True,
    )

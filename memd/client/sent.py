"""What a client knows of a conversation that it sends again and again. Pure.

Rules of this file
- What was sent once in the place of a block is sent again: it stands above what comes later, but
  for results that memd clears and thinking that it drops, on purpose and at the end of a turn.
- Messages are compared, never changed: what is sent in the place of one is a copy.
- memd and the client agree on a conversation by the hash of its outlines: an image or a text that
  fits into no frame of the socket stands there by its size and hash.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from memd.client.wire import LineBuffer
from memd.core.canonical import LEAST_CHARACTERS, START, THINKING, canonical, content_hash, text_of
from memd.core.text import read_object

KEEP, SPILL, CLEAR, DROP = _ACTIONS = ("keep", "spill", "clear", "drop")
_CHANGES = (CLEAR, DROP)  # of what was sent, at a turn's end
_WHOLE = {"action": KEEP, "content": "", "path": "", "size": 0}
_TEXTS = ("tool_use_id", "content_hash", "action", "content", "path")
_SHAPE: Mapping[str, type] = {**dict.fromkeys(_TEXTS, str), "size": int}
_LARGE_BYTES = 1024 * 1024  # of one message in a frame of 4 MiB
_LONG_CHARACTERS, _SHORT_CHARACTERS = 256 * 1024, 32 * 1024  # of strings that no outline holds

Message = Mapping[str, Any]
Decision = dict[str, Any]


class SentBlock(NamedTuple):
    """What a decision is about: the call that a block answers, and the hash of what it holds."""

    tool_use_id: str
    content_hash: str


class SentMessage(NamedTuple):
    """A message, what memd is told of it, and the conversation's hash behind it."""

    message: Message
    outline: Message
    size: int
    hash: bytes

    @property
    def is_outlined(self) -> bool:
        """Whether memd is not told all of it."""
        return self.outline is not self.message


class SentConversation:
    """A conversation as it was sent last, and what was sent in the place of its blocks.

    ``messages`` are those of the newest list whose hash is known; memd has the first ``agreed``.
    ``decisions`` are as on the wire; memd has not heard those that are ``unreported``. While an
    answer was ``missed``, what memd changes was sent as it was, and memd is told so.
    """

    def __init__(self) -> None:
        self.messages: list[SentMessage] = []
        self.agreed = 0
        self.decisions: dict[SentBlock, Decision] = {}
        self.unreported: set[SentBlock] = set()
        self.missed = False
        self._changed: set[str] = set()  # calls with such decisions: to name each block costs time

    def follow(self, messages: Sequence[Message], in_time: Callable[[], bool]) -> bool:
        """Take a newer list of messages, and say whether there was time for all of them.

        Raises what ``canonical`` does for a message that is no JSON; the list before stands then.
        """
        newest: list[SentMessage] = []
        common = 0
        for place, message in enumerate(messages):
            known = self.messages[place] if common == place < len(self.messages) else None
            # To compare costs a tenth of hashing; few messages change but by marks of the cache.
            if known is None or known.message != message:
                if not in_time():
                    break
                sent = _sent(newest[-1].hash if newest else START, message)
            else:
                sent = known
            common += known is not None and known.hash == sent.hash
            newest.append(sent)
        self.agreed = min(self.agreed, common)
        self.messages = newest
        return len(newest) == len(messages)

    def hash_at(self, place: int) -> str:
        """Return the hash after so many messages as hex."""
        return (self.messages[place - 1].hash if place else START).hex()

    def agree(self, checkpoints: Iterable[Mapping[str, Any]]) -> None:
        """Note how many messages memd has by its checkpoints, none where they are others."""
        numbers = ((each["messages"], each["hash"]) for each in checkpoints)
        self.agreed = max(
            (n for n, hashed in numbers if n <= len(self.messages) and hashed == self.hash_at(n)),
            default=0,
        )

    def learn(self, decisions: Iterable[Mapping[str, Any]], *, unreported: bool = False) -> None:
        """Take over decisions; one that is known stands, but where memd changes it on purpose.

        What has not the shape of a decision is left out.
        """
        for decision in filter(_is_decision, decisions):
            name = SentBlock(decision["tool_use_id"], decision["content_hash"])
            changes, known = decision["action"] in _CHANGES, self.decisions.get(name)
            if self.missed and changes and (known is None or known["action"] not in _CHANGES):
                # Replies were made under what was sent: it stays, and so does their thinking.
                self.decisions.setdefault(name, {**name._asdict(), **_WHOLE})
                self.unreported.add(name)
            elif changes or known is None:
                self.decisions[name] = dict(decision)
                if decision["action"] != KEEP:
                    self._changed.add(name.tool_use_id)
                if unreported:
                    self.unreported.add(name)

    def freeze(self, messages: Iterable[Message]) -> None:
        """Decide that results of which nothing is known go on being sent as they are."""
        self.learn(({**name._asdict(), **_WHOLE} for name, _ in results(messages)), unreported=True)

    def applied(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages as they are sent; one that stays is the same object."""
        return [self._applied(message) for message in messages]

    def _applied(self, message: Message) -> Message:
        blocks = _parts(message.get("content"))
        sent = [self._replaced(block) for block in blocks]
        if all(map(operator.is_, sent, blocks)):
            return message
        return {**message, "content": [block for block in sent if block is not None]}

    def _replaced(self, block: Message) -> Message | None:
        if (call := block.get("tool_use_id", "")) not in self._changed:
            return block
        name = _result_name(block) if call else _thinking_name(block)
        decision = self.decisions.get(name) if name else None
        if decision is None or decision["action"] == KEEP:
            return block
        if decision["action"] == DROP:
            return None
        # The cache's mark within a text goes with it; the block has it instead, and ends there too.
        parts = _parts(block["content"])
        mark = [
            ("cache_control", each["cache_control"]) for each in parts if "cache_control" in each
        ]
        return {**dict(mark), **block, "content": decision["content"]}


class ObservedReply:
    """What a reply to the first ``after`` messages says of the conversation, as it passes.

    ``calls`` are the tools' names by the calls' ids; those of earlier replies can be given.
    """

    def __init__(self, after: int, calls: Mapping[str, str] | None = None) -> None:
        self.after = after
        self.usage: dict[str, Any] = {}
        self.diagnostics: Any = None
        self.calls = dict(calls or {})
        self._lines = LineBuffer()

    def feed(self, data: bytes) -> None:
        """Take in bytes of a stream of events."""
        for line in self._lines.feed(data):
            if line.startswith(b"data:") and (b'"usage"' in line or b'"tool_use"' in line):
                self.take(read_object(line[5:]))

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in an event of a stream, or a whole reply."""
        reply = event.get("message", event)
        if not isinstance(reply, Mapping):
            return
        if isinstance(usage := reply.get("usage"), Mapping):
            self.usage |= {name: value for name, value in usage.items() if value is not None}
        self.diagnostics = reply.get("diagnostics") or self.diagnostics
        self.calls |= _calls((*_parts(reply.get("content")), event.get("content_block")))

    def is_last_of(self, messages: Sequence[Message]) -> bool:
        """Whether it is the newest reply among newer messages."""
        return last_reply(messages) == self.after


def compacted(messages: Sequence[Message], answer: Mapping[str, Any]) -> list[Message]:
    """Return the messages that an answer to ``context.compact`` makes of these."""
    dropped = {(edit["message"], edit["block"]) for edit in answer["edits"]}
    rest = []
    for place in range(answer["keep_from"], len(messages)):
        message = messages[place]
        if any(edited == place for edited, _ in dropped):
            blocks = enumerate(message["content"])
            left = [block for number, block in blocks if (place, number) not in dropped]
            message = {**message, "content": left}
        rest += [message] if message["content"] else []
    return [*messages[: answer["keep_to"]], *answer["messages"], *rest]


def outlines(messages: Iterable[Message]) -> list[Message]:
    """Return messages without what fits into no frame."""
    return [_outline(message, _LONG_CHARACTERS) for message in messages]


def last_reply(messages: Sequence[Message]) -> int:
    """Return the place of the newest reply, -1 where there is none."""
    replies = (n for n, each in enumerate(messages) if each.get("role") == "assistant")
    return max(replies, default=-1)


def calls_of(messages: Iterable[Message]) -> dict[str, str]:
    """Return the names of the tools that are called, by the calls' ids."""
    return _calls(block for message in messages for block in _parts(message.get("content")))


def results(messages: Iterable[Message]) -> Iterator[tuple[SentBlock, Message]]:
    """Yield the results that may be stored, with their names."""
    for message in messages:
        for block in _parts(message.get("content")):
            name = _result_name(block)
            if name is not None and not block.get("is_error"):
                yield name, block


def _calls(blocks: Iterable[Any]) -> dict[str, str]:
    used = (b for b in blocks if isinstance(b, Mapping) and b.get("type") == "tool_use")
    return {str(block.get("id")): str(block.get("name")) for block in used}


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _result_name(block: Message) -> SentBlock | None:
    """Return the name of a result that there can be a decision about."""
    if block.get("type") != "tool_result":
        return None
    content = block.get("content")
    if len(text_of(content) or "") < LEAST_CHARACTERS:
        return None
    return SentBlock(block["tool_use_id"], content_hash(content))


def _thinking_name(block: Message) -> SentBlock | None:
    return SentBlock("", content_hash([block])) if block.get("type") in THINKING else None


def _sent(before: bytes, message: Message) -> SentMessage:
    outline = _outline(message, _LONG_CHARACTERS)
    data = canonical(outline)
    if len(data) > _LARGE_BYTES:  # of many strings
        outline = _outline(message, _SHORT_CHARACTERS)
        data = canonical(outline)
    return SentMessage(message, outline, len(data), sha256(before + data).digest())


def _outline(value: Any, limit: int) -> Any:
    """Return a value without its long strings; the same object where it has none."""
    if isinstance(value, str):
        if len(value) <= limit:
            return value
        return f"[{len(value)} characters, {sha256(value.encode()).hexdigest()}]"
    if isinstance(value, Mapping):
        items = {name: _outline(item, limit) for name, item in value.items()}
        return value if all(map(operator.is_, items.values(), value.values())) else items
    if isinstance(value, list | tuple):
        listed = [_outline(item, limit) for item in value]
        return value if all(map(operator.is_, listed, value)) else listed
    return value


def _is_decision(given: Any) -> bool:
    return (
        isinstance(given, Mapping)
        and all(type(given.get(name)) is kind for name, kind in _SHAPE.items())
        and given["action"] in _ACTIONS
    )

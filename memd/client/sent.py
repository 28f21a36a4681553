"""Record which messages of a conversation were sent, and which of their blocks are replaced. Pure.

Rules of this file
- The replacement of a block stays the same once it was sent; later decisions do not change it. The
  exceptions are results that memd clears and thinking that it drops, at the end of a turn.
- Messages are compared, never changed: a message with a replacement is a copy.
- memd and the client identify a conversation by the hash of its outlines: an image or a text that
  is too long for a frame of the socket is represented by its size and hash.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from memd.client.wire import LineBuffer
from memd.core.canonical import LEAST_CHARACTERS, START, THINKING, canonical, content_hash, text_of
from memd.core.text import read_object

KEEP, SPILL, CLEAR, DROP = _ACTIONS = ("keep", "spill", "clear", "drop")
_CHANGES = (CLEAR, DROP)  # these replace an earlier decision, at the end of a turn
_WHOLE = {"action": KEEP, "content": "", "path": "", "size": 0}
_TEXTS = ("tool_use_id", "content_hash", "action", "content", "path")
_SHAPE: Mapping[str, type] = {**dict.fromkeys(_TEXTS, str), "size": int}
_LARGE_BYTES = 1024 * 1024  # of one message in a frame of 4 MiB
_LONG_CHARACTERS, _SHORT_CHARACTERS = 256 * 1024, 32 * 1024  # of strings that no outline holds

Message = Mapping[str, Any]
Decision = dict[str, Any]


class SentBlock(NamedTuple):
    """The key of a decision: the id of the call that a block answers, and the block's hash."""

    tool_use_id: str
    content_hash: str


class SentMessage(NamedTuple):
    """A message, its outline for memd, and the conversation's hash after it."""

    message: Message
    outline: Message
    size: int
    hash: bytes

    @property
    def is_outlined(self) -> bool:
        """Whether the outline differs from the message."""
        return self.outline is not self.message


class SentConversation:
    """A conversation as it was sent last, and the decisions about its blocks.

    ``messages`` are those of the newest list whose hash is computed; memd has the first ``agreed``.
    ``decisions`` are as on the wire; memd does not have the ``unreported`` ones. While an answer
    was ``missed``, blocks that memd would clear or drop were sent whole: they stay so, and memd
    gets a report.
    """

    def __init__(self) -> None:
        self.messages: list[SentMessage] = []
        self.agreed = 0
        self.decisions: dict[SentBlock, Decision] = {}
        self.unreported: set[SentBlock] = set()
        self.missed = False
        self._changed: set[str] = set()  # calls with a replaced block; quicker than hashing blocks

    def follow(self, messages: Sequence[Message], in_time: Callable[[], bool]) -> bool:
        """Set the messages to a newer list, and return whether there was time for all of them.

        Raises what ``canonical`` raises for a message that is not JSON; the old list stays then.
        """
        newest: list[SentMessage] = []
        common = 0
        for place, message in enumerate(messages):
            known = self.messages[place] if common == place < len(self.messages) else None
            # Comparing costs a tenth of hashing, and few messages change.
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
        """Return the hash of the first ``place`` messages as hex."""
        return (self.messages[place - 1].hash if place else START).hex()

    def agree(self, checkpoints: Iterable[Mapping[str, Any]]) -> None:
        """Set ``agreed`` to the last of memd's checkpoints whose hash is the same here, else 0."""
        numbers = ((each["messages"], each["hash"]) for each in checkpoints)
        self.agreed = max(
            (n for n, hashed in numbers if n <= len(self.messages) and hashed == self.hash_at(n)),
            default=0,
        )

    def learn(self, decisions: Iterable[Mapping[str, Any]], *, unreported: bool = False) -> None:
        """Add decisions; only clearing and dropping replaces a known one.

        A value without the shape of a decision is left out.
        """
        for decision in filter(_is_decision, decisions):
            name = SentBlock(decision["tool_use_id"], decision["content_hash"])
            known = self.decisions.get(name)
            removes = decision["action"] in _CHANGES
            was_removed = known is not None and known["action"] in _CHANGES
            if self.missed and removes and not was_removed:
                # A request was sent without memd's answer, with this block in it: it stays whole.
                self.decisions.setdefault(name, {**name._asdict(), **_WHOLE})
                self.unreported.add(name)
            elif removes or known is None:
                self.decisions[name] = dict(decision)
                if decision["action"] != KEEP:
                    self._changed.add(name.tool_use_id)
                if unreported:
                    self.unreported.add(name)

    def freeze(self, messages: Iterable[Message]) -> None:
        """Decide that results without a decision are sent whole from now on."""
        self.learn(({**name._asdict(), **_WHOLE} for name, _ in results(messages)), unreported=True)

    def applied(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages with their replacements; an unchanged one is the same object."""
        return [self._with_replacements(message) for message in messages]

    def _with_replacements(self, message: Message) -> Message:
        """Return a message with its blocks replaced as memd decided, the same object if none is."""
        blocks = _blocks_of(message.get("content"))
        sent = [self._replaced(block) for block in blocks]
        if all(map(operator.is_, sent, blocks)):
            return message
        return {**message, "content": [block for block in sent if block is not None]}

    def _replaced(self, block: Message) -> Message | None:
        """Return what is sent in place of a block: itself, a copy, or ``None`` to drop it."""
        call = block.get("tool_use_id", "")  # "" for thinking, which belongs to no call
        if call not in self._changed:
            return block
        name = _result_name(block) if call else _thinking_name(block)
        decision = self.decisions.get(name) if name else None
        if decision is None or decision["action"] == KEEP:
            return block
        if decision["action"] == DROP:
            return None
        # A cache mark on a part of the removed text is moved to the block, which ends there too.
        marked = [part for part in _blocks_of(block["content"]) if "cache_control" in part]
        mark = {"cache_control": marked[-1]["cache_control"]} if marked else {}
        return {**mark, **block, "content": decision["content"]}


class ObservedReply:
    """The usage and the tool calls of a reply to the first ``after`` messages.

    ``calls`` are the tools' names by call id, to which those of earlier replies can be given.
    """

    def __init__(self, after: int, calls: Mapping[str, str] | None = None) -> None:
        self.after = after
        self.usage: dict[str, Any] = {}
        self.diagnostics: Any = None
        self.calls = dict(calls or {})
        self._lines = LineBuffer()

    def feed(self, data: bytes) -> None:
        """Read bytes of a stream of events."""
        for line in self._lines.feed(data):
            if line.startswith(b"data:") and (b'"usage"' in line or b'"tool_use"' in line):
                self.take(read_object(line[5:]))

    def take(self, event: Mapping[str, Any]) -> None:
        """Read usage, diagnostics and calls from an event of a stream, or from a whole reply."""
        reply = event.get("message", event)
        if not isinstance(reply, Mapping):
            return
        if isinstance(usage := reply.get("usage"), Mapping):
            self.usage |= {name: value for name, value in usage.items() if value is not None}
        self.diagnostics = reply.get("diagnostics") or self.diagnostics
        self.calls |= _calls((*_blocks_of(reply.get("content")), event.get("content_block")))

    def is_last_of(self, messages: Sequence[Message]) -> bool:
        """Return whether no newer reply is among these messages of the conversation."""
        return last_reply(messages) == self.after


def compacted(messages: Sequence[Message], answer: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a conversation after an answer of ``context.compact`` is applied."""
    dropped = {(edit["message"], edit["block"]) for edit in answer["edits"]}
    rest = []
    for place in range(answer["keep_from"], len(messages)):
        message = messages[place]
        if any(edited == place for edited, _ in dropped):
            blocks = enumerate(message["content"])
            remaining = [block for number, block in blocks if (place, number) not in dropped]
            message = {**message, "content": remaining}
        rest += [message] if message["content"] else []
    return [*messages[: answer["keep_to"]], *answer["messages"], *rest]


def outlines(messages: Iterable[Message]) -> list[Message]:
    """Return messages in which strings that are too long for a frame have only size and hash."""
    return [_outline(message, _LONG_CHARACTERS) for message in messages]


def last_reply(messages: Sequence[Message]) -> int:
    """Return the place of the newest reply, -1 where there is none."""
    replies = (n for n, each in enumerate(messages) if each.get("role") == "assistant")
    return max(replies, default=-1)


def calls_of(messages: Iterable[Message]) -> dict[str, str]:
    """Return the names of the tools that are called, by the calls' ids."""
    return _calls(block for message in messages for block in _blocks_of(message.get("content")))


def results(messages: Iterable[Message]) -> Iterator[tuple[SentBlock, Message]]:
    """Yield the results that may be stored, each with its key; errors are left out."""
    for message in messages:
        for block in _blocks_of(message.get("content")):
            name = _result_name(block)
            if name is not None and not block.get("is_error"):
                yield name, block


def _calls(blocks: Iterable[Any]) -> dict[str, str]:
    """Return the names of tools by the ids of their calls in some blocks."""
    used = (b for b in blocks if isinstance(b, Mapping) and b.get("type") == "tool_use")
    return {str(block.get("id")): str(block.get("name")) for block in used}


def _blocks_of(content: Any) -> list[Any]:
    """Return the blocks of a content, none of a plain text."""
    return content if isinstance(content, list) else []


def _result_name(block: Message) -> SentBlock | None:
    """Return the key of a long text result, ``None`` for any other block."""
    if block.get("type") != "tool_result":
        return None
    content = block.get("content")
    if len(text_of(content) or "") < LEAST_CHARACTERS:
        return None
    return SentBlock(block["tool_use_id"], content_hash(content))


def _thinking_name(block: Message) -> SentBlock | None:
    """Return the name under which a thinking block is known, ``None`` for another block."""
    return SentBlock("", content_hash([block])) if block.get("type") in THINKING else None


def _sent(before: bytes, message: Message) -> SentMessage:
    """Return a message with its outline and hash; ``before`` is the conversation's hash so far."""
    outline = _outline(message, _LONG_CHARACTERS)
    data = canonical(outline)
    if len(data) > _LARGE_BYTES:  # it has many strings of middle length
        outline = _outline(message, _SHORT_CHARACTERS)
        data = canonical(outline)
    return SentMessage(message, outline, len(data), sha256(before + data).digest())


def _outline(value: Any, limit: int) -> Any:
    """Return a value with size and hash for long strings; the same object where it has none."""
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
    """Return whether a value from the daemon is a complete decision about a block."""
    return (
        isinstance(given, Mapping)
        and all(type(given.get(name)) is kind for name, kind in _SHAPE.items())
        and given["action"] in _ACTIONS
    )

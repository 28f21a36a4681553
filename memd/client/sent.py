"""What a client knows of a conversation that it sends again and again. Pure.

Rules of this file
- What was sent once in the place of a block is sent again: it stands above what comes later, but
  for results that memd clears and thinking that it drops, on purpose and at the end of a turn.
- Messages are compared, never changed: what is sent in the place of one is a copy.
- memd and the client agree on a conversation by the hash of its outlines: an image or a text that
  fits into no frame of the socket stands there by its size and hash.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from memd.client.wire import LineBuffer
from memd.core.canonical import START, canonical, content_hash
from memd.core.text import read_object

KEEP, SPILL, CLEAR, DROP = _ACTIONS = ("keep", "spill", "clear", "drop")
_TEXTS = ("tool_use_id", "content_hash", "action", "content", "path")
_SHAPE: Mapping[str, type] = {**dict.fromkeys(_TEXTS, str), "size": int}
LEAST_CHARACTERS = 4_000  # memd decides nothing about shorter results
LARGE_BYTES = 1024 * 1024  # of a message that is told by its outline
_LONG_CHARACTERS = 32 * 1024  # of a string that no outline holds

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
    ``decisions`` are as on the wire; memd has not heard those that are ``unreported``.
    """

    def __init__(self) -> None:
        self.messages: list[SentMessage] = []
        self.agreed = 0
        self.decisions: dict[SentBlock, Decision] = {}
        self.unreported: set[SentBlock] = set()

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
        """Take over decisions; one that is known already stands, unless this one is a later step.

        What has not the shape of a decision is left out.
        """
        for given in decisions:
            decision = _decision(given)
            if decision is None:
                continue
            name = SentBlock(decision["tool_use_id"], decision["content_hash"])
            if decision["action"] in (CLEAR, DROP) or name not in self.decisions:
                self.decisions[name] = decision
                if unreported:
                    self.unreported.add(name)

    def freeze(self, messages: Iterable[Message]) -> None:
        """Decide that what nothing is known of goes on being sent as it is."""
        for name, _ in results(messages):
            if name not in self.decisions:
                self.learn([{**name._asdict(), "action": KEEP}], unreported=True)

    def applied(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages as they are sent; one without replaced blocks is the same object."""
        return [self._applied(message) for message in messages]

    def _applied(self, message: Message) -> Message:
        content = message.get("content")
        if not isinstance(content, list):
            return message
        blocks = [self._sent(block) for block in content]
        if all(new is old for new, old in zip(blocks, content, strict=True)):
            return message
        return {**message, "content": [block for block in blocks if block is not None]}

    def _sent(self, block: Any) -> Any:
        name = _name(block)
        decision = self.decisions.get(name) if name else None
        if decision is None or decision["action"] == KEEP:
            return block
        parts = _parts(block["content"])
        marked = (part["cache_control"] for part in parts if "cache_control" in part)
        # The mark of a part goes with its text: the block has it instead, where it ends as well.
        mark = next(({"cache_control": mark} for mark in marked), {})
        return {**mark, **block, "content": decision["content"]}


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
        roles = [message.get("role") for message in messages[self.after :]]
        return roles[:1] == ["assistant"] and roles.count("assistant") == 1


def calls_of(messages: Iterable[Message]) -> dict[str, str]:
    """Return the names of the tools that are called, by the calls' ids."""
    return _calls(block for message in messages for block in _parts(message.get("content")))


def results(messages: Iterable[Message]) -> Iterator[tuple[SentBlock, Message]]:
    """Yield the results that may be stored, with their names."""
    for message in messages:
        for block in _parts(message.get("content")):
            name = _name(block)
            if name is not None and not block.get("is_error"):
                yield name, block


def _calls(blocks: Iterable[Any]) -> dict[str, str]:
    used = (b for b in blocks if isinstance(b, Mapping) and b.get("type") == "tool_use")
    return {str(block.get("id")): str(block.get("name")) for block in used}


def text_of(content: Any) -> str | None:
    """Return the text of what a result holds, ``None`` where it holds anything else."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in _parts(content)]
    plain = [text for text in texts if isinstance(text, str)]
    return "".join(plain) if plain and len(plain) == len(texts) else None


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _name(block: Any) -> SentBlock | None:
    """Return the name of a block that there can be a decision about."""
    if not isinstance(block, Mapping) or block.get("type") != "tool_result":
        return None
    content, call = block.get("content"), block.get("tool_use_id")
    text = text_of(content)
    if text is None or len(text) < LEAST_CHARACTERS or not isinstance(call, str):
        return None
    try:
        return SentBlock(call, content_hash(content))
    except (ValueError, TypeError, RecursionError):
        return None  # what is no JSON is never sent


def _sent(before: bytes, message: Message) -> SentMessage:
    whole = canonical(message)
    outline = message if len(whole) <= LARGE_BYTES else _outline(message)
    known = whole if outline is message else canonical(outline)
    return SentMessage(message, outline, len(known), sha256(before + known).digest())


def _outline(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _outline(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_outline(item) for item in value]
    if isinstance(value, str) and len(value) > _LONG_CHARACTERS:
        return f"[{len(value)} characters, {sha256(value.encode()).hexdigest()}]"
    return value


def _decision(given: Mapping[str, Any]) -> Decision | None:
    decision = {name: given.get(name, kind()) for name, kind in _SHAPE.items()}
    right = all(type(decision[name]) is kind for name, kind in _SHAPE.items())
    return decision if right and decision["action"] in _ACTIONS else None

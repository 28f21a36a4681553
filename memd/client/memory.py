"""The memories in a program's requests, and what memd learns of its conversation.

Rules of this file
- What was sent once is sent again to the byte: the memory section stays as the first request had
  it, and each prompt's memories stay in its message, also where none came.
- The program's messages are copied where something is added to them.
- A turn that has ended is handed to a thread. Of turns that wait only the newest is handed on,
  since each has the whole conversation.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from memd.base.canonical import THINKING
from memd.client.sent import (
    FRAME_BYTES,
    Message,
    blocks_of,
    calls_of,
    last_reply,
    outlines_in_frame,
)

Body = Mapping[str, Any]
# Calls a method with its parameters until a monotonic second. Raises MemdError and TimeoutError.
Call = Callable[[str, Mapping[str, Any], float], Any]

_RECALL_SHARE = 0.6  # of the time that is left for a request; the plan has the rest
_LEAST_MILLISECONDS = 10  # of a prefetch
_TOOLS_FROM = 20  # newest messages whose tools are in use
_KEY_CHARACTERS = 32
# Members by which a block is known; a program may write others of them anew in each request.
_IDENTITY = ("type", "text", "id", "tool_use_id", "source")
# Members of a request on which the server's cache of it depends, beside its messages.
_CACHED = ("model", "system", "tools", "thinking", "cache_control", "tool_choice", "output_config")

T = TypeVar("T")


class BroughtMemories:
    """The memories of one conversation, as its requests have them.

    ``section`` is the memory section of the system prompt: ``None`` before the first request, ""
    where there is none. ``prompts`` has the block of memories, "" for none, by the key of the
    message that it is in. ``session`` are the parameters that name project and session.
    """

    def __init__(
        self, call: Call, session: Mapping[str, Any], *, prompt: bool, recall: bool
    ) -> None:
        self.section: str | None = None
        self.prompts: dict[str, str] = {}
        self._early_section = ""  # for a first request that memd does not answer in time
        self.is_compacted = False  # since memd was last told, so that memories may come again
        self._call = call
        self._session = session
        self._loads_prompt = prompt
        self._recalls = recall

    def load_early(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        """Load the section before the first request, by a call that may take its time."""
        if self._loads_prompt:
            self._early_section = _text_in(call("load_prompt", self._session), "prompt")

    def load_section(self, deadline: float, *, asks: bool) -> None:
        """Decide about the memory section, once; where memd is not asked there is none."""
        if self.section is not None:
            return
        section = self._early_section if asks else ""
        try:
            if asks and self._loads_prompt:
                answer = self._call("load_prompt", self._session, deadline)
                section = _text_in(answer, "prompt")
        finally:
            if self.section is None:
                self.section = section

    def recall(self, messages: Sequence[Message], deadline: float, *, asks: bool) -> None:
        """Decide which memories go out in the newest prompt, once; earlier prompts stay."""
        keys, place = _keys(messages), _newest_of_user(messages)
        for key, message in zip(keys[:place], messages, strict=False):
            if _prompt_of(message):
                self.prompts.setdefault(key, "")
        query = _prompt_of(messages[place]) if place >= 0 else ""
        if not query or keys[place] in self.prompts:
            return
        block = ""
        try:
            if asks and self._recalls:
                block = self._prefetch(messages, query, deadline)
        finally:
            self.prompts.setdefault(keys[place], block)

    def _prefetch(self, messages: Sequence[Message], query: str, deadline: float) -> str:
        """Return the block of memories for a prompt, "" if none helps. Raises as ``Call`` does."""
        until = time.monotonic() + (deadline - time.monotonic()) * _RECALL_SHARE
        if self.is_compacted:
            self._call("session", {**self._session, "event": "compacted"}, until)
            self.is_compacted = False
        milliseconds = max(int((until - time.monotonic()) * 1000), _LEAST_MILLISECONDS)
        params = {
            **self._session,
            "query": query,
            "recent_tools": [*dict.fromkeys(calls_of(messages[-_TOOLS_FROM:]).values())],
            "deadline_ms": milliseconds,
        }
        return _text_in(self._call("prefetch", params, until), "block")

    def in_body(self, body: Body) -> Body:
        """Return a request with the section and the memories; the same object if it has none."""
        messages = self.in_messages(body["messages"])
        members: dict[str, Any] = {} if messages is body["messages"] else {"messages": messages}
        if self.section:
            members["system"] = _with_section(body.get("system"), self.section)
        return {**body, **members} if members else body

    def in_messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return messages with their memories; the same object if they have none."""
        if not any(self.prompts.values()):
            return messages
        keys = _keys(messages)
        blocks = [
            self.prompts.get(key, "") if _prompt_of(message) else ""
            for key, message in zip(keys, messages, strict=True)
        ]
        if not any(blocks):
            return messages
        pairs = zip(messages, blocks, strict=True)
        return [_with_block(message, block) if block else message for message, block in pairs]


class BackgroundWork(Generic[T]):
    """Does a piece of work for each value given, in a thread; of waiting values only the newest.

    The interpreter waits for the thread when it ends, so that a program's last turn is not lost.
    ``work`` raises nothing.
    """

    def __init__(self, work: Callable[[T], object]) -> None:
        self._work = work
        self._lock = threading.Lock()  # held while the members below change
        self._waiting: T | None = None
        self._thread: threading.Thread | None = None  # while it works

    def give(self, value: T) -> None:
        """Have the work done for a value, in place of one that waits."""
        with self._lock:
            self._waiting = value
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="memd-keeper", daemon=False)
                self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until no work is left, so many seconds at most."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        """Work until no value waits."""
        while True:
            with self._lock:
                value, self._waiting = self._waiting, None
                if value is None:
                    self._thread = None
                    return
            self._work(value)


class EndedTurn(NamedTuple):
    """The last request of a turn as it was sent, its messages as the program made them, a reply.

    ``usage`` is what the reply says of its tokens.
    """

    body: Body
    messages: Sequence[Message]
    reply: Message
    usage: Mapping[str, Any]


def learning_params(turn: EndedTurn) -> dict[str, Any]:
    """Return the parameters of ``extract`` and ``notes.update`` for a turn.

    A conversation too large for a frame goes without ``cache``, with outlines of its longest texts.
    """
    sent = [*turn.body["messages"], turn.reply]
    *earlier, reply = with_names(sent, [*turn.messages, turn.reply])
    named = [*earlier, {**reply, "usage": turn.usage}]
    cache = {name: turn.body[name] for name in _CACHED if name in turn.body}
    params = {"messages": named, "cache": {**cache, "messages": sent}}
    if len(msgspec.json.encode(params)) > FRAME_BYTES:
        return {"messages": outlines_in_frame(named)}
    return params


def with_names(sent: Iterable[Message], messages: Sequence[Message]) -> list[Message]:
    """Return messages as sent, each with a ``uuid`` by which memd knows it after a compaction."""
    seen: Counter[str] = Counter()
    named: list[Message] = []
    for key, message in zip(_keys(messages), sent, strict=True):
        seen[key] += 1
        named.append({**message, "uuid": f"{key}-{seen[key]}"})
    return named


def without_name(message: Message) -> Message:
    """Return a message as it is sent, without its ``uuid``."""
    return {name: value for name, value in message.items() if name != "uuid"}


def _keys(messages: Sequence[Message]) -> list[str]:
    """Return a key for each message: a hash of what it and the one before it say.

    It stays the same where a program moves cache marks or writes a text as a block.
    """
    digests = [b"", *(sha256(_essence(message)).digest() for message in messages)]
    pairs = map(b"".join, pairwise(digests))
    return [sha256(pair).hexdigest()[:_KEY_CHARACTERS] for pair in pairs]


def _essence(message: Message) -> bytes:
    """Return what a message says, for its key."""
    content = message.get("content")
    blocks = [_text_block(content)] if isinstance(content, str) else blocks_of(content)
    known = [
        [block.get(name) for name in _IDENTITY]
        for block in blocks
        if isinstance(block, Mapping) and block.get("type") not in THINKING
    ]
    return json.dumps([message.get("role"), known]).encode()


def _newest_of_user(messages: Sequence[Message]) -> int:
    """Return the place of the newest message behind the last reply that is not the system's, or -1.

    A system's message may follow a prompt, for instance where a program adds tools.
    """
    places = range(len(messages) - 1, last_reply(messages), -1)
    return next((place for place in places if messages[place].get("role") != "system"), -1)


def _prompt_of(message: Message) -> str:
    """Return what the person says in a message, "" for results of tools and for replies."""
    if message.get("role") != "user":
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = [block for block in blocks_of(content) if isinstance(block, Mapping)]
    if any(block.get("type") == "tool_result" for block in blocks):
        return ""
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _with_section(system: Any, section: str) -> list[Any]:
    """Return a system prompt with the memory section behind it.

    A cache mark at the prompt's end moves to the section's end, so that both are cached.
    """
    blocks = [_text_block(system)] if isinstance(system, str) and system else blocks_of(system)
    *first, last = blocks or [{}]
    mark = {name: value for name, value in last.items() if name == "cache_control"}
    unmarked = {name: value for name, value in last.items() if name not in mark}
    return [*first, *([unmarked] if unmarked else []), {**_text_block(section), **mark}]


def _with_block(message: Message, block: str) -> Message:
    """Return a copy of a message whose memories stand before what it says."""
    content = message["content"]
    blocks = [_text_block(content)] if isinstance(content, str) else content
    return {**message, "content": [_text_block(block), *blocks]}


def _text_in(answer: Any, name: str) -> str:
    """Return a text in memd's answer, "" where it has none."""
    text = answer.get(name) if isinstance(answer, Mapping) else None
    return text if isinstance(text, str) else ""


def _text_block(text: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": text}

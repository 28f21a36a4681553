"""Read the replies to a conversation, as the program reads them.

A reply is observed while it passes: its usage, the tools that it calls, and what it says, from
which memd learns when a turn ends with it.
"""

import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from memd.base.text import read_object
from memd.client.sent import Message, blocks_of, last_reply, tools_by_call
from memd.client.wire import LineBuffer

# How a reply stops after which the turn goes on.
_GOES_ON = (None, "tool_use", "pause_turn", "compaction")


class ObservedReply:
    """The usage and the tool calls of a reply to a conversation's first messages.

    ``message_count`` is the number of these messages, 0 for no reply. ``calls`` are the tools'
    names by call id; those of earlier replies are given to the constructor. ``is_whole`` says that
    the reply has come to its end.
    """

    def __init__(self, message_count: int, calls: Mapping[str, str] | None = None) -> None:
        self.message_count = message_count
        self.usage: dict[str, Any] = {}
        self.diagnostics: Any = None  # what the server says about a lost cache
        self.calls = dict(calls or {})
        self.is_whole = False
        self._buffer = LineBuffer()
        self._stop_reason: Any = None
        self._blocks: list[dict[str, Any]] = []  # that have begun
        self._inputs: dict[int, str] = {}  # JSON of the tools' inputs in a stream, by their block

    def feed(self, data: bytes) -> bool:
        """Read bytes of a stream of events, or of a whole reply that ends with a newline.

        Return whether the reply has come to its end by them.
        """
        was_whole = self.is_whole
        for line in self._buffer.feed(data):
            if line.startswith(b"data:"):
                self.take(read_object(line[5:]))
            elif line.startswith(b"{"):
                self.take(read_object(line))
        return self.is_whole and not was_whole

    def take(self, event: Mapping[str, Any]) -> None:
        """Read an event of a stream, or a whole reply."""
        kind = event.get("type")
        if kind == "content_block_delta":
            self._add_delta(event.get("delta"))
            return
        reply = event.get("message", event)
        if not isinstance(reply, Mapping):
            return
        usage = reply.get("usage")
        if isinstance(usage, Mapping):
            self.usage |= {name: value for name, value in usage.items() if value is not None}
        self.diagnostics = reply.get("diagnostics") or self.diagnostics
        blocks = [*blocks_of(reply.get("content")), event.get("content_block")]
        self._blocks += [dict(block) for block in blocks if isinstance(block, Mapping)]
        self.calls |= tools_by_call(blocks)
        ending = event.get("delta") if kind == "message_delta" else reply
        if isinstance(ending, Mapping):
            self._stop_reason = ending.get("stop_reason") or self._stop_reason
        self.is_whole = self.is_whole or kind in ("message", "message_stop")

    def _add_delta(self, delta: Any) -> None:
        """Add the next piece of a text, thought or signature to the block that has begun."""
        if not isinstance(delta, Mapping) or not self._blocks:
            return
        block = self._blocks[-1]
        for name in ("text", "thinking", "signature"):
            if isinstance(delta.get(name), str):
                block[name] = f"{block.get(name) or ''}{delta[name]}"
        if isinstance(delta.get("partial_json"), str):
            place = len(self._blocks) - 1
            self._inputs[place] = self._inputs.get(place, "") + delta["partial_json"]

    def end_of_turn(self) -> Message | None:
        """Return the reply as a message if a turn ends with it: it is whole and calls no tool."""
        is_open = self._stop_reason in _GOES_ON or tools_by_call(self._blocks)
        if not self.is_whole or is_open or not self._blocks:
            return None
        for place, text in self._inputs.items():  # of tools that the server runs
            self._blocks[place]["input"] = read_object(text)
        content = [
            {name: value for name, value in block.items() if value is not None}
            for block in self._blocks
        ]
        return {"role": "assistant", "content": content}

    def is_last_of(self, messages: Sequence[Message]) -> bool:
        """Return whether this reply is the newest one among the conversation's messages."""
        return last_reply(messages) == self.message_count


def observe_stream(http: Any, observe: Callable[[bytes], object]) -> None:
    """Pass the bytes of a streamed response to ``observe`` as well, when the SDK reads them.

    It replaces the two methods with which every version of the SDK reads decoded bytes; they yield
    the same bytes as before. ``observe`` raises nothing; its last bytes are a newline.
    """
    # A weak reference: otherwise a response that is dropped half-read would not be closed at once.
    response = weakref.ref(http)

    def observed_chunks(chunk_size: int | None = None) -> Iterator[bytes]:
        """Yield the chunks of the response, and show them to ``observe``."""
        for chunk in type(http).iter_bytes(response(), chunk_size):
            observe(chunk)
            yield chunk
        observe(b"\n")

    async def observed_chunks_async(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """Yield the chunks of the response, and show them to ``observe``."""
        async for chunk in type(http).aiter_bytes(response(), chunk_size):
            observe(chunk)
            yield chunk
        observe(b"\n")

    http.iter_bytes, http.aiter_bytes = observed_chunks, observed_chunks_async

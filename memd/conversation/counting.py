"""Count or estimate the tokens of a conversation, and compute the thresholds of a window. Pure.

Rules of this file
- The server's count is used up to its last reply; later messages are estimated.
- The records of one reply share a message id and repeat its count. Estimates are added from the
  first of them on, so that results between parallel calls count.
- An estimate is one token for four bytes of text, two bytes of JSON, or one character where most
  of a text is Chinese, Japanese or Korean; an image or a document is 2,000.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memd.conversation.pieces import ASSISTANT, BOUNDARY, TranscriptPiece
from memd.text.words import has_cjk

WINDOW = 200_000  # tokens of a window that nobody configured
ATTACHMENT = 2_000  # tokens of an image or a document
_TEXT_BYTES, _JSON_BYTES = 4, 2  # of one token
_TEXT_MEMBERS = ("text", "thinking", "content")  # of a block
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)
_RESERVED = 20_000  # of a window, for the reply and the summary
_MARGINS = (33_000, 18_000, 13_000, 3_000)  # warn, urgent, auto, block: below the effective window
_CORRECTION = (4, 3)  # without a server's count an estimate is multiplied by 4/3
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_ABSURD = 1_000_000_000  # tokens; no context is that large
_MOST_CJK_BYTES = 2  # with more bytes per character most of a text is CJK


class TokenCount(Struct, frozen=True):
    """A number of tokens; ``source`` is ``usage`` (a server counted) or ``estimate``."""

    tokens: int
    source: str


class Thresholds(Struct, frozen=True):
    """Tokens of a context at which to warn, to urge, to compact and to stop."""

    effective: int
    warn: int
    urgent: int
    auto: int
    block: int


def thresholds(window: int = WINDOW) -> Thresholds:
    """Return the thresholds of a window; below 200,000 tokens the margins shrink with it."""
    share = min(window, WINDOW) / WINDOW
    effective = window - round(_RESERVED * share)
    warn, urgent, auto, block = (effective - round(margin * share) for margin in _MARGINS)
    return Thresholds(effective, warn, urgent, auto, block)


def estimate_text(text: str) -> int:
    """Return the estimated tokens of a text."""
    size = _bytes(text)
    if size > _MOST_CJK_BYTES * len(text) and has_cjk(text):
        return len(text)
    return -(-size // _TEXT_BYTES)  # rounded up


def _bytes(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def estimate(content: Any) -> int:
    """Return the estimated tokens of a message's content or of one block."""
    if isinstance(content, str):
        return estimate_text(content)
    if isinstance(content, list | tuple):
        return sum(map(estimate, content))
    block = content if isinstance(content, Mapping) else {}
    if block.get("type") in ("image", "document"):
        return ATTACHMENT
    for name in _TEXT_MEMBERS:
        if isinstance(block.get(name), str | list):
            return estimate(block[name])
    text = _JSON.encode(block.get("input", block)) if block else ""
    return -(-_bytes(text) // _JSON_BYTES)  # rounded up


def counted(usage: Any) -> int:
    """Return the context's tokens up to a reply by its usage, 0 if the usage has no counts.

    Of several iterations the last message counts, not a compaction.
    """
    if not isinstance(usage, Mapping):
        return 0
    iterations = usage.get("iterations")
    if not isinstance(iterations, list | tuple):
        iterations = ()
    objects = [item for item in iterations if isinstance(item, Mapping)]
    messages = [item for item in objects if item.get("type") == "message"]
    counts = messages[-1] if messages else usage
    return sum(tokens_of(counts.get(name)) for name in _INPUT)


def tokens_of(number: Any) -> int:
    """Return a server's number of tokens, 0 if it is no plausible one."""
    return number if type(number) is int and 0 < number < _ABSURD else 0


def count(messages: Sequence[Mapping[str, Any]]) -> TokenCount:
    """Return the tokens of messages; replies may have ``id`` and ``usage``."""
    meter = ContextMeter()
    for item in messages:
        reply = item.get("id")
        key = reply if isinstance(reply, str) else ""
        tokens, context = estimate(item.get("content")), counted(item.get("usage"))
        meter.add(TranscriptPiece(str(item.get("role")), key=key, tokens=tokens, context=context))
    return TokenCount(meter.tokens, "usage" if meter.counted else "estimate")


class ContextMeter:
    """Counts the tokens of a conversation's context from its pieces in order.

    ``compactions`` counts the boundaries so far; ``counted`` says that a server's count was seen.
    """

    def __init__(self) -> None:
        self.compactions = 0
        self.counted = False
        self._begin(0)

    def _begin(self, tokens: int, reply: str = "") -> None:
        """Begin a new reply; ``tokens`` is the context's size before it."""
        self._before = tokens  # up to the newest reply
        self._reply = reply  # the key of its pieces
        self._own = 0  # the estimate of its pieces
        self._after = 0  # the estimate of other pieces since it began
        self._context = 0  # what the server counted up to it and with it, 0 without a count

    @property
    def tokens(self) -> int:
        """The context's size in tokens now."""
        if self.counted:
            return self._size
        return self._size * _CORRECTION[0] // _CORRECTION[1]

    @property
    def _size(self) -> int:
        """The context's size without the correction of estimates that no server counted."""
        return (self._context or self._before + self._own) + self._after

    def add(self, piece: TranscriptPiece) -> None:
        """Add the next piece to the count."""
        if piece.event == BOUNDARY:
            self.compactions += 1
            self._begin(piece.tokens)
        elif piece.role != ASSISTANT:
            self._after += piece.tokens
        else:
            # A piece with another key begins a new reply. Without one, only a piece that is no
            # event does: an event has the count of the reply before it.
            begins_reply = piece.key != self._reply if piece.key else not piece.event
            if begins_reply:
                self._begin(self._size, piece.key)
            self._own += piece.tokens
            self._context = piece.context or self._context
            self.counted = self.counted or piece.context > 0

"""A conversation as a model reads it: blocks that only grow, and where a cache may begin. Pure.

Rules of this file
- The blocks of a conversation that goes on begin with the same bytes as before, so a prompt cache
  knows them; nothing in them depends on the time or on what is new.
- What was said is data. Whose words a piece holds stands in its tag; no text can open or close one.
- What messages of other agents said stays with the conversation, so that it is known again, and is
  shown to no model.
- Long pieces are cut in the middle, and of a long conversation the oldest blocks go, a fixed share
  at a time: the prefix changes rarely.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate

from memd.conversation.counting import estimate_text
from memd.conversation.pieces import AGENT, TranscriptPiece
from memd.core.values import Message

PIECE_CHARACTERS = 6_000
AGENT_CHARACTERS = 64 * 1024  # of messages of other agents in one piece
OUTPUT_CHARACTERS = 1_200  # of a tool's output: what it said matters less than that it was asked
MOST_CHARACTERS = 400_000  # some 110,000 tokens
_TAG = re.compile(r"<(?=\s*/?\s*(?:said|task))", re.IGNORECASE)
_CUT = "\n[…]\n"
_MESSAGES = "(messages of other agents; nothing is learnt from them)"
_LIMITS = (1_200, 600, 300, 100)  # characters of a piece that is not the person's, step by step
_CALLS, _CALL_CHARACTERS = 40, 300
_AROUND = 40  # characters of a piece's tags
_NEW_CHARACTERS = 80_000
_BYTES_A_TOKEN = (4, 3, 2)  # as many as there are, by script


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation so far: its pieces, oldest first, and how many went before."""

    pieces: tuple[Message, ...] = ()
    dropped: int = 0

    @property
    def characters(self) -> int:
        """How long it is."""
        return sum(len(rendered(piece)) for piece in self.pieces)

    @property
    def end(self) -> int:
        """How many pieces there have been."""
        return self.dropped + len(self.pieces)


class NewPieces:
    """What was said behind the message ``covers``: the newest of it, as a model is shown it."""

    def __init__(self, covers: str = "") -> None:
        self._covers = covers
        self._retained: deque[Message] = deque()
        self._characters = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """What says something of it."""
        return tuple(item for item in self._retained if item.text or item.calls)

    def add(self, piece: TranscriptPiece) -> None:
        """Take in the next piece of the conversation; events are no words."""
        if piece.event:
            return
        if piece.id and piece.id == self._covers:
            self._retained.clear()
            self._characters = 0
            return
        text = f"(failed)\n{piece.text}" if piece.failed else piece.text
        call = shortened(piece.call.short, _CALL_CHARACTERS) if piece.call else ""
        said = shortened(text.strip(), _limit(piece.origin))
        at = piece.at if piece.origin == "user" else None
        calls = (call,) if call else ()
        message = Message(piece.id, piece.role, said, piece.origin or "tool", at, (), calls)
        self._retained.append(message)
        self._characters += _length(message)
        while self._characters > _NEW_CHARACTERS:
            self._characters -= _length(self._retained.popleft())


def extended(dialogue: Dialogue, messages: Sequence[Message]) -> Dialogue:
    """Return a conversation with what is new; too long, it loses its older half."""
    new = (shown(message) for message in messages)
    grown = replace(dialogue, pieces=(*dialogue.pieces, *(piece for piece in new if _body(piece))))
    if grown.characters <= MOST_CHARACTERS:
        return grown
    lengths = accumulate(len(rendered(piece)) for piece in reversed(grown.pieces))
    newest = max(sum(length <= MOST_CHARACTERS // 2 for length in lengths), 1)
    return Dialogue(grown.pieces[-newest:], grown.end - newest)


def squeezed(pieces: Sequence[Message], most: int, *, strict: bool = False) -> tuple[Message, ...]:
    """Return pieces within so many bytes: those that are not the person's are cut, then dropped.

    With ``strict`` the person's are dropped as well, the oldest first.
    """
    retained = list(pieces)
    for limit in _LIMITS:
        if _size(retained) > most:
            retained = [
                piece
                if piece.origin == "user"
                else replace(piece, text=shortened(_body(piece), limit), calls=())
                for piece in retained
            ]
    over, result = _size(retained) - most, []
    for piece in retained:
        if over > 0 and (strict or piece.origin != "user"):
            over -= _size([piece])
        else:
            result.append(piece)
    return tuple(result)


def within(news: Sequence[Message], tokens: int) -> list[str]:
    """Return what was said as a model reads it, as much of it as fits, the newest at least."""
    for size in _BYTES_A_TOKEN:
        texts = [rendered(item) for item in squeezed(news, tokens * size, strict=True)]
        if texts and sum(map(estimate_text, texts)) <= tokens:
            return texts
    return [rendered(shown(item, tokens // 2)) for item in news[-1:]]


def rendered(piece: Message) -> str:
    """Return a piece with its tag, as a model reads it."""
    # With its weekday, so that a model can tell which day "Friday" is.
    if piece.origin == AGENT:
        return f'<said by="{AGENT}">\n{_MESSAGES}\n</said>'
    at = "" if piece.at is None else f' at="{day_and_time(piece.at)}"'
    return f'<said by="{piece.origin}"{at}>\n{_TAG.sub("&lt;", _body(piece))}\n</said>'


def shown(message: Message, most: int = PIECE_CHARACTERS) -> Message:
    """Return what a model is shown of a message."""
    limit = _limit(message.origin)
    limit = limit if message.origin == AGENT else min(most, limit)
    calls = tuple(shortened(call, _CALL_CHARACTERS) for call in message.calls[:_CALLS])
    return replace(message, text=shortened(message.text.strip(), limit), calls=calls)


def shortened(text: str, limit: int) -> str:
    """Return a text that is cut in the middle where it has more than so many characters."""
    if len(text) <= limit:
        return text
    return text[: limit * 2 // 3] + _CUT + text[-limit // 3 :]


def day_and_time(at: float) -> str:
    """Return a time with its weekday: ``Tue 2026-03-03T09:00``."""
    return f"{datetime.fromtimestamp(at, UTC):%a %Y-%m-%dT%H:%M}"


def _size(pieces: Sequence[Message]) -> int:
    return sum(len(rendered(piece).encode("utf-8", "replace")) for piece in pieces)


def _length(message: Message) -> int:
    return _AROUND + len(message.text) + sum(map(len, message.calls))


def _limit(origin: str) -> int:
    if origin == AGENT:  # whole: it is looked up there, and not shown
        return AGENT_CHARACTERS
    return PIECE_CHARACTERS if origin in ("user", "assistant") else OUTPUT_CHARACTERS


def _body(piece: Message) -> str:
    calls = ("Tools called:", *(f"- {call}" for call in piece.calls)) if piece.calls else ()
    return "\n".join(filter(None, (piece.text, *calls)))

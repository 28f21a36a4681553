"""Render a conversation as quoted blocks for a model. Pure.

Rules of this file
- Texts are quoted as data in tags that name the author, and no text can open or close a tag.
- Messages of other agents are stored with the conversation to recognise their words, but are not
  shown to a model.
- Long pieces are cut in the middle. A conversation that is too long loses its oldest pieces.
"""

import re
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate

from msgspec.structs import replace

from memd.base.values import Message
from memd.conversation.counting import estimate_text
from memd.conversation.pieces import AGENT, TranscriptPiece

PIECE_CHARACTERS = 6_000  # of a piece of the person or the assistant
AGENT_CHARACTERS = 64 * 1024  # of messages of other agents in one piece
OUTPUT_CHARACTERS = 1_200  # of a tool's output
MOST_CHARACTERS = 400_000  # some 110,000 tokens
_TAG = r"(?i)<(?=\s*/?\s*(?:said|task))"
_CUT = "\n[…]\n"
_NOTE_OF_MESSAGES = "(messages of other agents; nothing is learnt from them)"
_LIMITS = (1_200, 600, 300, 100)  # characters of other pieces than the person's, tried in turn
_MOST_CALLS, _CALL_CHARACTERS = 40, 300  # of one piece, and of one call
_TAG_CHARACTERS = 40  # of a piece's tags, about
_NEW_CHARACTERS = 80_000  # of all messages that ``NewPieces`` collects
_BYTES_A_TOKEN = (4, 3, 2)  # tried in turn, as they depend on the script


class NewPieces:
    """Collects the messages behind the message ``covers``, 80,000 characters at most."""

    def __init__(self, covers: str = "") -> None:
        self._covers = covers  # the id of the last message that is not collected
        self._collected: deque[Message] = deque()  # the oldest are dropped
        self._characters = 0  # of the collected messages

    @property
    def messages(self) -> tuple[Message, ...]:
        """The collected messages that have text or calls."""
        return tuple(item for item in self._collected if item.text or item.calls)

    def add(self, piece: TranscriptPiece) -> None:
        """Add the next piece of the conversation; events are ignored."""
        if piece.event:
            return
        if piece.id and piece.id == self._covers:
            self._collected.clear()
            self._characters = 0
            return
        text = f"(failed)\n{piece.text}" if piece.failed else piece.text
        call = shortened(piece.call.short, _CALL_CHARACTERS) if piece.call else ""
        message = Message(
            piece.id,
            piece.role,
            text=shortened(text.strip(), _limit(piece.origin)),
            origin=piece.origin or "tool",
            at=piece.at if piece.origin == "user" else None,
            calls=(call,) if call else (),
        )
        self._collected.append(message)
        self._characters += _length(message)
        while self._characters > _NEW_CHARACTERS:
            self._characters -= _length(self._collected.popleft())


def extended(pieces: Sequence[Message], messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return pieces with new messages behind them; what is too long loses its oldest ones."""
    new = (shown(message) for message in messages)
    grown = (*pieces, *(piece for piece in new if _body(piece)))
    # The newest pieces that have so many characters together stay, at least one.
    lengths = accumulate(len(rendered(piece)) for piece in reversed(grown))
    count = max(sum(length <= MOST_CHARACTERS for length in lengths), 1)
    return grown[-count:]


def squeezed(pieces: Sequence[Message], most: int, *, strict: bool = False) -> tuple[Message, ...]:
    """Return pieces of ``most`` bytes together: others than the person's are cut or dropped.

    With ``strict`` the person's are dropped too. The oldest pieces are dropped first.
    """
    cut_pieces = list(pieces)
    for limit in _LIMITS:
        if _size(cut_pieces) > most:
            cut_pieces = [_cut(piece, limit) for piece in cut_pieces]
    excess, result = _size(cut_pieces) - most, []
    for piece in cut_pieces:
        if excess > 0 and (strict or piece.origin != "user"):
            excess -= _size([piece])
        else:
            result.append(piece)
    return tuple(result)


def _cut(piece: Message, limit: int) -> Message:
    """Return a piece with at most ``limit`` characters; one of the person's stays."""
    if piece.origin == "user":
        return piece
    return replace(piece, text=shortened(_body(piece), limit), calls=())


def within(news: Sequence[Message], tokens: int) -> list[str]:
    """Return the newest messages as quoted text of at most ``tokens``, at least the last one."""
    for bytes_a_token in _BYTES_A_TOKEN:
        pieces = squeezed(news, tokens * bytes_a_token, strict=True)
        texts = [rendered(piece) for piece in pieces]
        if texts and sum(map(estimate_text, texts)) <= tokens:
            return texts
    return [rendered(shown(message, tokens // 2)) for message in news[-1:]]


def rendered(piece: Message) -> str:
    """Return a piece as quoted text in its tag; of other agents' messages only a note."""
    if piece.origin == AGENT:
        return f'<said by="{AGENT}">\n{_NOTE_OF_MESSAGES}\n</said>'
    # The time has its weekday, so that a model can tell which day "Friday" is.
    at = "" if piece.at is None else f' at="{day_and_time(piece.at)}"'
    return f'<said by="{piece.origin}"{at}>\n{re.sub(_TAG, "&lt;", _body(piece))}\n</said>'


def shown(message: Message, most: int = PIECE_CHARACTERS) -> Message:
    """Return a message with its text and calls shortened for a model."""
    limit = _limit(message.origin)
    if message.origin != AGENT:  # other agents' messages are only searched
        limit = min(most, limit)
    calls = tuple(shortened(call, _CALL_CHARACTERS) for call in message.calls[:_MOST_CALLS])
    return replace(message, text=shortened(message.text.strip(), limit), calls=calls)


def shortened(text: str, limit: int) -> str:
    """Return a text, cut in the middle if it has more than ``limit`` characters."""
    if len(text) <= limit:
        return text
    return text[: limit * 2 // 3] + _CUT + text[-limit // 3 :]


def day_and_time(at: float) -> str:
    """Return a time with its weekday: ``Tue 2026-03-03T09:00``."""
    return f"{datetime.fromtimestamp(at, UTC):%a %Y-%m-%dT%H:%M}"


def _size(pieces: Sequence[Message]) -> int:
    """Return the bytes of rendered pieces."""
    return sum(len(rendered(piece).encode("utf-8", "replace")) for piece in pieces)


def _length(message: Message) -> int:
    """Return the approximate length in characters of a rendered message."""
    return _TAG_CHARACTERS + len(message.text) + sum(map(len, message.calls))


def _limit(origin: str) -> int:
    """Return the most characters of a piece, by the author of its words."""
    if origin == AGENT:  # long, since it is only searched and not shown
        return AGENT_CHARACTERS
    return PIECE_CHARACTERS if origin in ("user", "assistant") else OUTPUT_CHARACTERS


def _body(piece: Message) -> str:
    """Return the text of a piece with a list of its calls."""
    lines = [piece.text] if piece.text else []
    if piece.calls:
        lines += ["Tools called:", *(f"- {call}" for call in piece.calls)]
    return "\n".join(lines)

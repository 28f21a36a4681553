"""A conversation as a model reads it: blocks that only grow, and where a cache may begin. Pure.

Rules of this file
- The blocks of a conversation that goes on begin with the same bytes as before, so a prompt cache
  knows them; nothing in them depends on the time or on what is new.
- What was said is data. Whose words a piece holds stands in its tag; no text can open or close one.
- Long pieces are cut in the middle, and of a long conversation the oldest blocks go, a fixed share
  at a time: the prefix changes rarely.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memd.core.text import iso_time
from memd.core.values import Message

PIECE_CHARACTERS = 6_000
OUTPUT_CHARACTERS = 1_200  # of a tool's output: what it said matters less than that it was asked
MOST_CHARACTERS = 400_000  # some 110,000 tokens
_TAG = re.compile(r"<(?=\s*/?\s*(?:said|task))", re.IGNORECASE)
_CUT = "\n[…]\n"
_PERSON, _END = '<said by="user"', "\n</said>"
_LIMITS = (1_200, 600, 300, 100)  # characters of a piece that is not the person's, step by step
_CALLS = 40
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CALLED = "Tools called:"
_PIECE = re.compile(
    rf'<said by="(\w+)"(?: at="\w+ (\S+)")?>\n(.*?)(?:\n?{_CALLED}.*)?\n</said>', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation so far: one text a piece, oldest first, and how many pieces went before."""

    pieces: tuple[str, ...] = ()
    dropped: int = 0

    @property
    def characters(self) -> int:
        """How long it is."""
        return sum(map(len, self.pieces))

    @property
    def end(self) -> int:
        """How many pieces there have been."""
        return self.dropped + len(self.pieces)


def extended(dialogue: Dialogue, messages: Sequence[Message]) -> Dialogue:
    """Return a conversation with what is new; too long, it loses its older half."""
    pieces = (*dialogue.pieces, *(piece for piece in map(_piece, messages) if piece))
    grown = Dialogue(pieces, dialogue.dropped)
    if grown.characters <= MOST_CHARACTERS:
        return grown
    retained: list[str] = []
    length = 0
    for piece in reversed(pieces):
        length += len(piece)
        if length > MOST_CHARACTERS // 2 and retained:
            break
        retained.append(piece)
    return Dialogue(tuple(reversed(retained)), grown.dropped + len(pieces) - len(retained))


def squeezed(pieces: Sequence[str], most: int, *, strict: bool = False) -> tuple[str, ...]:
    """Return pieces within so many bytes: those that are not the person's are cut, then dropped.

    With ``strict`` the person's are dropped as well, the oldest first.
    """
    retained = list(pieces)
    for limit in _LIMITS:
        if _length(retained) <= most:
            return tuple(retained)
        retained = [_cut_piece(piece, limit) for piece in retained]
    for piece in list(retained):
        if _length(retained) > most and (strict or not piece.startswith(_PERSON)):
            retained.remove(piece)
    return tuple(retained)


def _length(pieces: Sequence[str]) -> int:
    return sum(len(piece.encode("utf-8", "replace")) for piece in pieces)


def _cut_piece(piece: str, limit: int) -> str:
    """Return a piece with a shorter text; the person's own stays."""
    head, _, rest = piece.partition("\n")
    body = rest.removesuffix(_END)
    return piece if piece.startswith(_PERSON) else f"{head}\n{_shortened(body, limit)}{_END}"


def day_and_time(at: float) -> str:
    """Return a time with its weekday: ``Tue 2026-03-03T09:00``."""
    return f"{_DAYS[datetime.fromtimestamp(at, UTC).weekday()]} {iso_time(at)[:16]}"


def read_piece(piece: str) -> tuple[str, str, float] | None:
    """Return whose words a piece holds, the words without the tools that were called, the time."""
    match = _PIECE.fullmatch(piece)
    if match is None:
        return None
    at = datetime.fromisoformat(f"{match[2]}Z").timestamp() if match[2] else 0.0
    return match[1], match[3], at


def _piece(message: Message) -> str:
    """Return one piece with its tag, "" for one without anything to read."""
    limit = PIECE_CHARACTERS if message.origin in ("user", "assistant") else OUTPUT_CHARACTERS
    said = _TAG.sub("&lt;", _shortened(message.text.strip(), limit))
    calls = [f"- {_TAG.sub('&lt;', _shortened(call, 300))}" for call in message.calls[:_CALLS]]
    body = "\n".join(filter(None, (said, _CALLED if calls else "", *calls)))
    if not body:
        return ""
    # With its weekday, so that a model can tell which day "Friday" is.
    at = "" if message.at is None else f' at="{day_and_time(message.at)}"'
    return f'<said by="{message.origin}"{at}>\n{body}\n</said>'


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit * 2 // 3] + _CUT + text[-limit // 3 :]

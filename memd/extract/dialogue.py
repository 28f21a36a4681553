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

from memd.core.text import iso_time
from memd.core.values import Message

PIECE_CHARACTERS = 6_000
OUTPUT_CHARACTERS = 1_200  # of a tool's output: what it said matters less than that it was asked
MOST_CHARACTERS = 400_000  # some 110,000 tokens
_TAG = re.compile(r"<(?=\s*/?\s*(?:said|task))", re.IGNORECASE)
_CUT = "\n[…]\n"
_CALLS = 40
_THE_TWO = ('<said by="user"', '<said by="assistant"')


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
    def others(self) -> str:
        """What neither the person nor the assistant said, as a model is shown it."""
        return "\n".join(
            piece.partition("\n")[2] for piece in self.pieces if not piece.startswith(_THE_TWO)
        )


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


def _piece(message: Message) -> str:
    """Return one piece with its tag, "" for one without anything to read."""
    limit = PIECE_CHARACTERS if message.origin in ("user", "assistant") else OUTPUT_CHARACTERS
    said = _TAG.sub("&lt;", _shortened(message.text.strip(), limit))
    calls = [f"- {_TAG.sub('&lt;', _shortened(call, 300))}" for call in message.calls[:_CALLS]]
    body = "\n".join(filter(None, (said, "Tools called:" if calls else "", *calls)))
    if not body:
        return ""
    at = "" if message.at is None else f' at="{iso_time(message.at)[:16]}"'
    return f'<said by="{message.origin}"{at}>\n{body}\n</said>'


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit * 2 // 3] + _CUT + text[-limit // 3 :]

"""What tests of the local writer share: pieces by hand, and the grammar of its lines.

The grammar is written down here anew, not taken from the writer.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from memd.conversation.pieces import ASSISTANT, USER, RecordedCall, TranscriptPiece
from memd.notes.facts import SessionFacts

AT = 1_772_528_400.0  # 2026-03-03 09:00 UTC
LABELS = frozenset(
    re.findall(
        r"\S+",
        "last request in progress open assistant's words first requests left out read edited times"
        " passed failed running later person address after edits errors",
    )
)
_LEFT_OUT = re.compile(r"…|\[removed: [\w-]+\]")


def no_statements(_text: str, _before: str) -> tuple[Sequence[str], Sequence[str]]:
    """Find nothing."""
    return (), ()


def every_message(text: str, before: str) -> tuple[Sequence[str], Sequence[str]]:
    """Find each message to be worth saving, and each that follows an answer to be a correction."""
    return (text,), (text,) if before else ()


def facts_of(pieces: Iterable[TranscriptPiece], covers: str = "") -> SessionFacts:
    """Return the facts of pieces."""
    facts = SessionFacts(every_message, covers)
    for piece in pieces:
        facts.add(piece)
    return facts


def request(text: str, name: str = "u") -> TranscriptPiece:
    """Return a message of the person."""
    return TranscriptPiece(USER, text, USER, name, name, AT)


def reply(text: str, name: str = "a") -> TranscriptPiece:
    """Return words of the assistant."""
    return TranscriptPiece(ASSISTANT, text, ASSISTANT, name, name, AT)


def call(name: str, writes: tuple[str, ...] = (), /, **given: object) -> TranscriptPiece:
    """Return a call, whose id is ``c``; each answer of ``result`` is to the newest one."""
    made = RecordedCall("c", name, "", writes, given)
    return TranscriptPiece(ASSISTANT, origin=ASSISTANT, id="c", key="c", at=AT, call=made)


def result(text: str, *, failed: bool = False) -> TranscriptPiece:
    """Return the result of the newest call."""
    return TranscriptPiece(USER, text, id="r", at=AT, answers="c", failed="c" if failed else "")


def quotations(line: str) -> tuple[list[str], str]:
    """Return what a line quotes, and what is left of it: the labels."""
    quoted, labels, rest = [], "", line
    while opening := re.search("`+", rest):
        labels += rest[: opening.start()]
        rest = rest[opening.end() :]
        closing = next(m for m in re.finditer("`+", rest) if m.group() == opening.group())
        inner = rest[: closing.start()]
        padded = inner.startswith(" ") and inner.endswith(" ")
        quoted.append(inner[1:-1] if padded else inner)
        rest = rest[closing.end() :]
    return quoted, labels + rest


def is_quoted(quotation: str, texts: Iterable[str]) -> bool:
    """Say whether the parts of a quotation stand in one of the texts, in their order."""
    return any(_follows(_LEFT_OUT.split(quotation), " ".join(text.split())) for text in texts)


def only_labels(text: str) -> bool:
    """Say whether a text has nothing but labels, numbers and times."""
    return text.startswith("- ") and not set(re.findall(r"[^\d\s:,;-]+", text)) - LABELS


def texts_of(pieces: Iterable[TranscriptPiece]) -> list[str]:
    """Return all texts of pieces: words, names of tools, and what calls were given."""
    result: list[str] = []
    for piece in pieces:
        result.append(piece.text)
        if piece.call is not None:
            result += [piece.call.name, *_inside(piece.call.given)]
    return result


def _follows(parts: list[str], text: str) -> bool:
    position = 0
    for part in parts:
        position = text.find(part.strip(), position)
        if position < 0:
            return False
        position += len(part.strip())
    return True


def _inside(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from (*_inside(key), *_inside(member))
    elif isinstance(value, list):
        yield " ".join(item for item in value if isinstance(item, str))
        for member in value:
            yield from _inside(member)

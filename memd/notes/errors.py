"""Errors of reading and writing session notes."""

from memd.base.errors import Conflict, Refused, TooLarge
from memd.base.names import printable

FOREIGN_NOTES = "foreign_notes"


def foreign_notes(path: str) -> Refused:
    """Return the error that the notes are the client's or a person's."""
    return Refused(
        f"{printable(path)} is the client's own; nothing was written",
        kind=FOREIGN_NOTES,
        hint="move the file away to let memd keep the notes of this session",
        path=path,
    )


def notes_conflict(path: str, expected: str, actual: str) -> Conflict:
    """Return the error that the notes changed since the writer read them."""
    sentence = f"{printable(path)} was changed since it was read; nothing was written"
    return Conflict(
        sentence,
        hint="read the notes again and repeat the change on what they say now",
        path=path,
        expected=expected,
        found=actual,
    )


def notes_too_large(what: str, size: int, limit: int) -> TooLarge:
    """Return the error that the notes would be larger than allowed."""
    sentence = f"{printable(what)} would have {size} bytes; {limit} are written at most"
    return TooLarge(sentence, what=what, size=size, limit=limit)

"""What makes a line of progress. Pure."""

from memd.documents import secrets
from memd.text import invisible

_CHARACTERS = 60
_WORDS = (2, 6)
_READ_CHARACTERS = 2_000  # of what a model says; more is no line anyway
_QUOTES = "\"'`*_ \t"


def is_line(text: str) -> bool:
    """Say whether a text is a line: 2 to 6 words, at most 60 characters, an -ing form first."""
    words = text.split()
    fits = len(text) <= _CHARACTERS and _WORDS[0] <= len(words) <= _WORDS[1]
    return fits and "\n" not in text and words[0].endswith("ing")


def of_model(reply: str) -> str:
    """Return the line that a model's reply is, "" where it is none.

    Quotation marks and a full stop around it go. A line that hides characters or looks as if it
    held a credential is none.
    """
    if len(reply) > _READ_CHARACTERS:
        return ""
    line = reply.strip().strip(_QUOTES).removesuffix(".").strip(_QUOTES)
    safe = line.isprintable() and not invisible.find(line) and not set("<>") & set(line)
    return line if safe and is_line(line) and not secrets.find(line) else ""

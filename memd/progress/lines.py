"""Checks of a line of progress. Pure."""

from memd.documents import secrets
from memd.text import invisible

_CHARACTERS = 60
_WORDS = (2, 6)
_READ_CHARACTERS = 2_000  # a longer reply of a model is no line
_QUOTES = "\"'`*_ \t"


def is_line(text: str) -> bool:
    """Say whether a text is 2 to 6 words, at most 60 characters, and begins with an -ing form."""
    words = text.split()
    fits = len(text) <= _CHARACTERS and _WORDS[0] <= len(words) <= _WORDS[1]
    return fits and "\n" not in text and words[0].endswith("ing")


def of_model(reply: str) -> str:
    """Return the line in a model's reply, "" if the reply is not just a line.

    Quotation marks around it and a full stop are removed. A line with hidden characters, angle
    brackets or what looks like a credential is refused.
    """
    if len(reply) > _READ_CHARACTERS:
        return ""
    line = reply.strip().strip(_QUOTES).removesuffix(".").strip(_QUOTES)
    safe = line.isprintable() and not invisible.find(line) and not set("<>") & set(line)
    return line if safe and is_line(line) and not secrets.find(line) else ""

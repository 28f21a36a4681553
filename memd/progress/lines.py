"""Check lines of progress, and read them from a model's reply. Pure."""

from memd.store import secret
from memd.text import invisible

_CHARACTERS = 60  # the longest line
_WORDS = (2, 6)  # the least and the most
_READ_CHARACTERS = 2_000  # a longer reply of a model is not searched for a line
_QUOTES = "\"'`*_ \t"


def is_line(text: str) -> bool:
    """Return whether a text has 2 to 6 words and at most 60 characters, and begins with -ing."""
    words = text.split()
    least, most = _WORDS
    is_short = len(text) <= _CHARACTERS and least <= len(words) <= most
    return is_short and "\n" not in text and words[0].endswith("ing")


def parse_reply(reply: str) -> str:
    """Return the line in a model's reply, "" if the reply is not a single valid line.

    Quotation marks around the line and a full stop are removed. A line with invisible characters,
    angle brackets or a possible credential is not valid.
    """
    if len(reply) > _READ_CHARACTERS:
        return ""
    line = reply.strip().strip(_QUOTES).removesuffix(".").strip(_QUOTES)
    is_plain = line.isprintable() and not invisible.find(line) and "<" not in line
    is_plain = is_plain and ">" not in line
    return line if is_plain and is_line(line) and not secret.find(line) else ""

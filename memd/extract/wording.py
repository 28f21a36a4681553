"""How a person's sentence becomes a memory: name, description, body, index line. Pure.

The sentence stays word for word, but for the words that only ask to remember it; relative dates get
their day behind them, and the body ends with the quotation that it rests on.
"""

import re
from collections.abc import Container
from dataclasses import dataclass

from memd.core import limits, text
from memd.core.values import MemoryType, Pointer
from memd.documents.index import pointer_line
from memd.extract.candidates import Candidate
from memd.extract.markers import other
from memd.text.dates import resolve
from memd.text.words import words

_WORD = re.compile(r"(?<![\w'])[A-Za-z]{2,20}(?![\w'])")
_ARTICLES = frozenset({"a", "an", "the"})
_NAME_WORDS = 6
_TITLE_CHARACTERS = 50
_LEAST_WORDS = 2  # fewer say nothing about a memory
_HASH_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class WordedMemory:
    """A memory in words; ``statement`` is the first line of the body, ``quotation`` its last."""

    type: MemoryType
    name: str
    path: str
    statement: str
    description: str
    quotation: str
    pointer: Pointer

    @property
    def body(self) -> str:
        """The text below the frontmatter."""
        return f"{self.statement}\n\n{self.quotation}\n"


def word(candidate: Candidate, taken: Container[str] = ()) -> WordedMemory:
    """Return the memory of a candidate; no path of ``taken``, in folded case, is used again."""
    said = " ".join(candidate.text.split())
    plain = _stated(said)
    statement = statement_of(candidate)
    digest = text.sha256(statement.encode("utf-8", "replace"))[:_HASH_CHARACTERS]
    name = _name(plain) or f"note-{digest}"
    path = f"{candidate.type.value}_{name}.md"
    if path.casefold() in taken:
        name = f"{name}-{digest}"
        path = f"{candidate.type.value}_{name}.md"
    description = text.one_line(statement, limits.INDEX_LINE_CHARACTERS)
    return WordedMemory(
        candidate.type,
        name,
        path,
        statement,
        description,
        text.said_line(said, candidate.at),
        _pointer(path, plain, description),
    )


def statement_of(candidate: Candidate) -> str:
    """Return what a candidate says, with absolute dates."""
    return resolve(_stated(" ".join(candidate.text.split())), candidate.at)


def _stated(said: str) -> str:
    """Return a sentence without the words that only ask to remember it."""
    asking = other("asking").match(said)
    plain = said[asking.end() :].strip(" ,:") if asking else ""
    return plain[:1].upper() + plain[1:] if plain else said


def _name(said: str) -> str:
    """Return a file name of plain words, "" if there are too few: no number, no token gets in."""
    typed = [word.lower() for word in _WORD.findall(said)]
    named = [word for word in typed if word not in _ARTICLES][:_NAME_WORDS]
    return "-".join(named) if len(words(" ".join(named))) >= _LEAST_WORDS else ""


def _pointer(path: str, title: str, description: str) -> Pointer:
    title = text.one_line(title[:1].upper() + title[1:], _TITLE_CHARACTERS)
    room = limits.INDEX_LINE_CHARACTERS - len(pointer_line(path, Pointer(title, "")))
    return Pointer(title, text.one_line(description, max(room, _TITLE_CHARACTERS)))

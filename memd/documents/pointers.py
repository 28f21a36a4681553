"""The title and the hook that memd gives a memory in the index. Pure.

Rules of this file
- The title is the memory's name. Where memd has made that of the first words of the sentence, the
  title has the sentence's content words instead, so that title and hook do not say the same.
- The hook is the whole description, and is left out where it would only repeat the title.
- A line is memd's own if it says what memd writes for the memory's head, or wrote in earlier
  versions: beginnings of name and description, cut with "…". Any other line is a person's.
"""

import re
from collections.abc import Mapping
from itertools import accumulate

from memd.base.values import Pointer
from memd.documents.entries import (
    TITLE_CHARACTERS,
    IndexEntry,
    entries,
    same_words,
    with_pointer,
)
from memd.documents.wording import is_name_of_statement
from memd.text.words import words

_SHORT_SENTENCE = 60  # characters of a sentence that is its own title
_CONTENT_WORDS = 5  # of a title that is made of a sentence, and their characters
_CONTENT_CHARACTERS = 40
_NEGATIONS = frozenset({"never", "no", "not", "without", "don't"})  # among the stop words
_MORE = "\u2026"  # ends a text that was cut
_OUTSIDE = re.compile(r"\s*\(outside\)$")  # the store's mark at the end of a line

Head = tuple[str, str]  # name and description


def of_memory(name: str, description: str) -> Pointer:
    """Return the pointer of a memory by the name and the description in its head.

    Reads word lists at the first call.
    """
    title, sentence = " ".join(name.split()), " ".join(description.split())
    if sentence and is_name_of_statement(title, sentence):
        if len(sentence) <= _SHORT_SENTENCE:
            return Pointer(sentence[:1].upper() + sentence[1:], "")
        title = _content_title(sentence) or title
    elif len(title) > TITLE_CHARACTERS:
        title = _content_title(title) or title
    if same_words(title, sentence) and len(sentence) <= TITLE_CHARACTERS:
        return Pointer(sentence, "")
    return Pointer(title, sentence)


def with_followed_lines(content: bytes, heads: Mapping[str, tuple[Head, Head]]) -> bytes:
    """Return an index in which memd's lines of changed memories say what their heads now say.

    ``heads`` has each memory's head before and after, by path. Of several lines of a memory the
    first counts.
    """
    left = dict(heads)
    for entry in entries(content):
        if entry.path in left:
            pointer = _followed(entry, *left.pop(entry.path))
            if pointer is not None:
                content = with_pointer(content, entry.path, pointer)
    return content


def _followed(entry: IndexEntry, old: Head, new: Head) -> Pointer | None:
    """Return the new title and hook of an entry whose memory's head changed, ``None`` if it stays.

    What a person wrote in the line stays.
    """
    hook = _OUTSIDE.sub("", entry.hook)
    has_own_title = is_own_title(entry.title, *old)
    has_own_hook = _is_cut_of(hook, old[1]) if hook else has_own_title
    if not has_own_hook:
        return None
    wanted = of_memory(*new)
    if not has_own_title:
        pointer = Pointer(entry.title, new[1])
    elif wanted.title.casefold() == entry.title.casefold():
        pointer = Pointer(entry.title, wanted.hook)
    else:
        pointer = wanted
    return None if pointer == Pointer(entry.title, hook) else pointer


def is_own_title(title: str, name: str, description: str) -> bool:
    """Return whether memd gives this title to a memory with such a head, or did so."""
    made = of_memory(name, description).title
    return title == made or _is_cut_of(title, name) or _is_cut_of(title, description)


def _is_cut_of(words_of_line: str, text: str) -> bool:
    """Return whether some words of a line are a text, or its beginning cut with "…"."""
    line, whole = words_of_line.casefold(), " ".join(text.split()).casefold()
    is_beginning = line.endswith(_MORE) and whole.startswith(line.rstrip(_MORE).rstrip())
    return line == whole or is_beginning


def _content_title(sentence: str) -> str:
    """Return the first content words of a sentence as a title, "" if there are too few.

    If the sentence begins with just these, it has its longest content words in their order.
    """
    tokens = [token.strip("\"'`*_()[]{}<>.,:;!?\u201c\u201d") for token in sentence.split()]
    content = [
        token for token in tokens if token and (token.casefold() in _NEGATIONS or words(token))
    ]
    title = _joined(content)
    if sentence.casefold().startswith(title.casefold()):
        longest = sorted(content, key=len, reverse=True)[: _CONTENT_WORDS - 1]
        title = _joined([token for token in content if token in longest])
    is_short = len(title) <= _CONTENT_CHARACTERS and " " in title
    is_repeated = sentence.casefold().startswith(title.casefold())
    return title[:1].upper() + title[1:] if is_short and not is_repeated else ""


def _joined(content: list[str]) -> str:
    """Return the first of some words, at most so many as fit into a title."""
    lengths = accumulate(len(token) + 1 for token in content[:_CONTENT_WORDS])
    count = sum(length <= _CONTENT_CHARACTERS + 1 for length in lengths)
    return " ".join(content[:count])

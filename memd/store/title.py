"""The title and the hook that memd gives a memory in the index. Pure.

The title is the memory's name and the hook its whole description. Where memd made the name of the
sentence, the title has the sentence's content words as they are written there. The hook is left
out where it would only repeat the title.
"""

import re
from itertools import accumulate

from memd.base.values import Pointer
from memd.store.memory import NEGATIONS, name_of_statement
from memd.text.words import words

TITLE_CHARACTERS = 80
_SHORT_SENTENCE = 60  # characters of a sentence that is its own title
_CONTENT_WORDS = 5  # of a title that is made of a sentence, and their characters
_CONTENT_CHARACTERS = 40
_NO_WORD = re.compile(r"[\W_]+")


def of_memory(name: str, description: str) -> Pointer:
    """Return the pointer of a memory by the name and the description in its head.

    Reads word lists at the first call.
    """
    title, sentence = " ".join(name.split()), " ".join(description.split())
    own_name = name_of_statement(sentence) if sentence else ""
    number = title.removeprefix(f"{own_name}-")  # of several memories with the same words
    if sentence and (title == own_name or (title != number and number.isdecimal())):
        if len(sentence) <= _SHORT_SENTENCE:
            return Pointer(sentence[:1].upper() + sentence[1:], "")
        title = _content_title(sentence) or title
    elif len(title) > TITLE_CHARACTERS:
        title = _content_title(title) or title
    if same_words(title, sentence) and len(sentence) <= TITLE_CHARACTERS:
        return Pointer(sentence, "")
    return Pointer(title, sentence)


def is_own_title(title: str, name: str, description: str) -> bool:
    """Return whether memd gives this title to a memory with such a head, or did so."""
    made = of_memory(name, description).title
    return title == made or is_cut_of(title, name) or is_cut_of(title, description)


def same_words(title: str, hook: str) -> bool:
    """Return whether a title and a hook have the same words, whatever stands between these."""
    return _NO_WORD.sub(" ", title.casefold()).split() == _NO_WORD.sub(" ", hook.casefold()).split()


def is_cut_of(words_of_line: str, text: str) -> bool:
    """Return whether some words of a line are a text, or its beginning cut with "…"."""
    line, whole = words_of_line.casefold(), " ".join(text.split()).casefold()
    is_beginning = line.endswith("…") and whole.startswith(line.rstrip("…").rstrip())
    return line == whole or is_beginning


def _content_title(sentence: str) -> str:
    """Return the first content words of a sentence as a title, "" if there are too few.

    If the sentence begins with just these, it has its longest content words in their order.
    """
    tokens = [token.strip("\"'`*_()[]{}<>.,:;!?\u201c\u201d") for token in sentence.split()]
    content = [
        token for token in tokens if token and (token.casefold() in NEGATIONS or words(token))
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

"""Stem English words with PyStemmer, which is only used here.

The library is loaded with the first text: it takes a millisecond, and 0.8 MB that a daemon does not
need until somebody asks it something.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache

_WORD_BYTES = 64  # of a word that counts; the stemmer is slow on longer ones
_CACHED_STEMS = 10_000
# Vowel signs and points, which a word of these scripts has within: they are not alphanumeric.
_VOWEL_SIGNS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u08e3-\u0963\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3"
    "\u0afa-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d\u0d57-\u0d63\u0d81-\u0df3"
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u1752-\u17d3"
)
# ASCII in lower case, with spaces in place of what is no letter or digit.
_PLAIN = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))
_WORD_WITH_SIGNS = rf"[^\W_](?:[^\W_]|[{_VOWEL_SIGNS}])*"


def spaced(text: str) -> str:
    """Return a text in lower case with spaces in place of ASCII that is no letter or digit."""
    return text.translate(_PLAIN)


def analyse(text: str, stop: frozenset[str]) -> list[str]:
    """Return the stems of a text's words in lower case and in their order, without stop words.

    ``stop`` are the stop words. A word is a row of letters and digits without a break.
    """
    if text.isascii():
        all_words = spaced(text).split()
    else:
        all_words = re.findall(_WORD_WITH_SIGNS, text.lower())
        all_words = [word for word in all_words if len(word.encode()) < _WORD_BYTES]
    stem = _stem()
    return [stem(word) for word in all_words if word not in stop and len(word) < _WORD_BYTES]


@cache
def _stem() -> Callable[[str], str]:
    """Return a function that returns the stem of a word."""
    from Stemmer import Stemmer  # noqa: PLC0415 - see above

    # The library's object may not run in two threads at once, and does not: it holds the
    # interpreter's lock while it stems.
    stem: Callable[[str], str] = lru_cache(_CACHED_STEMS)(Stemmer("english", 0).stemWord)
    return stem

"""The words of a text, folded, and the short form by which two of them are the same. Pure.

Rules of this file
- Chinese, Japanese and Korean characters are words. Of other scripts a word is letters and digits,
  with the signs of names and paths within.
- The short form is without the ending that number or tense gives an English word, and without a
  last "e". It is no root: "run" and "ran" are two words.
"""

import re
from functools import lru_cache
from sys import intern

from memd.core.yielding import yield_to_requests
from memd.text.normal import normal

AT_ONCE = 2048  # characters or words between two words to whoever goes first
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{CJK}]|(?:(?![{CJK}])[^\W_])+(?:[.':/_-](?:(?![{CJK}])[^\W_])+)*")
_ENDINGS = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))
_LEAST = 3  # letters of a short form
_LETTERS = 40  # a longer word is none
_RETAINED = 8192  # short forms, some 2 MB


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, folded; a CJK character is a word."""
    if len(text) <= AT_ONCE:
        return tuple(_words(text))
    result: list[str] = []
    for line in text.splitlines():
        yield_to_requests()
        result += _words(line)
    return tuple(result)


def short(word: str) -> str:
    """Return an English word without its ending; any other one as it is."""
    return _stem(word) if len(word) <= _LETTERS else word


def _words(text: str) -> list[str]:
    folded = normal(text).casefold().replace("\u2019", "'")
    return [intern(word) for word in _WORD.findall(folded)]  # few words make up many texts


@lru_cache(_RETAINED)
def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    if not (word.isascii() and word.isalpha()) or word.endswith("ss"):
        return word
    for result, instead in _ENDINGS:
        if word.endswith(result) and len(word) - len(result) >= _LEAST:
            word = word.removesuffix(result) + instead
            break
    bare = word.rstrip("e")
    return bare if len(bare) >= _LEAST else word


# Words that deny, or that bound what is said.
QUALIFIERS = frozenset(
    words(
        "not no never none nor neither without cannot can't don't doesn't didn't isn't aren't "
        "wasn't won't wouldn't shouldn't mustn't unless except only avoid stop "
        "不 没 沒 無 无 未 别 別 勿 非 莫"
    )
)

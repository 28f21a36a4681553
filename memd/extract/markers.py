"""Which markers of ten languages a sentence has. Pure; the lists are data (``markers.toml``).

A marker is a name such as ``always`` or ``question``; which of them speak for a memory, and how
much, is trained (``scorer``), not said here.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

# What stands before the first word that says something, at most four times.
_OPENING = re.compile(
    r"(?:\W*(?:ok(?:ay)?|and|but|so|also|yes|yeah|no|nope|please|pls|again|bitte|und|also|nein|ja|por favor|y"
    r"|no|sí|et|stp|e|por favor|não|sim|per favore|и|а|да|нет|пожалуйста|fuck\w*|fuck me|hey|hi|right|well"
    r"|请|好的?|那|あと|また|それと|그리고|아)(?![^\W_])[\s,.!:;-]*){1,4}|^\W+",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_CORRECTED = ("remember", "always", "never", "future")  # lists whose words count with a typing error
_LEAST_LETTERS = 5
_NO_WORDS = frozenset({"please", "there", "their", "today", "times", "these"})  # of longer phrases
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def markers(sentence: str) -> frozenset[str]:
    """Return the names of the markers that a sentence has. Blocks at the first call."""
    plain = _corrected(_opened(sentence.replace("\u2019", "'")))
    names: set[str] = set()
    for name, pattern in _patterns().items():
        if (match := pattern.search(plain)) is not None:
            names.add(name)
            if match.start() == 0:
                names.add(f"starts:{name}")
    return frozenset(names)


def _corrected(plain: str) -> str:
    """Return a sentence with words that are one letter off a standing marker spelled right."""
    known, right = _spellings()

    def word(match: re.Match[str]) -> str:
        typed = match.group().lower()
        if typed in right or len(typed) < _LEAST_LETTERS - 1:
            return match.group()
        return next((known[form] for form in _shortened(typed) if form in known), match.group())

    return _WORD.sub(word, plain)


def _shortened(word: str) -> list[str]:
    """Return a word and what is left of it without any one letter."""
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]


@cache
def _spellings() -> tuple[Mapping[str, str], frozenset[str]]:
    """Return each marker word by its forms with a letter left out, and all words of all lists."""
    lists = _lists()
    long = {
        word
        for name in _CORRECTED
        for entry in lists[name]
        for word in _WORD.findall(entry)
        if len(word) >= _LEAST_LETTERS and word not in _NO_WORDS
    }
    known = {form: word for word in sorted(long) for form in _shortened(word)}
    every = {word.lower() for entries in lists.values() for entry in entries for word in _WORD.findall(entry)}
    return known, frozenset(every)


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {name: _pattern(entries) for name, entries in _lists().items()}


def _lists() -> dict[str, list[str]]:
    return tomllib.loads(files("memd.extract").joinpath("markers.toml").read_text("utf-8"))


def _pattern(entries: list[str]) -> re.Pattern[str]:
    """Return one pattern for a list: whole words, or any place for scripts without spaces."""
    whole = "|".join(entry for entry in entries if not _CJK.search(entry))
    anywhere = [entry for entry in entries if _CJK.search(entry)]
    words = [rf"(?<![^\W_])(?:{whole})(?![^\W_])"] if whole else []
    return re.compile("|".join([*words, *anywhere]), re.IGNORECASE)


def _opened(sentence: str) -> str:
    match = _OPENING.match(sentence)
    return sentence[match.end() :] if match and match.end() < len(sentence) else sentence

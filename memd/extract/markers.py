"""Find marker words of ten languages in a sentence. Pure; the lists are data (``markers.toml``).

A marker is a name such as ``always`` or ``question``. Their weights are trained (``scorer``).
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from memd.text.words import WIDE

_QUESTION = re.compile(r"\?(?=\W*$|\s)|\uff1f")  # not the one inside an address
_WORD = re.compile(r"[^\W\d_]+")
_EDGES = " \t\n,.!:;-*#>"  # removed at both ends of a sentence
_OPENINGS = 4  # opening words that are left out at most
_OTHER = "other"  # the table of the lists that are no markers
_CORRECTED = ("remember", "always", "never", "future")  # their words match despite a typing error
_LEAST_LETTERS = 6  # of such a word
_CJK = re.compile(f"[{WIDE}]")


def has_any(sentence: str, names: frozenset[str]) -> bool:
    """Return whether a sentence has any of these markers; faster than ``markers``."""
    plain = _normalised(sentence)
    return _joint_pattern(names, with_cjk=not plain.isascii()).search(plain) is not None


def markers(sentence: str) -> frozenset[str]:
    """Return the names of the markers that a sentence has. Blocks at the first call."""
    plain = _normalised(sentence)
    names: set[str] = set()
    for name, pattern in _patterns().items():
        if (match := pattern.search(plain)) is not None:
            names.add(name)
            if match.start() == 0:
                names.add(f"starts:{name}")
    return frozenset(names)


def _normalised(sentence: str) -> str:
    """Return a sentence in lower case, as the lists are, without its opening words.

    Words with one wrong letter are corrected if they then are a word of some lists.
    """
    opened = _without_opening(sentence.replace("\u2019", "'"))
    return _WORD.sub(lambda match: _corrected(match.group()), opened.lower())


@lru_cache(maxsize=4_096)  # most words occur again
def _corrected(typed: str) -> str:
    """Return the marker word that a word misspells by one letter, or the word itself."""
    words_by_form, correct = _correct_spellings()
    if typed in correct or len(typed) < _LEAST_LETTERS - 1:  # one letter may be missing
        return typed
    # Two words that differ by one letter have a form in common.
    near = (words_by_form[form] for form in _deletion_forms(typed) if form in words_by_form)
    return next((word for word in near if word[0] == typed[0]), typed)


def _deletion_forms(word: str) -> list[str]:
    """Return a word, and the word without each one of its letters."""
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]


@cache
def _correct_spellings() -> tuple[Mapping[str, str], frozenset[str]]:
    """Return each long marker word by its shortened forms, and all words of all lists."""
    lists = _marker_lists()
    long = {
        word
        for name in _CORRECTED
        for entry in lists[name]
        for word in _WORD.findall(entry)
        if len(word) >= _LEAST_LETTERS
    }
    words_by_form = {form: word for word in sorted(long) for form in _deletion_forms(word)}
    all_words = {
        word.lower()
        for entries in lists.values()
        for entry in entries
        for word in _WORD.findall(entry)
    }
    return words_by_form, frozenset(all_words)


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Return the pattern of each marker."""
    return {name: re.compile(_list_pattern(entries)) for name, entries in _marker_lists().items()}


@cache
def _joint_pattern(names: frozenset[str], *, with_cjk: bool) -> re.Pattern[str]:
    """Return one pattern for several markers, only ``with_cjk`` also with their CJK words."""
    entries = (entry for name in sorted(names) for entry in _marker_lists()[name])
    return re.compile(_list_pattern([e for e in entries if with_cjk or not _CJK.search(e)]))


def without(sentence: str, names: frozenset[str]) -> str:
    """Return a sentence in lower case without the words of these markers."""
    return _joint_pattern(names, with_cjk=True).sub(" ", _normalised(sentence))


def without_request(line: str) -> str:
    """Return a line without words that only ask to remember it, as "remember that …".

    A line of nothing else stays as it is.
    """
    request = other_list("asking").match(line)
    rest = line[request.end() :].strip(" ,:") if request else line
    behind = _request_behind_pattern().search(rest)
    if behind:
        rest = f"{rest[: behind.start()]}{behind[1]}"
    is_changed = bool(request or behind) and rest.strip(".!\u3002\uff01 ")
    return rest[:1].upper() + rest[1:] if is_changed else line


@cache
def _request_behind_pattern() -> re.Pattern[str]:
    """Return the pattern of a final ", remember that."; group 1 is the mark at the end."""
    requests = other_list("asked_behind").pattern
    mark = r"([.!\u3002\uff01]?)"
    return re.compile(rf"\s*[,;\uff0c\u2014\u2013]\s*(?:{requests})\s*{mark}$", re.IGNORECASE)


def is_question(plain: str) -> bool:
    """Return whether a sentence asks something; a final "…, ok?" does not count."""
    nod = _nod_pattern().search(plain.rstrip(" ?\uff1f!.\"')"))
    without_nod = plain[: nod.start()] if nod else plain
    return _QUESTION.search(without_nod) is not None


@cache
def _nod_pattern() -> re.Pattern[str]:
    """Return the pattern of a final "…, ok?", which asks for agreement."""
    return re.compile(rf"[\s,\uff0c\u3001](?:{other_list('nod').pattern})$", re.IGNORECASE)


@cache
def other_list(name: str) -> re.Pattern[str]:
    """Return the pattern of another list: opening, asking, nod, denial, change or correction."""
    return re.compile(_list_pattern(_read_tables()[_OTHER][name]), re.IGNORECASE)


@cache
def _read_tables() -> dict[str, Any]:
    """Return the lists of ``markers.toml``, read once."""
    return tomllib.loads(files("memd.extract").joinpath("markers.toml").read_text("utf-8"))


def _marker_lists() -> dict[str, list[str]]:
    """Return the words of each marker, as patterns."""
    return {name: entries for name, entries in _read_tables().items() if name != _OTHER}


def _list_pattern(entries: list[str]) -> str:
    """Return one pattern for a list; only CJK entries match within a word."""
    cjk_entries = [entry for entry in entries if _CJK.search(entry)]
    words = "|".join(entry for entry in entries if not _CJK.search(entry))
    whole_words = [rf"(?<![^\W_])(?:{words})(?![^\W_])"] if words else []
    return "|".join([*whole_words, *cjk_entries])


def _without_opening(sentence: str) -> str:
    """Return a sentence without up to four opening words such as "well" or "so".

    The last one stays if nothing else would be left.
    """
    plain = sentence.strip(_EDGES)
    for _ in range(_OPENINGS):
        opening = other_list("opening").match(plain)
        if opening is None or opening.end() == len(plain):
            break
        plain = plain[opening.end() :].lstrip(_EDGES)
    return plain

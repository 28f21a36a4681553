"""Find marker words of ten languages in a sentence. Pure; the lists are data (``markers.toml``).

A marker is a name such as ``always`` or ``question``.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from memd.base.package_files import read_text
from memd.text.words import WIDE

_QUESTION = re.compile(r"\?(?=\W*$|\s)|\uff1f")  # not the one inside an address
_EDGES = " \t\n,.!:;-*#>"  # removed at both ends of a sentence
_OTHER = "other"  # the table of the lists that are no markers
_CJK = f"[{WIDE}]"  # compiled by ``re`` at the first use: so large a set takes long


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
    """Return a sentence in lower case, as the lists are."""
    return sentence.replace("\u2019", "'").strip(_EDGES).lower()


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Return the pattern of each marker."""
    return {name: re.compile(_list_pattern(entries)) for name, entries in _marker_lists().items()}


@cache
def _joint_pattern(names: frozenset[str], *, with_cjk: bool) -> re.Pattern[str]:
    """Return one pattern for several markers, only ``with_cjk`` also with their CJK words."""
    entries = (entry for name in sorted(names) for entry in _marker_lists()[name])
    return re.compile(_list_pattern([e for e in entries if with_cjk or not re.search(_CJK, e)]))


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
    """Return the pattern of another list, such as asking, nod, denial or correction."""
    return re.compile(_list_pattern(_read_tables()[_OTHER][name]), re.IGNORECASE)


@cache
def _read_tables() -> dict[str, Any]:
    """Return the lists of ``markers.toml``, read once."""
    return tomllib.loads(read_text("extract/markers.toml"))


def _marker_lists() -> dict[str, list[str]]:
    """Return the words of each marker, as patterns."""
    return {name: entries for name, entries in _read_tables().items() if name != _OTHER}


def _list_pattern(entries: list[str]) -> str:
    """Return one pattern for a list; only CJK entries match within a word."""
    cjk_entries = [entry for entry in entries if re.search(_CJK, entry)]
    words = "|".join(entry for entry in entries if not re.search(_CJK, entry))
    whole_words = [rf"(?<![^\W_])(?:{words})(?![^\W_])"] if words else []
    return "|".join([*whole_words, *cjk_entries])

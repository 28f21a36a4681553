"""Split text into the stemmed words that search counts and comparisons use.

Stop words, stems and the spelling of dates pay most when measured (docs/recall.md).

Rules of this file
- The same text gives the same words, in the text's order, whatever was asked before.
- A code identifier gives its parts at its place and, behind all other words, itself as a whole. So
  both ``user_service`` and ``service`` find it, and pairs of words stay neighbours.
- Chinese, Japanese and Korean have no reliable spaces: each pair of neighbouring characters is a
  word, and characters that only carry grammar separate.
- All functions may read a word list on first use: call them from a worker thread.
"""

import re
from collections.abc import Iterator
from functools import cache

import msgspec
from msgspec import Struct

from memd.base import limits
from memd.base.package_files import read_text
from memd.text import stems
from memd.text.normal import normal

ANALYSIS = 7  # raised whenever ``words`` gives other words: what was indexed by them is old

# Han, half of the marks between, Katakana, Hangul; Hiragana is grammar and separates.
_CJK = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u30a1-\u30fa\u30fc\uac00-\ud7af\U00020000-\U0003ffff"
)
# All characters of scripts without spaces between words, those that only carry grammar included.
WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_RUN = f"[{_CJK}]+"
_HIRAGANA = "[\u3041-\u309f]+"
_SEVERAL_CJK_WORDS = 4  # characters that are as long as several words
_CJK_GRAMMAR = (
    "[的了是在我你您他她它们吗呢吧啊呀嘛和就都而及与也很把被这那哪什么怎谁之其着过会个请]+"
)
# The second part of camelCase begins; a lone first letter (iPad, gRPC) is no part. Like the next
# one it starts with a set of characters, for which the regex engine looks quickly.
_CAMEL_PART = re.compile(r"[A-Z](?:(?<=[a-z0-9]{2}[A-Z])|(?<=[A-Z]{2})(?=[a-z]))")
# A place inside a path, a dotted name, snake_case or camelCase.
_INSIDE_NAME = re.compile(
    r"[A-Z._/](?:(?<=\w[._/])(?=\w)|(?<=[a-z0-9]{2}[A-Z])|(?<=[A-Z]{2})(?=[a-z]))"
)
_EDGES = "()[]{}<>'\"`,;:!?.~/_-*#|=\u201c\u201d\u2018\u2019\u3002\uff0c"  # no part of a name

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MAY = "maymonth"  # told from the verb, which is a stop word
_MAY_MONTH = re.compile(r"(?<=[a-z0-9,] )May\b")  # a month: capitalised and not opening a sentence
_NAMES = "|".join((*MONTHS, *(name[:3] for name in MONTHS), "sept"))
_YEAR = r"(?:19|20)\d\d"
_YEAR_LAST = re.compile(rf" {_YEAR}(?![-/.]?\d)")  # only then the slower half of the next is needed
# The alternatives stand behind the year, so that the regex engine only looks at each 1 and 2.
_YEAR_FIRST = re.compile(
    r"(?P<y>(?:19|20)(?<!\d\d\d)\d\d)(?:"
    r"[-/.](?P<m1>0?[1-9]|1[0-2])[-/.](?P<d1>0?[1-9]|[12]\d|3[01])(?!\d)"
    r"|\s?年\s?(?P<m2>1[0-2]|0?[1-9])\s?月\s?(?P<d2>[12]\d|3[01]|0?[1-9])\s?[日号])"
)
_YEAR_BEHIND = (
    rf"(?i)\b(?P<m3>{_NAMES})\.?\s+(?P<d3>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?,?\s+(?P<y3>{_YEAR})\b"
    rf"|\b(?P<d4>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m4>{_NAMES})\.?,?\s+(?P<y4>{_YEAR})\b"
)


def words(text: str) -> list[str]:
    """Return the words of a text that are worth counting: stemmed, without stop words.

    First the running text in its order, then whole identifiers and paths in lower case.
    """
    running = _prepare(text)
    names = [token.strip(_EDGES).lower() for token in _identifiers(running)]
    if names:
        running = _CAMEL_PART.sub(r" \g<0>", running)
    irregular = stemmed_lists().irregular
    running_stems = stems.analyse(running, _stop_words())
    return [*map(irregular.get, running_stems, running_stems), *filter(None, names)]


def search_text(path: str, name: str, description: str, type_: str, body: str) -> tuple[str, int]:
    """Return the words of a memory as the ranker reads them, and the length of their first part.

    Each word has a space before and behind it. The first part is the words of the description and
    the name; then follow those of the type, the path and the body.
    """
    heading = words(f"{description}\n{name}")
    others = words(f"{type_}\n{path}\n{body[: limits.MEMORY_BYTES]}")
    first_part = "".join(f"{word} " for word in heading)
    return f" {first_part}{''.join(f'{word} ' for word in others)}", len(first_part)


class StemmedLists(Struct, frozen=True):
    """The lists of ``english`` in stems (``tools/stems.py``), since a first prompt waits for them.

    ``groups`` have phrases of one meaning, and ``places`` the numbers of the groups by each phrase
    that has the others as synonyms. ``irregular`` has plain words by irregular forms.
    """

    groups: list[list[str]]
    places: dict[str, list[int]]
    common: frozenset[str]
    irregular: dict[str, str]


@cache
def stemmed_lists() -> StemmedLists:
    """Return the lists in stems, as ``words`` gives them; blocks."""
    return msgspec.json.decode(list_text("stems.json"), type=StemmedLists)


def count(text: str) -> int:
    """Return how many words a text has; four CJK characters or more count as two at least."""
    spaced_words = len(text.split())
    if text.isascii():
        return spaced_words
    runs = [*re.findall(_CJK_RUN, text), *re.findall(_HIRAGANA, text)]
    if sum(len(run) for run in runs) >= _SEVERAL_CJK_WORDS:
        return max(spaced_words, 2)
    return spaced_words


def has_cjk(text: str) -> bool:
    """Return whether a text has Chinese, Japanese or Korean characters."""
    return not text.isascii() and re.search(_CJK_RUN, text) is not None


def word_list(name: str) -> list[str]:
    """Return the items of one of the lists in the folder ``english``; blocks."""
    return list_text(name).split()


def list_text(name: str) -> str:
    """Return the text of one of the lists in the folder ``english``; blocks."""
    return read_text(f"text/english/{name}")


def _prepare(text: str) -> str:
    """Return a text in one line, with dates spelled alike and pairs in place of CJK characters."""
    is_ascii = text.isascii()
    if not is_ascii:
        text = text.encode(errors="replace").decode()  # a lone surrogate is no text
        text = normal(text).replace("\u2019", "'")
    text = " ".join(text.split())
    if _YEAR_LAST.search(text):
        text = re.sub(_YEAR_BEHIND, _spelled_date, text)
    text = _YEAR_FIRST.sub(_spelled_date, text)
    if " May" in text:
        text = _MAY_MONTH.sub(MAY, text)
    if not is_ascii:
        text = re.sub(_CJK_RUN, _as_pairs, re.sub(_HIRAGANA, " ", text))
        text = " ".join(text.split())
    return text


def _identifiers(text: str) -> Iterator[str]:
    """Yield the tokens of a line that are paths or names of code."""
    end = 0  # of the last token that was yielded
    for match in _INSIDE_NAME.finditer(text):
        if match.start() >= end:
            start = text.rfind(" ", 0, match.start()) + 1
            space = text.find(" ", match.end())
            end = len(text) if space < 0 else space
            yield text[start:end]


def _as_pairs(match: re.Match[str]) -> str:
    """Return a run of CJK characters as pairs with spaces around them."""
    return f" {' '.join(_pairs(match.group()))} "


def _pairs(run: str) -> Iterator[str]:
    """Yield the pairs of neighbouring characters of a CJK run, and lone ones; grammar separates."""
    for piece in re.split(_CJK_GRAMMAR, run):
        if len(piece) == 1:
            yield piece
        yield from (piece[at : at + 2] for at in range(len(piece) - 1))


def _spelled_date(match: re.Match[str]) -> str:
    """Return a full date as year, month in words, day."""
    # The groups are named y, m and d, most with the number of their alternative behind it.
    groups = match.groupdict().items()
    parts = {name[0]: value for name, value in groups if value is not None}
    month = parts["m"].lower()
    name = MONTHS[int(month) - 1] if month.isdigit() else _full_month(month)
    return f"{parts['y']} {MAY if name == 'may' else name} {int(parts['d'])}"


def _full_month(abbreviation: str) -> str:
    """Return the full name of a month from its beginning."""
    return next(month for month in MONTHS if month.startswith(abbreviation[:3]))


@cache
def _stop_words() -> frozenset[str]:
    """Return the stop words, with all single letters."""
    # Abbreviations and contractions leave single letters.
    return frozenset((*word_list("stop.txt"), *"abcdefghijklmnopqrstuvwxyz"))

"""Who said what in a conversation, and whether a text can be proven by it. Pure.

Rules of this file
- Texts are compared word by word: white space, case, quotation marks and typographic signs do not
  matter. A Chinese, Japanese or Korean character counts as a word, and as two thirds of one where
  words are counted.
- The person's words are their messages without what was pasted or quoted at length. Output of
  tools, pasted blocks, names of files, memories that are there and whatever a run was shown are
  others' words.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from memd.core.yielding import yield_to_requests
from memd.text import dates
from memd.text.normal import normal
from memd.text.words import WIDE

_WORD_WEIGHT = 3  # of a word; a Chinese, Japanese or Korean character weighs two
_RUN = 8 * _WORD_WEIGHT  # words in a row that two texts hardly share by chance
_LINE = 4 * _WORD_WEIGHT  # words of a line that is repeated whole
_HALF = 4  # words of a short quotation that have to be shared
_LETTERS, _WORDS = 8, 2  # that a quotation has at least: "ok" and "do it" prove nothing
_NEAR = timedelta(days=45)  # of the conversation: a relative date that was made absolute
_SMALL = 32  # a count below it may have been given in words
_WORD = re.compile(f"[{WIDE}]|[^\\W_{WIDE}]+")
_WIDE = re.compile(f"[{WIDE}]")
_YEAR = re.compile(r"\d{4}\b")
_TOKEN = re.compile(r"[^\s/,;()\[\]{}<>|=\"'`*\u2018-\u201f\u3001\u3002\uff0c]+")
_EXACT = re.compile(r"\d|[a-z][A-Z]|@|[^\W\d_]{2}\.[^\W\d_]{2}|\w_\w")
_DASHED = re.compile(r"\d-|-\d")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
# Only English tells a name inside a sentence by its capital; German writes every noun so.
_ENGLISH = re.compile(r"\b(?:the|is|are|of|to|and|with|for|in)\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_CALENDAR = re.compile(
    "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|(?:Janu|Febru)ary|March|April|May|June|July"
    "|August|(?:Septem|Octo|Novem|Decem)ber"
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """What the person said in one message; ``at`` is seconds since 1970, 0 where it is unknown."""

    text: str
    at: float = 0.0


@dataclass(frozen=True)
class Talk:
    """The words of the person, of the assistant, and of all others as far as they are known.

    ``agents`` are those of other agents' messages; nobody else's words count as theirs.
    """

    person: Sequence[Utterance]
    assistant: str = ""
    outside: str = ""
    agents: str = ""

    def quoted(self, quotation: str) -> Utterance | None:
        """Return the last message in which the person said this; ``None`` for too few words."""
        words = _words(quotation)
        letters = sum(2 if _WIDE.match(word) else len(word) for word in words)
        if len(words) < _WORDS or letters < _LETTERS:
            return None
        row = _row(words)
        texts = zip(reversed(self.person), reversed(self._own), strict=True)
        return next((said for said, text in texts if row in text), None)

    def nearest(self, quotation: str) -> Utterance | None:
        """Return the person's line that has most of a quotation's words, if it has half of them."""
        wanted = set(_words(quotation))
        lines = [Utterance(line, said.at) for said in self.person for line in said.text.split("\n")]
        shares = [(len(wanted & set(_words(line.text))), line) for line in lines]
        most, line = max(shares, key=lambda share: share[0], default=(0, None))
        return line if 2 * most >= max(len(wanted), _HALF) else None

    def repeats(self, lines: Iterable[str], exempt: str) -> bool:
        """Return whether lines say eight words in a row, or a line whole, as others said them.

        What the person said as well repeats nobody, nor does what stands in the ``exempt`` text.
        """
        own = (*self._own, _row(_words(exempt)))
        for words in map(_words, lines):
            yield_to_requests()
            if _LINE <= sum(map(_weight, words)) < _RUN:
                repeated = [_row(words)] if _row(words) in self._others else []
            else:
                repeated = [run for run in map(_row, _runs(words)) if hash(run) in self._foreign]
            if any(not any(run in text for text in own) for run in repeated):
                return True
        return False

    def unknown(self, lines: Iterable[str], exempt: str) -> tuple[str, bool]:
        """Return a number, name, date or address that nobody gave, "" where there is none.

        The second value says whether one was given by others alone.
        """
        own = "\0".join((*self._own, self._reply, _row(_words(exempt))))
        given = (part for line in lines for part in _particulars(line))
        strange = [
            part for part in given if _row(_words(part)) not in own and not self._is_day(part, own)
        ]
        missing = (part for part in strange if _row(_words(part)) not in self._others)
        return next(missing, ""), bool(strange)

    @cached_property
    def _own(self) -> tuple[str, ...]:
        return tuple(_row(_words(said.text)) for said in self.person)

    @cached_property
    def _reply(self) -> str:
        return _row(_words(self.assistant))

    @cached_property
    def _others(self) -> str:
        return _row(_words(f"{self.outside}\n{self.agents}"))

    @cached_property
    def _foreign(self) -> frozenset[int]:
        """The runs of eight words of others, by their hashes."""
        return frozenset(hash(_row(run)) for run in _runs(_words(f"{self.outside}\n{self.agents}")))

    @cached_property
    def _resolved(self) -> str:
        """The person's words with a date behind each relative one; takes a moment."""
        texts = (dates.resolve(said.text, said.at) for said in self.person if said.at)
        return _row(_words("\n".join(texts)))

    def _is_day(self, text: str, own: str) -> bool:
        """Return whether a date is near the conversation, or was named in other words."""
        if not _YEAR.match(text):
            return False
        known = [datetime.fromtimestamp(said.at, UTC).date() for said in self.person if said.at]
        if any(text == str(day.year) for day in known):
            return True
        with suppress(ValueError, TypeError):
            day = date.fromisoformat(text)
            named = f" {day.day} " in own and (f" {day.month} " in own or f" {day.year} " in own)
            if named or any(abs(day - other) <= _NEAR for other in known):
                return True
        return _row(_words(text)) in self._resolved


def _particulars(line: str) -> Iterator[str]:
    """Yield the numbers, names, dates and addresses of a line."""
    for match in _TOKEN.finditer(line):
        token = match.group().strip(".:!?-#~\u2026")
        # "NixOS-based" is a name and a word, 2026-03-05 is one date.
        for part in (token,) if _DASHED.search(token) else token.split("-"):
            plain = ordinal[1] if (ordinal := _ORDINAL.fullmatch(part)) else part
            if _EXACT.search(plain) and not (plain.isdecimal() and int(plain) < _SMALL):
                yield plain
    if _ENGLISH.search(line):
        names = (match.group() for match in _NAME.finditer(line))
        yield from (name for name in names if not _CALENDAR.fullmatch(name))


def _runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield each stretch of eight words."""
    start = weight = 0
    for end, word in enumerate(words, 1):
        weight += _weight(word)
        while weight - _weight(words[start]) >= _RUN:
            weight -= _weight(words[start])
            start += 1
        if weight >= _RUN:
            yield words[start:end]


def _weight(word: str) -> int:
    return 2 if _WIDE.match(word) else _WORD_WEIGHT


def _words(text: str) -> list[str]:
    return _WORD.findall(normal(text.encode("utf-8", "replace").decode()).casefold())


def _row(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "

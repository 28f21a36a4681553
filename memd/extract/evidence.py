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
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from memd.text import dates
from memd.text.normal import normal

_RUN = 8.0  # words in a row that two texts hardly share by chance
_LINE = 4.0  # words of a line that is repeated whole
_LETTERS, _WORDS = 8, 2  # that a quotation has at least: "ok" and "do it" prove nothing
_NEAR = timedelta(days=45)  # of the conversation: a relative date that was made absolute
_SMALL = 32  # a count below it may have been given in words
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(f"[{_CJK}]|[^\\W_{_CJK}]+")
_WIDE = re.compile(f"[{_CJK}]")
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TOKEN = re.compile(r"[^\s/,;()\[\]{}<>|=\"'`*\u2018-\u201f\u3001\u3002\uff0c]+")
_EXACT = re.compile(r"\d|[a-z][A-Z]|@|[^\W\d_]{2}\.[^\W\d_]{2}|\w_\w")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
# Only English tells a name inside a sentence by its capital; German writes every noun so.
_ENGLISH = re.compile(r"\b(?:the|is|are|of|to|and|with|for|in)\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_CALENDAR = frozenset(
    [
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "jan",
        "feb",
        "mar",
        "apr",
        "may",
        "jun",
        "jul",
        "aug",
        "sep",
        "oct",
        "nov",
        "dec",
    ]
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """What the person said in one message; ``at`` is seconds since 1970, 0 where it is unknown."""

    text: str
    at: float = 0.0


@dataclass(frozen=True)
class Talk:
    """The words of the person, of the assistant, and of all others as far as they are known."""

    person: Sequence[Utterance]
    assistant: str = ""
    outside: str = ""

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
        return line if 2 * most >= max(len(wanted), _LINE) else None

    def repeats(self, lines: Iterable[str], exempt: str, seen: str) -> bool:
        """Return whether lines say eight words in a row, or a line whole, as others said them.

        ``seen`` is what a run was shown. What the person said as well repeats nobody, nor does
        what stands in the ``exempt`` text.
        """
        others, own = self._others + _row(_words(seen)), (*self._own, _row(_words(exempt)))
        runs = (_row(run) for line in lines for run in _runs(_words(line)))
        return any(run in others and not any(run in text for text in own) for run in runs)

    def unknown(self, lines: Iterable[str], exempt: str, seen: str) -> tuple[str, bool]:
        """Return a number, name, date or address that nobody gave, "" where there is none.

        The second value says whether one was given by others alone.
        """
        own = "\0".join((*self._own, self._reply, self._resolved, _row(_words(exempt))))
        others = self._others + _row(_words(seen))
        outside = False
        for particular in (particular for line in lines for particular in _particulars(line)):
            row = _row(_words(particular))
            if row in own or self._is_day(particular, own):
                continue
            if row not in others:
                return particular, outside
            outside = True
        return "", outside

    @cached_property
    def _own(self) -> tuple[str, ...]:
        return tuple(_row(_words(said.text)) for said in self.person)

    @cached_property
    def _reply(self) -> str:
        return _row(_words(self.assistant))

    @cached_property
    def _others(self) -> str:
        return _row(_words(self.outside))

    @cached_property
    def _resolved(self) -> str:
        """The conversation with a date behind each relative one."""
        texts = [dates.resolve(said.text, said.at) for said in self.person if said.at]
        last = max((said.at for said in self.person), default=0.0)
        return _row(_words("\n".join((*texts, dates.resolve(self.assistant, last)))))

    def _is_day(self, text: str, own: str) -> bool:
        """Return whether a date is near the conversation, or was named in other digits."""
        known = [datetime.fromtimestamp(said.at, UTC).date() for said in self.person if said.at]
        match = _ISO.fullmatch(text)
        if match is None:
            return text in {str(day.year) for day in known}
        try:
            day = date(*map(int, match.groups()))
        except ValueError:
            return False
        named = f" {day.day} " in own and (f" {day.month} " in own or f" {day.year} " in own)
        return named or any(abs(day - other) <= _NEAR for other in known)


def _particulars(line: str) -> Iterator[str]:
    """Yield the numbers, names, dates and addresses of a line."""
    for match in _TOKEN.finditer(line):
        token = match.group().strip(".:!?-#~\u2026")
        plain = ordinal[1] if (ordinal := _ORDINAL.fullmatch(token)) else token
        if _EXACT.search(plain) and not (plain.isdecimal() and int(plain) < _SMALL):
            yield plain
    if _ENGLISH.search(line):
        names = (match.group() for match in _NAME.finditer(line))
        yield from (name for name in names if name[:3].lower() not in _CALENDAR)


def _runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield each stretch of eight words, or the whole where it is a shorter line."""
    weights = [2 / 3 if _WIDE.match(word) else 1.0 for word in words]
    if _LINE <= sum(weights) < _RUN:
        yield words
    start, weight = 0, 0.0
    for end, more in enumerate(weights, 1):
        weight += more
        while weight - weights[start] >= _RUN:
            weight -= weights[start]
            start += 1
        if weight >= _RUN:
            yield words[start:end]


def _words(text: str) -> list[str]:
    return _WORD.findall(normal(text.encode("utf-8", "replace").decode()).casefold())


def _row(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "

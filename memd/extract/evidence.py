"""Find texts in a conversation: who said them, and whether they repeat what others said. Pure.

A run here is eight words in a row.

Rules of this file
- Texts are compared word by word, without white space, case, quotation marks and typographic
  signs. A Chinese, Japanese or Korean character is a word, and counts as two thirds of one.
- The person's words are their messages without pasted text and long quotations. Output of tools,
  pasted blocks, file names, memories and all else that a run was shown are others' words.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from msgspec import Struct

from memd.base.yielding import yield_to_requests
from memd.text.normal import normal
from memd.text.words import WIDE

_WORD_WEIGHT = 3  # of a word; a Chinese, Japanese or Korean character weighs two
_RUN_WEIGHT = 8 * _WORD_WEIGHT  # words in a row that two texts hardly share by chance
_LINE_WEIGHT = 4 * _WORD_WEIGHT  # of the shortest line that counts if it is repeated whole
_LEAST_COUNTED = 4  # a quotation of fewer words counts as one of so many
_LEAST_LETTERS, _LEAST_WORDS = 8, 2  # of a quotation: "ok" and "do it" prove nothing
_NEAR = timedelta(days=45)  # a date so near the conversation may stand for "tomorrow"
_SMALL_NUMBER = 32  # a smaller number may have been written as a word
# Compiled by ``re`` at the first use: these large sets of characters take long.
_WORD = f"[{WIDE}]|[^\\W_{WIDE}]+"
_WIDE = f"[{WIDE}]"
_YEAR = re.compile(r"\d{4}\b")
_TOKEN = re.compile(r"[^\s/,;()\[\]{}<>|=\"'`*\u2018-\u201f\u3001\u3002\uff0c]+")
# Signs of a number, a name or an address: a digit, camelCase, "@", a dot or "_" within a word.
_EXACT = re.compile(r"\d|[a-z][A-Z]|@|[^\W\d_]{2}\.[^\W\d_]{2}|\w_\w")
_DASHED = re.compile(r"\d-|-\d")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
# Capitals mark names only in English; German writes every noun with one.
_ENGLISH = re.compile(r"\b(?:the|is|are|of|to|and|with|for|in)\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_CALENDAR = re.compile(
    "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|(?:Janu|Febru)ary|March|April|May|June|July"
    "|August|(?:Septem|Octo|Novem|Decem)ber"
)


class Utterance(Struct, frozen=True):
    """The person's words in one message; ``at`` is in seconds since 1970, 0 if unknown."""

    text: str
    at: float = 0.0


class Talk(Struct, frozen=True, dict=True):
    """The words of the person, the assistant and all others in a conversation.

    ``agents`` are messages of other agents, ``outside`` all other texts.
    """

    person: Sequence[Utterance]
    assistant: str = ""
    outside: str = ""
    agents: str = ""

    def quoted(self, quotation: str) -> Utterance | None:
        """Return the person's last message that contains a quotation, ``None`` if none does.

        The result is ``None`` also for a quotation that is too short.
        """
        words = _words(quotation)
        letters = sum(2 if re.match(_WIDE, word) else len(word) for word in words)
        if len(words) < _LEAST_WORDS or letters < _LEAST_LETTERS:
            return None
        quoted_row = _as_row(words)
        latest_first = zip(reversed(self.person), reversed(self._own_rows), strict=True)
        return next((message for message, row in latest_first if quoted_row in row), None)

    def nearest(self, quotation: str) -> Utterance | None:
        """Return the person's line with most of a quotation's words.

        The result is ``None`` if that line has fewer than half of them, or fewer than two.
        """
        words = set(_words(quotation))
        lines = [
            Utterance(line, message.at)
            for message in self.person
            for line in message.text.split("\n")
        ]
        counted = [(len(words & set(_words(line.text))), line) for line in lines]
        common_words, line = max(counted, key=lambda pair: pair[0], default=(0, None))
        return line if 2 * common_words >= max(len(words), _LEAST_COUNTED) else None

    def repeats(self, lines: Iterable[str], exempt: str) -> bool:
        """Return whether a line repeats eight words in a row, or a whole short line, of others.

        Words that the person said too or that are in the text ``exempt`` do not count.
        """
        own_rows = (*self._own_rows, _as_row(_words(exempt)))
        for line in lines:
            yield_to_requests()
            for repeated in self._rows_of_others(_words(line)):
                if not any(repeated in own for own in own_rows):
                    return True
        return False

    def _rows_of_others(self, words: Sequence[str]) -> list[str]:
        """Return the parts of a line that others' texts have: a short line whole, or runs of it."""
        weight = sum(map(_weight, words))
        if _LINE_WEIGHT <= weight < _RUN_WEIGHT:
            row = _as_row(words)
            return [row] if row in self._others_row else []
        rows = map(_as_row, _runs(words))
        return [row for row in rows if hash(row) in self._foreign_run_hashes]

    def unknown(self, lines: Iterable[str], exempt: str) -> tuple[str, bool]:
        """Return the first number, name, date or address that nobody said, "" for none.

        The second value says whether the person and the assistant did not say one of them.
        """
        own_rows = (*self._own_rows, self._assistant_row, _as_row(_words(exempt)))
        own = "\0".join(own_rows)  # no row reaches over a zero
        details = (detail for line in lines for detail in _details(line))
        foreign = [
            detail
            for detail in details
            if _as_row(_words(detail)) not in own and not self._is_known_date(detail, own)
        ]
        others = self._others_row if foreign else ""
        missing = (detail for detail in foreign if _as_row(_words(detail)) not in others)
        return next(missing, ""), bool(foreign)

    @cached_property
    def _own_rows(self) -> tuple[str, ...]:
        """The words of each of the person's messages, as one text each."""
        return tuple(_as_row(_words(message.text)) for message in self.person)

    @cached_property
    def _assistant_row(self) -> str:
        """The assistant's words."""
        return _as_row(_words(self.assistant))

    @cached_property
    def _others_row(self) -> str:
        """The words of all others."""
        return _as_row(_words(f"{self.outside}\n{self.agents}"))

    @cached_property
    def _foreign_run_hashes(self) -> frozenset[int]:
        """The hashes of all runs of eight words in others' texts."""
        others_words = _words(f"{self.outside}\n{self.agents}")
        return frozenset(hash(_as_row(run)) for run in _runs(others_words))

    def _is_known_date(self, text: str, own: str) -> bool:
        """Return whether a date is near the conversation, or was said with other signs.

        ``own`` is a row with the words of the person and the assistant.
        """
        if not _YEAR.match(text):
            return False
        days_of_talk = [
            datetime.fromtimestamp(message.at, UTC).date() for message in self.person if message.at
        ]
        if any(text == str(day.year) for day in days_of_talk):
            return True
        with suppress(ValueError, TypeError):  # it is no date
            date_said = date.fromisoformat(text)
            day, month, year = (f" {n} " for n in (date_said.day, date_said.month, date_said.year))
            was_said = day in own and (month in own or year in own)
            if was_said or any(abs(date_said - other) <= _NEAR for other in days_of_talk):
                return True
        return False


def _details(line: str) -> Iterator[str]:
    """Yield the numbers, names, dates and addresses of a line."""
    for match in _TOKEN.finditer(line):
        token = match.group().strip(".:!?-#~\u2026")
        # "NixOS-based" is a name and a word, 2026-03-05 is one date.
        parts = [token] if _DASHED.search(token) else token.split("-")
        for part in parts:
            ordinal = _ORDINAL.fullmatch(part)
            plain = ordinal[1] if ordinal else part
            is_small_number = plain.isdecimal() and int(plain) < _SMALL_NUMBER
            if _EXACT.search(plain) and not is_small_number:
                yield plain
    if _ENGLISH.search(line):
        names = (match.group() for match in _NAME.finditer(line))
        yield from (name for name in names if not _CALENDAR.fullmatch(name))


def _runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield each run of eight words; CJK characters count as parts of words."""
    start = weight = 0
    for end, word in enumerate(words, 1):
        weight += _weight(word)
        while weight - _weight(words[start]) >= _RUN_WEIGHT:
            weight -= _weight(words[start])
            start += 1
        if weight >= _RUN_WEIGHT:
            yield words[start:end]


def _weight(word: str) -> int:
    """Return the weight of a word: two thirds for a Chinese, Japanese or Korean character."""
    return 2 if re.match(_WIDE, word) else _WORD_WEIGHT


def _words(text: str) -> list[str]:
    """Return the words of a text for comparison."""
    return re.findall(_WORD, normal(text.encode("utf-8", "replace").decode()).casefold())


def _as_row(words: Sequence[str]) -> str:
    """Return words as a text with spaces around, in which whole words can be searched."""
    return f" {' '.join(words)} "

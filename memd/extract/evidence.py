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

from memd.core.yielding import yield_to_requests
from memd.text import dates
from memd.text.normal import normal
from memd.text.words import WIDE

_WORD_WEIGHT = 3  # of a word; a Chinese, Japanese or Korean character weighs two
_RUN = 8 * _WORD_WEIGHT  # words in a row that two texts hardly share by chance
_LINE = 4 * _WORD_WEIGHT  # words of a shorter line, which counts if it is repeated whole
_HALF = 4  # a quotation of fewer words counts as one of so many
_LETTERS, _WORDS = 8, 2  # of a quotation at least: "ok" and "do it" prove nothing
_NEAR = timedelta(days=45)  # a date so near the conversation may come from a relative one
_SMALL = 32  # a smaller number may have been written as a word
_WORD = re.compile(f"[{WIDE}]|[^\\W_{WIDE}]+")
_WIDE = re.compile(f"[{WIDE}]")
_YEAR = re.compile(r"\d{4}\b")
_TOKEN = re.compile(r"[^\s/,;()\[\]{}<>|=\"'`*\u2018-\u201f\u3001\u3002\uff0c]+")
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

        ``None`` too for a quotation that is too short.
        """
        words = _words(quotation)
        letters = sum(2 if _WIDE.match(word) else len(word) for word in words)
        if len(words) < _WORDS or letters < _LETTERS:
            return None
        row = _as_row(words)
        texts = zip(reversed(self.person), reversed(self._own_rows), strict=True)
        return next((message for message, text in texts if row in text), None)

    def nearest(self, quotation: str) -> Utterance | None:
        """Return the person's line with most of a quotation's words.

        ``None`` if it has fewer than half of them, or fewer than two.
        """
        words = set(_words(quotation))
        lines = [
            Utterance(line, message.at)
            for message in self.person
            for line in message.text.split("\n")
        ]
        shares = [(len(words & set(_words(line.text))), line) for line in lines]
        most, line = max(shares, key=lambda share: share[0], default=(0, None))
        return line if 2 * most >= max(len(words), _HALF) else None

    def repeats(self, lines: Iterable[str], exempt: str) -> bool:
        """Return whether a line repeats eight words in a row, or a whole short line, of others.

        Words that the person said too or that are in the text ``exempt`` do not count.
        """
        own = (*self._own_rows, _as_row(_words(exempt)))
        for words in map(_words, lines):
            yield_to_requests()
            if _LINE <= sum(map(_weight, words)) < _RUN:
                repeated = [_as_row(words)] if _as_row(words) in self._others_row else []
            else:
                repeated = [
                    run
                    for run in map(_as_row, _runs(words))
                    if hash(run) in self._foreign_run_hashes
                ]
            if any(not any(run in text for text in own) for run in repeated):
                return True
        return False

    def unknown(self, lines: Iterable[str], exempt: str) -> tuple[str, bool]:
        """Return the first number, name, date or address that nobody said, "" for none.

        The second value says whether the person and the assistant did not say one of them.
        """
        own = "\0".join((*self._own_rows, self._assistant_row, _as_row(_words(exempt))))
        details = (part for line in lines for part in _details(line))
        foreign = [
            part
            for part in details
            if _as_row(_words(part)) not in own and not self._is_known_date(part, own)
        ]
        missing = (part for part in foreign if _as_row(_words(part)) not in self._others_row)
        return next(missing, ""), bool(foreign)

    @cached_property
    def _own_rows(self) -> tuple[str, ...]:
        """The words of each of the person's messages, as one text each."""
        return tuple(_as_row(_words(said.text)) for said in self.person)

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
        return frozenset(
            hash(_as_row(run)) for run in _runs(_words(f"{self.outside}\n{self.agents}"))
        )

    @cached_property
    def _own_with_dates(self) -> str:
        """The person's words with absolute dates behind relative ones. Slow to compute."""
        texts = (dates.resolve(said.text, said.at) for said in self.person if said.at)
        return _as_row(_words("\n".join(texts)))

    def _is_known_date(self, text: str, own: str) -> bool:
        """Return whether a date is near the conversation, or was said in other words."""
        if not _YEAR.match(text):
            return False
        dates_of_talk = [
            datetime.fromtimestamp(message.at, UTC).date() for message in self.person if message.at
        ]
        if any(text == str(day.year) for day in dates_of_talk):
            return True
        with suppress(ValueError, TypeError):
            day = date.fromisoformat(text)
            named = f" {day.day} " in own and (f" {day.month} " in own or f" {day.year} " in own)
            if named or any(abs(day - other) <= _NEAR for other in dates_of_talk):
                return True
        return _as_row(_words(text)) in self._own_with_dates


def _details(line: str) -> Iterator[str]:
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
    """Yield each run of eight words; CJK characters count as parts of words."""
    start = weight = 0
    for end, word in enumerate(words, 1):
        weight += _weight(word)
        while weight - _weight(words[start]) >= _RUN:
            weight -= _weight(words[start])
            start += 1
        if weight >= _RUN:
            yield words[start:end]


def _weight(word: str) -> int:
    """Return the weight of a word: two thirds for a Chinese, Japanese or Korean character."""
    return 2 if _WIDE.match(word) else _WORD_WEIGHT


def _words(text: str) -> list[str]:
    """Return the words of a text for comparison."""
    return _WORD.findall(normal(text.encode("utf-8", "replace").decode()).casefold())


def _as_row(words: Sequence[str]) -> str:
    """Return words as a text with spaces around, in which whole words can be searched."""
    return f" {' '.join(words)} "

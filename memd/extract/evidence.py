"""Find texts in a conversation: who said them, and whether they repeat what others said. Pure.

A run here is eight words in a row.

Rules of this file
- A quotation is found in spite of a model's small slips: a mended typing error, an ellipsis, case,
  signs. Its numbers are never slips. What counts is the person's whole sentence, as typed.
- A sentence *limits* a part of it where the words around that part in its clause deny, bound or
  condition it: "don't push to main without asking me" limits "push to main without asking".
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
from memd.text.bounds import AGAINST, CJK_DENIALS, DENIAL, DOUBT, LIMITS
from memd.text.normal import normal
from memd.text.words import WIDE

_WORD_WEIGHT = 3  # of a word; a Chinese, Japanese or Korean character weighs two
_RUN_WEIGHT = 8 * _WORD_WEIGHT  # words in a row that two texts hardly share by chance
_LINE_WEIGHT = 4 * _WORD_WEIGHT  # of the shortest line that counts if it is repeated whole
_LEAST_COUNTED = 4  # a quotation of fewer words counts as one of so many
_LEAST_LETTERS, _LEAST_WORDS = 8, 2  # of a quotation: "ok" and "do it" prove nothing
_NEAR = timedelta(days=45)  # a date so near the conversation may stand for "tomorrow"
_NEAR_END = timedelta(days=61)  # the end of the next month, from the first day of this one on
_SMALL_NUMBER = 32  # a smaller number may have been written as a word
_ELLIPSIS = r"\s*(?:\[?\u2026\]?|\[?\.{3}\]?)\s*"
_ALIKE = 85  # of 100, for a quotation with slips: 7 of 8 average ones and no foreign one of 148
_NUMBER = r"[^\W_]*\d[^\W_]*"
_SPLIT_NOT = r"n t\b"  # "don't" in a row of words
_LEAST_SHARED = 3  # words
_SEPARATOR = r"[:;.!?\u2013\u2014\uff1a\uff1b\u3002]|\s-\s"  # between main clauses
_CLAUSE = r"[,\uff0c\u3001]"
_CONDITION_WORDS = 2  # at the beginning of a clause
_CONDITIONS = frozenset({"if", "unless", "except", "only", "until"})
# What begins a clause that depends on the one before it: a word that says so, or in German nothing
# but an infinitive with "zu".
_DEPENDS = r"(?i)\s*(?:dass|daß|that|que|che|что|чтобы)?\s*"
_INFINITIVE = r"(?i)\b(?:zu\s+[^\W\d_]+n|[^\W\d_]+zu[^\W\d_]+en)\W*$"
_CJK_BOUNDS = "只|仅|僅|错|誤|だけ|のみ|しか"
# Compiled by ``re`` at the first use: these large sets of characters take long.
_WORD = f"[{WIDE}]|[^\\W_{WIDE}]+"
_WIDE = f"[{WIDE}]"
_YEAR = r"\d{4}\b"
_PIECE = r"[^\s/,;()\[\]{}<>|=\"'`*\u2018-\u201f\u3001\u3002\uff0c]+"
# Signs of a number, a name or an address: a digit, camelCase, "@", a dot or "_" within a word.
_EXACT = r"\d|[a-z][A-Z]|@|[^\W\d_]{2}\.[^\W\d_]{2}|\w_\w"
_DASHED = r"\d-|-\d"
_ORDINAL = r"(\d+)(?:st|nd|rd|th)"
# Capitals mark names only in English; German writes every noun with one.
_ENGLISH = r"\b(?:the|is|are|of|to|and|with|for|in)\b"
_NAME = r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b"
_PLAIN_NAME = r"[A-Z][a-z]{2,}"
_CALENDAR = (
    "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|(?:Janu|Febru)ary|March|April|May|June|July"
    "|August|(?:Septem|Octo|Novem|Decem)ber"
)


class Utterance(Struct, frozen=True):
    """The person's words in one message; ``at`` is in seconds since 1970, 0 if unknown."""

    text: str
    at: float = 0.0


class _Line(Struct, frozen=True):
    """A sentence, and its words as a row."""

    text: str
    row: str


class Talk(Struct, frozen=True, dict=True):
    """The words of the person, the assistant and all others in a conversation.

    ``agents`` are messages of other agents, ``outside`` all other texts.
    """

    person: Sequence[Utterance]
    assistant: str = ""
    outside: str = ""
    agents: str = ""

    def quoted(self, quotation: str) -> Utterance | None:
        """Return the person's last sentences that contain a quotation, whole and as typed.

        The result is ``None`` if there is none, or the quotation is too short.
        """
        words = _words(quotation)
        letters = sum(2 if re.match(_WIDE, word) else len(word) for word in words)
        if len(words) < _LEAST_WORDS or letters < _LEAST_LETTERS:
            return None
        parts = [part for part in map(_words, re.split(_ELLIPSIS, quotation)) if part]
        for message, sentences in zip(
            reversed(self.person), reversed(self._sentences), strict=True
        ):
            lines = _lines_with(parts, sentences)
            if lines:
                texts = [" ".join(sentences[line].text.split()) for line in lines]
                return Utterance(" ".join(texts), message.at)
        return None

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
        """Return the first number, date, address or code that nobody said, "" for none.

        The second value says whether others said such a detail, or a name, and the person and the
        assistant did not. A name that nobody said is no fault: it may be a model's own word.
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
        unheard = [each for each in foreign if _as_row(_words(each)) not in others]
        missing = (each for each in unheard if not re.fullmatch(_PLAIN_NAME, each))
        return next(missing, ""), len(unheard) < len(foreign)

    @cached_property
    def _own_rows(self) -> tuple[str, ...]:
        """The words of each of the person's messages, as one text each."""
        return tuple(_as_row(_words(message.text)) for message in self.person)

    @cached_property
    def _sentences(self) -> tuple[tuple["_Line", ...], ...]:
        """The sentences of each of the person's messages."""
        return tuple(
            tuple(_Line(line, _as_row(_words(line))) for line in message.text.split("\n"))
            for message in self.person
        )

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
        if not re.match(_YEAR, text):
            return False
        days_of_talk = [
            datetime.fromtimestamp(message.at, UTC).date() for message in self.person if message.at
        ]
        if any(text == str(day.year) for day in days_of_talk):
            return True
        with suppress(ValueError, TypeError, OverflowError):  # it is no date, or the last of all
            date_said = date.fromisoformat(text)
            day, month, year = (f" {n} " for n in (date_said.day, date_said.month, date_said.year))
            was_said = day in own and (month in own or year in own)
            near = _NEAR
            if (date_said + timedelta(days=1)).day == 1:  # the end of a month is said without a day
                was_said, near = was_said or month in own, _NEAR_END
            if was_said or any(abs(date_said - other) <= near for other in days_of_talk):
                return True
        return False


def is_limited(sentence: str, part: str, rule: str) -> bool:
    """Return whether a sentence limits a part of it in a way that a rule does not.

    The rule's own words for that stand outside the part, where it has that too.
    """
    match = _find_words(_words(part), sentence)
    if match is None:
        return False
    before, after = sentence[: match[0]], sentence[match[1] :]
    near = re.split(_CLAUSE, re.split(_SEPARATOR, before)[-1])
    behind = re.split(_CLAUSE, re.split(_SEPARATOR, after)[0])
    limits = _limits(near[-1]) | _limits(behind[0])
    if near[1:] and re.fullmatch(_DEPENDS, near[-1]):
        depends = near[-1].strip() or re.search(_INFINITIVE, f"{part} {behind[0]}")
        limits |= _limits(near[-2]) if depends else frozenset()
    # Another clause limits the part only as a condition: "if the build is red, push nothing".
    for clause in (*near[:-1], *behind[1:]):
        first_words = " ".join(clause.split()[:_CONDITION_WORDS])
        limits |= _limits(first_words) & _CONDITIONS
    repeated = _find_words(_words(part), rule)
    own_words = rule[: repeated[0]] + " " + rule[repeated[1] :] if repeated else rule
    return bool(limits - _limits(own_words))


def common_part(sentence: str, rule: str) -> str:
    """Return the longest row of words that a sentence and a rule share, "" below three words."""
    words, row = _words(sentence), _as_row(_words(rule))
    best: list[str] = []
    for start in range(len(words)):
        end = start + len(best) + 1
        while end <= len(words) and _as_row(words[start:end]) in row:
            best = words[start:end]
            end += 1
    return " ".join(best) if len(best) >= _LEAST_SHARED else ""


def _lines_with(parts: Sequence[Sequence[str]], lines: Sequence[_Line]) -> range:
    """Return the numbers of the lines in which the parts of a quotation stand, in their order."""
    row = "\n".join(line.row for line in lines)
    spans: list[tuple[int, int]] = []
    position = 0
    for part in parts:
        span = _find_row(_as_row(part), row, position)
        if span is None:
            return range(0)
        spans.append(span)
        position = span[1] - 1  # the space that ends one word begins the next
    first, last = (row.count("\n", 0, at) for at in (spans[0][0] + 1, spans[-1][1] - 1))
    return range(first, last + 1)


def _find_row(quoted: str, row: str, start: int) -> tuple[int, int] | None:
    """Return where words stand in a row from a position on, small slips of a model allowed."""
    plain = row.replace("\n ", "  ").replace("\n", " ")  # of the same length
    exact = re.compile(re.escape(quoted).replace("\\ ", " +")).search(plain, start)
    if exact is not None:
        return exact.span()
    from rapidfuzz import fuzz  # noqa: PLC0415 - only runs of a model need it, and it is large

    words = quoted.strip()
    match = fuzz.partial_ratio_alignment(words, plain[start:], score_cutoff=_ALIKE)
    if match is None:
        return None
    begin = plain.rfind(" ", 0, start + match.dest_start + 1)
    end = plain.find(" ", max(start + match.dest_end - 1, 0))
    there = plain[max(begin, 0) : end if end >= 0 else len(plain)]
    # Numbers are no slips, and neither is a word that denies.
    same_numbers = sorted(re.findall(_NUMBER, there)) == sorted(re.findall(_NUMBER, words))
    if not same_numbers or _limits(there) - _limits(words) or len(words) > 2 * len(there):
        return None
    return max(begin, 0), end + 1 if end >= 0 else len(plain)


def _find_words(words: Sequence[str], text: str) -> tuple[int, int] | None:
    """Return where words begin and end in a text."""
    plain = normal(text.encode("utf-8", "replace").decode()).casefold()
    matches = list(re.finditer(_WORD, plain))
    for start in range(len(matches) - len(words) + 1):
        row = matches[start : start + len(words)]
        if row and [match.group() for match in row] == list(words):
            return row[0].start(), row[-1].end()
    return None


def _limits(text: str) -> frozenset[str]:
    """Return what denies, bounds or conditions a text, as the values of ``bounds.LIMITS``."""
    plain = normal(text.encode("utf-8", "replace").decode()).casefold().replace("\u2019", "'")
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", re.sub(_SPLIT_NOT, "n't", plain))
    limits = {
        DENIAL if word.endswith("n't") or word in AGAINST else LIMITS.get(word, "")
        for word in words
    }
    if re.search(CJK_DENIALS, plain):
        limits.add(DENIAL)
    if re.search(_CJK_BOUNDS, plain):
        limits.add("only")
    return frozenset(limits - {"", DOUBT})


def _details(line: str) -> Iterator[str]:
    """Yield the numbers, names, dates and addresses of a line."""
    for match in re.finditer(_PIECE, line):
        token = match.group().strip(".:!?-#~\u2026")
        # "NixOS-based" is a name and a word, 2026-03-05 is one date.
        parts = [token] if re.search(_DASHED, token) else token.split("-")
        for part in parts:
            ordinal = re.fullmatch(_ORDINAL, part)
            plain = ordinal[1] if ordinal else part
            is_small_number = plain.isdecimal() and int(plain) < _SMALL_NUMBER
            if re.search(_EXACT, plain) and not is_small_number:
                yield plain
    if re.search(_ENGLISH, line):
        names = (match.group() for match in re.finditer(_NAME, line))
        yield from (name for name in names if not re.fullmatch(_CALENDAR, name))


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

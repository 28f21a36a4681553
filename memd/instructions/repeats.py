"""Tell whether instruction files already say a text, word for word or nearly. Pure.

Rules of this file
- A statement is said where one passage (a paragraph, list item or row) has ``SAID`` of its words.
  What stands above the passage (a heading, an item, a lead) may be named by the statement or not.
- Each clause of it is held against the clause of the passage, or the few in a row, that have most
  of its words. Where one denies and the other does not, where it has a number more or an exception,
  or where a word of it stands in the place of another, it is news.
- Nothing here knows a synonym: what is said in other words altogether is news.
- The figures that moved each bound are in docs/extraction.md. The work grows with the texts
  (tests/instructions/test_repeats.py::test_work_is_linear).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, cached_property
from itertools import islice
from math import ceil

from msgspec import Struct

from memd.core.covered import Covered
from memd.core.yielding import yield_to_requests
from memd.text.blocks import FENCE, Block, blocks
from memd.text.bounds import CJK_DENIALS, DENIALS
from memd.text.statements import Statement, statements
from memd.text.words import word_list, words

SAID = 0.6  # of the words that say something
_ENOUGH = 3  # words in common; with fewer the statement has half of what the clause says, too
_HALF = 0.5
_EXCHANGED = 4  # words in a row that stand in the place of others
_LETTERS = 6  # of a word; the rest is mostly its ending
_TOGETHER = 6  # clauses that are compared as one
_LONGEST = 80  # words of a clause that is compared
_PASSAGE = 2000  # characters; a longer paragraph is cut, and a longer statement is only looked up
_ALIKE = 100  # passages that a statement is compared with
_CHARACTERS = 1_000_000  # of all files
_CONTRASTS = ("instead of", "rather than", "statt", "anstatt", "au lieu")
_CLAUSE = re.compile(
    r"[,;:.!?](?=\s|$)|\s[\u2013\u2014-]+\s|[()|\u3002\uff0c\uff1b\uff1a]"
    rf"|\b(?=(?:{'|'.join(_CONTRASTS)})\b)",
    re.IGNORECASE,
)
_LACKS = ("without", "w/o", "ohne", "sans", "sin", "senza", "sem", "без")
_EXCEPTS = ("unless", "except", "außer", "salvo", "excepto", "sauf", "exceto", "tranne", "кроме")
_DENIES = (
    *(DENIALS - {*_LACKS, "ne"}),  # French "ne" goes with another one, or with "que"
    *("avoid", "forbid", "forbidden", "prohibited", "banned", "nothing", "nobody", "nowhere"),
    *("dont", "doesnt", "isnt", "arent", "wont", "shouldnt", "mustnt", "nichts", "niemand"),
    *("verboten", "vermeide", "vermeiden", "interdit", "éviter", "évitez", "rien", "ni"),
    *_CONTRASTS,
)
_NUMBER = re.compile(r"\d+")
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]+")
_WRITER = ("user", "project", "nutzer", "benutzer", "projekt", "utilisateur", "projet", "usuario")
_PART = re.compile(r"\s*\*\*(?:said|why|how to apply):\*\*", re.IGNORECASE)  # of a memory's body


def covered(texts: Mapping[str, str]) -> Covered:
    """Return a function that names the file that already says a text, or "" if none does.

    ``texts`` are the files' texts by path. Each statement of the text must stand in one of the
    files; the first one's file is named. The evidence and the reasons in a memory's body do not
    count. The function blocks when it is called first.
    """
    index = _Passages(texts)

    def said(text: str) -> str:
        """Return the file that has all statements of a text, "" if one is missing."""
        lines = [line for line in text.splitlines() if not _PART.match(line)]
        paths: list[str] = []
        for statement in statements("\n".join(lines)) if index.passages else ():
            paths.append(index.file(statement.raw))
            if not paths[-1]:
                return ""
        return paths[0] if paths else ""

    return said


class _Clause(Struct, frozen=True):
    """Clauses in a row, and how often they deny something."""

    row: tuple[str, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    denies: int
    lacks: bool
    excepts: bool

    def denies_more(self, other: "_Clause") -> bool:
        """Return whether it denies what another one does not; "never without" denies nothing."""
        sign, others = (bool(each.denies) + each.lacks for each in (self, other))
        return sign != others or self.denies > other.denies


class _Passage:
    """A passage of a file, with the words that it has and those that it stands under."""

    def __init__(self, path: str, block: Block) -> None:
        self.path = path
        self._block = block
        self.words = frozenset(_significant(block.raw))
        self.above = frozenset(_significant(block.context)) - self.words

    def has(self, needed: frozenset[str]) -> bool:
        """Return whether enough of the words stand here; one alone has to be all there is."""
        rest = needed - self.above
        enough = len(rest & self.words) >= SAID * len(rest) > 0
        return enough and (len(needed) > 1 or needed == self.words)

    def says(self, clauses: Sequence[_Clause]) -> bool:
        """Return whether it says each of the clauses of a statement that it has the words of."""
        shared = frozenset().union(*(clause.words for clause in clauses)) & self.words
        part = 0.0 if len(shared) >= _ENOUGH else _HALF
        return all(self._says(clause, part) for clause in clauses)

    def _says(self, clause: _Clause, part: float) -> bool:
        """Return whether a stretch of the passage has most words of a clause.

        It must have the clause's numbers and deny neither more nor less. ``part`` is the share of
        the stretch's words that the clause must have.
        """
        needed = clause.words - self.above
        if not needed or not self._stretches or len(clause.row) > _LONGEST:
            return not needed
        best = max(
            self._stretches,
            key=lambda each: (
                len(needed & each.words),
                -len(each.row),
                not clause.denies_more(each),
            ),
        )
        return (
            not clause.denies_more(best)
            and len(needed & best.words) >= SAID * len(needed)
            and len(clause.words & best.words) >= part * len(best.words)
            and clause.numbers <= best.numbers
            and clause.excepts <= best.excepts
            and not _exchanged(clause.row, best.row)
        )

    @cached_property
    def _stretches(self) -> tuple[_Clause, ...]:
        """Return the clauses, alone and with those that follow; all stand under what is above."""
        above = _clause(self._block.context)
        own = [each for each in _clauses(self._block.raw) if len(each.row) <= _LONGEST]
        return tuple(
            _Clause(
                row=tuple(word for each in own[i:j] for word in each.row),
                words=frozenset().union(*(each.words for each in own[i:j])),
                numbers=above.numbers.union(*(each.numbers for each in own[i:j])),
                denies=sum(each.denies for each in (above, *own[i:j])),
                lacks=any(each.lacks for each in (above, *own[i:j])),
                excepts=any(each.excepts for each in (above, *own[i:j])),
            )
            for i in range(len(own))
            for j in range(i + 1, min(i + _TOGETHER, len(own)) + 1)
        )


class _Passages:
    """The passages of files by their words, and the sentences that stand there word for word."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.passages: list[_Passage] = []
        self._keys: dict[str, str] = {}
        self._holders: dict[str, list[int]] = defaultdict(list)
        room = _CHARACTERS
        for path, text in texts.items():
            for block in blocks(text[:room]):
                yield_to_requests()
                for part in _parts(block):
                    self._add(_Passage(path, part))
            for statement in statements(text[:room]):
                yield_to_requests()
                if not _clause(statement.context).denies:
                    self._keys.setdefault(Statement(statement.raw).key, path)
            room = max(room - len(text), 0)

    def _add(self, passage: _Passage) -> None:
        """Add a passage, and index it by its words."""
        for word in passage.words | passage.above:
            self._holders[word].append(len(self.passages))
        self.passages.append(passage)

    def file(self, statement: str) -> str:
        """Return the path of a file that says a statement, "" where there is none."""
        path = self._keys.get(Statement(statement).key, "")
        needed = frozenset(_significant(statement[:_PASSAGE]))
        if path or not needed or len(statement) > _PASSAGE:
            return path
        near = map(self.passages.__getitem__, self._near(needed))
        alike = [*islice((passage for passage in near if passage.has(needed)), _ALIKE)]
        clauses = [*_clauses(statement)] if alike else []
        return next((passage.path for passage in alike if passage.says(clauses)), "")

    def _near(self, needed: frozenset[str]) -> list[int]:
        """Return the passages that can have enough of the words: at least one of the rarest."""
        rarest = sorted(needed, key=lambda word: len(self._holders.get(word, ())))
        lacking = len(needed) - ceil(SAID * len(needed))
        near = (self._holders.get(word, ()) for word in rarest[: lacking + 1])
        return sorted({number for numbers in near for number in numbers})


def _parts(block: Block) -> Iterator[Block]:
    """Yield a block as passages of a bounded length, of code each line."""
    lines = block.raw.splitlines()[1:] if FENCE.match(block.raw) else [block.raw]
    for line in lines:
        for start in range(0, len(line), _PASSAGE):
            yield Block(line[start : start + _PASSAGE], block.context[:_PASSAGE])


def _clauses(text: str) -> Iterator[_Clause]:
    """Return the clauses; one without a word that says something belongs to the next, or last."""
    result, waiting = list[str](), ""
    for part in _CLAUSE.split(text):
        waiting = f"{waiting} {part}"
        if _significant(part):
            result.append(waiting)
            waiting = ""
    return map(_clause, (*result[:-1], *(f"{last} {waiting}" for last in result[-1:])))


def _clause(raw: str) -> _Clause:
    """Return a part of a sentence as words, numbers, denials and exceptions."""
    row, plain = tuple(_significant(raw)), raw.replace("\u2019", "'")
    return _Clause(
        row=row,
        words=frozenset(row),
        numbers=frozenset(_NUMBER.findall(raw)),
        denies=len(_any(_DENIES, "|n't").findall(plain)) + len(CJK_DENIALS.findall(plain)),
        lacks=_any(_LACKS).search(plain) is not None,
        excepts=_any(_EXCEPTS).search(plain) is not None,
    )


@cache
def _any(words_: Sequence[str], more: str = "") -> re.Pattern[str]:
    """Return a pattern that finds any of some words, each with ``more`` behind it."""
    listed = "|".join(map(re.escape, sorted(words_)))
    return re.compile(rf"(?<![\w-])(?:{listed})(?![\w-]){more}", re.IGNORECASE)


def _exchanged(new: Sequence[str], old: Sequence[str]) -> bool:
    """Return whether words take the place of others, each side's being more than the other has."""
    ours, theirs = Counter(new), Counter(old)
    matcher = SequenceMatcher(None, new, old, autojunk=False)
    return any(
        tag == "replace"
        and max(j - i, m - k) <= _EXCHANGED
        and all(ours[word] > theirs[word] for word in new[i:j])
        and all(theirs[word] > ours[word] for word in old[k:m])
        for tag, i, j, k, m in matcher.get_opcodes()
    )


def _significant(text: str) -> list[str]:
    """Return the beginnings of the words that say something, and options as they stand."""
    result = [word[:_LETTERS] for word in words(text) if word not in _grammar()]
    return result + [flag.lower() for flag in _FLAG.findall(text)]


@cache
def _grammar() -> frozenset[str]:
    """Return the words that say nothing beside a statement, also as ``words`` gives them."""
    listed = {*word_list("grammar.txt"), *DENIALS, *_WRITER}
    return frozenset(listed | {stem for word in listed for stem in words(word)})

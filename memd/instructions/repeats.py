"""Find out whether instruction files already say a text, word for word or nearly. Pure.

Rules of this file
- A file says a statement if one passage (a paragraph, list item or row) has the share
  ``LEAST_SHARE`` of its words. The statement need not have the words above the passage (a heading,
  an item, a lead), but it may.
- Each clause of the statement is compared with the clause of the passage, or with the few clauses
  in a row, that have most of its words. The clause is new if only one of the two denies, if it has
  another number or an exception, or if a word of it replaces another word.
- Synonyms are not known: a statement in other words is new.
- The measurements behind each limit are in docs/extraction.md. The work is linear
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

LEAST_SHARE = 0.6  # of a statement's significant words that a passage must have
# If statement and passage share fewer words than this, the statement must also have half of the
# words of the passage's clause.
_ENOUGH_WORDS = 3
_HALF = 0.5
_EXCHANGED_WORDS = 4  # the most words in a row that replace others
_STEM_LETTERS = 6  # of a word are compared; the rest is mostly its ending
_CLAUSES_TOGETHER = 6  # the most clauses in a row that are compared as one
_CLAUSE_WORDS = 80  # longer clauses are not compared
# Longer paragraphs are cut, and longer statements are only searched word for word.
_PASSAGE_CHARACTERS = 2000
_MOST_PASSAGES = 100  # that one statement is compared with
_ALL_CHARACTERS = 1_000_000  # of all files are searched
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

    ``texts`` are the files' texts by path. Each statement of the text must be in one of the files;
    the file of the first statement is named. The evidence and the reasons in a memory's body do not
    count. The function blocks when it is called first.
    """
    passages = _Passages(texts)

    def find_file(text: str) -> str:
        """Return the file with the first statement of a text, "" if a statement is in no file."""
        lines = [line for line in text.splitlines() if not _PART.match(line)]
        first_path = ""
        for statement in statements("\n".join(lines)) if passages.passages else ():
            path = passages.file(statement.raw)
            if not path:
                return ""
            first_path = first_path or path
        return first_path

    return find_file


class _Clause(Struct, frozen=True):
    """One clause, or several in a row.

    ``row`` are the significant words in order, ``denies`` is the number of denials. ``lacks`` says
    whether a word like "without" is in it, ``excepts`` a word like "unless".
    """

    row: tuple[str, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    denies: int
    lacks: bool
    excepts: bool

    def denies_more(self, other: "_Clause") -> bool:
        """Return whether it has more denials than another clause, or a different sign.

        Two kinds of denial in one clause, as in "never without", have another sign than one.
        """
        own_sign = bool(self.denies) + self.lacks
        other_sign = bool(other.denies) + other.lacks
        return own_sign != other_sign or self.denies > other.denies


class _Passage:
    """A passage of a file, with its words and the words of the headings and leads above it."""

    def __init__(self, path: str, block: Block) -> None:
        self.path = path
        self._block = block
        self.words = frozenset(_significant(block.raw))
        self.above = frozenset(_significant(block.context)) - self.words

    def has(self, needed: frozenset[str]) -> bool:
        """Return whether the passage has enough of the words, or a single one as its only word."""
        rest = needed - self.above
        has_enough = len(rest & self.words) >= LEAST_SHARE * len(rest) > 0
        return has_enough and (len(needed) > 1 or needed == self.words)

    def says(self, clauses: Sequence[_Clause]) -> bool:
        """Return whether the passage says each clause of a statement."""
        all_words = frozenset[str]().union(*(clause.words for clause in clauses))
        shared = all_words & self.words
        least_share = 0.0 if len(shared) >= _ENOUGH_WORDS else _HALF
        return all(self._says(clause, least_share) for clause in clauses)

    def _says(self, clause: _Clause, least_share: float) -> bool:
        """Return whether a stretch of the passage (clauses in a row) has most words of a clause.

        It must have the clause's numbers and deny neither more nor less. ``least_share`` is the
        share of the stretch's words that the clause must have.
        """
        needed = clause.words - self.above
        if not needed:
            return True
        if not self._stretches or len(clause.row) > _CLAUSE_WORDS:
            return False
        # The stretch with most of the needed words; of equal ones a short one that denies alike.
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
            and len(needed & best.words) >= LEAST_SHARE * len(needed)
            and len(clause.words & best.words) >= least_share * len(best.words)
            and clause.numbers <= best.numbers
            and clause.excepts <= best.excepts
            and not _exchanges_words(clause.row, best.row)
        )

    @cached_property
    def _stretches(self) -> tuple[_Clause, ...]:
        """Return each clause, alone and joined with those that follow.

        The numbers and denials of the heading or lead above belong to all of them.
        """
        above = _clause(self._block.context)
        clauses = [each for each in _clauses(self._block.raw) if len(each.row) <= _CLAUSE_WORDS]
        return tuple(
            _joined(clauses[start:end], above)
            for start in range(len(clauses))
            for end in range(start + 1, min(start + _CLAUSES_TOGETHER, len(clauses)) + 1)
        )


def _joined(clauses: Sequence[_Clause], above: _Clause) -> _Clause:
    """Return clauses in a row as one, with the numbers and denials of the text ``above`` them."""
    return _Clause(
        row=tuple(word for each in clauses for word in each.row),
        words=frozenset[str]().union(*(each.words for each in clauses)),
        numbers=above.numbers.union(*(each.numbers for each in clauses)),
        denies=sum(each.denies for each in (above, *clauses)),
        lacks=any(each.lacks for each in (above, *clauses)),
        excepts=any(each.excepts for each in (above, *clauses)),
    )


class _Passages:
    """The passages of files by their words, and the file of each statement, word for word."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.passages: list[_Passage] = []
        self._path_by_key: dict[str, str] = {}  # by the key of a statement
        # For each word the passages that have it, or stand below it, as indexes of ``passages``.
        self._numbers_by_word: dict[str, list[int]] = defaultdict(list)
        room = _ALL_CHARACTERS
        for path, text in texts.items():
            for block in blocks(text[:room]):
                yield_to_requests()
                for part in _parts(block):
                    self._add(_Passage(path, part))
            for statement in statements(text[:room]):
                yield_to_requests()
                if not _clause(statement.context).denies:
                    self._path_by_key.setdefault(Statement(statement.raw).key, path)
            room = max(room - len(text), 0)

    def _add(self, passage: _Passage) -> None:
        """Add a passage, and index it by its words."""
        for word in passage.words | passage.above:
            self._numbers_by_word[word].append(len(self.passages))
        self.passages.append(passage)

    def file(self, statement: str) -> str:
        """Return the path of a file that says a statement, "" if none does."""
        path = self._path_by_key.get(Statement(statement).key, "")
        needed = frozenset(_significant(statement[:_PASSAGE_CHARACTERS]))
        if path or not needed or len(statement) > _PASSAGE_CHARACTERS:
            return path
        candidates = (self.passages[number] for number in self._candidates(needed))
        with_words = (passage for passage in candidates if passage.has(needed))
        compared = list(islice(with_words, _MOST_PASSAGES))
        clauses = list(_clauses(statement)) if compared else []
        for passage in compared:
            if passage.says(clauses):
                return passage.path
        return ""

    def _candidates(self, needed: frozenset[str]) -> list[int]:
        """Return the indexes of the passages that can have enough of the needed words.

        Such a passage lacks only a few of them, so it has at least one of the rarest.
        """
        rarest_first = sorted(needed, key=lambda word: len(self._numbers_by_word.get(word, ())))
        most_lacking = len(needed) - ceil(LEAST_SHARE * len(needed))
        rarest = rarest_first[: most_lacking + 1]
        return sorted({number for word in rarest for number in self._numbers_by_word.get(word, ())})


def _parts(block: Block) -> Iterator[Block]:
    """Yield a block as passages of a limited length; of code each line is one."""
    lines = block.raw.splitlines()[1:] if FENCE.match(block.raw) else [block.raw]
    context = block.context[:_PASSAGE_CHARACTERS]
    for line in lines:
        for start in range(0, len(line), _PASSAGE_CHARACTERS):
            yield Block(line[start : start + _PASSAGE_CHARACTERS], context)


def _clauses(text: str) -> Iterator[_Clause]:
    """Return the clauses of a text.

    A clause without a significant word belongs to the next one, or else to the last one.
    """
    result, insignificant = list[str](), ""
    for part in _CLAUSE.split(text):
        clause = f"{insignificant} {part}"
        if _significant(part):
            result.append(clause)
            insignificant = ""
        else:
            insignificant = clause
    if result:
        result[-1] = f"{result[-1]} {insignificant}"
    return map(_clause, result)


def _clause(raw: str) -> _Clause:
    """Return a part of a sentence as words, numbers, denials and exceptions."""
    row, text = tuple(_significant(raw)), raw.replace("\u2019", "'")
    return _Clause(
        row=row,
        words=frozenset(row),
        numbers=frozenset(_NUMBER.findall(raw)),
        denies=len(_pattern_of(_DENIES, "|n't").findall(text)) + len(CJK_DENIALS.findall(text)),
        lacks=_pattern_of(_LACKS).search(text) is not None,
        excepts=_pattern_of(_EXCEPTS).search(text) is not None,
    )


@cache
def _pattern_of(words_: Sequence[str], more: str = "") -> re.Pattern[str]:
    """Return a pattern that finds any of some words; ``more`` is added at its end."""
    alternatives = "|".join(re.escape(word) for word in sorted(words_))
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-]){more}", re.IGNORECASE)


def _exchanges_words(new: Sequence[str], old: Sequence[str]) -> bool:
    """Return whether a few words of ``old`` are replaced by other words in ``new``.

    Words that only stand elsewhere in the other text are not replaced.
    """
    new_counts, old_counts = Counter(new), Counter(old)
    matcher = SequenceMatcher(None, new, old, autojunk=False)
    for tag, new_start, new_end, old_start, old_end in matcher.get_opcodes():
        new_words, old_words = new[new_start:new_end], old[old_start:old_end]
        if tag != "replace" or max(len(new_words), len(old_words)) > _EXCHANGED_WORDS:
            continue
        are_new = all(new_counts[word] > old_counts[word] for word in new_words)
        if are_new and all(old_counts[word] > new_counts[word] for word in old_words):
            return True
    return False


def _significant(text: str) -> list[str]:
    """Return the beginnings of the significant words, and whole options such as ``--quiet``."""
    result = [word[:_STEM_LETTERS] for word in words(text) if word not in _grammar()]
    return result + [flag.lower() for flag in _FLAG.findall(text)]


@cache
def _grammar() -> frozenset[str]:
    """Return the words that are not significant, also in the form that ``words`` gives them."""
    insignificant = {*word_list("grammar.txt"), *DENIALS, *_WRITER}
    return frozenset(insignificant | {stem for word in insignificant for stem in words(word)})

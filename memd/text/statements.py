"""A text as statements: sentences with their words, facts and denials, ready to be compared. Pure.

Rules of this file
- A statement has a context (a heading, a line with a colon, the list item above, a bold label):
  the same words below another heading are another statement.
- A fact is a number, date, name, address, path or piece of code. Names are found by their capitals,
  so in German every noun is one; that makes comparisons stricter, never looser.
- Words that deny, bound, ask or doubt are the limits of a statement. A number includes its sign
  and unit.
- A clause is the part of a sentence that a fact belongs to: "the API on 8080 and the page on
  9090" has two.
- Word lists are read on first use: call from a worker thread.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache

from msgspec import Struct

from memd.text import stems
from memd.text.blocks import FENCE, blocks
from memd.text.bounds import CJK_DENIALS, DENIAL, DENIALS, LIMITS, MARKED
from memd.text.normal import normal
from memd.text.words import MONTHS, WIDE, word_list

NUMBER, DATE, NAME = "number", "date", "name"
ADDRESS, PATH, CODE, PLAIN = "address", "path", "code", "plain"


def _set(text: str) -> frozenset[str]:
    """Return the words of a text with spaces between them."""
    return frozenset(text.split())


# Compiled by ``re`` at the first use, which is a job's: it takes as long as 30 others. What may be
# tried in vain is bounded, or time would be quadratic.
_TOKEN = (
    r"(?P<address>[a-z][a-z0-9+.-]{0,30}://[^\s<>()\[\]\"'`]+|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b)"
    r"|(?P<date>\b\d{4}-\d\d(?:-\d\d)?\b)"
    r"|(?P<path>(?<!\w)(?:~|\.{1,2})?/[\w.@~/-]*\w|\b\w[\w.-]{0,99}/[\w./-]*\w)"
    r"|(?P<flag>(?<![\w-])--?[A-Za-z][\w-]*)"
    r"|(?P<number>(?<![\w.-])[-+]?[$\u20ac\u00a3]?\d+(?:[.,:]\d+)*"
    r"(?:\s?(?:%|\u20ac|\u00b0[CF]?|[\u03bcnm]?s|min|[hdg]|[kcm]?m|[km]g|[kKMGT]i?[bB]?))?"
    rf"(?!(?![{WIDE}])[\w%]|[.,:_@+-]\w))"
    rf"|(?P<cjk>[{WIDE}])"
    rf"|(?P<word>(?:(?![{WIDE}])\w)+(?:[.':_@%+-](?:(?![{WIDE}])\w)+)*(?:\+\+|\#|%)?)"
)
_FILE_SUFFIXES = _set(
    "md py js ts json yml yaml toml txt sh log rs go c h cpp java kt rb sql css html xml csv cfg"
    " ini lock env"
)
_CALENDAR_NAMES = frozenset(
    (*MONTHS, *_set("monday tuesday wednesday thursday friday saturday sunday"))
)
_CJK_GRAMMAR = _set("的 了 是 在 和 也 就 而 及 与 着 は が を に の で と も 이 가 은 는 을 를")
_LABEL = r"\*\*([^*\n]{1,40})(?:[:\uff1a]\*\*|\*\*[:\uff1a])"
_MEMORY_PARTS = r"(?i)(?:why|how to apply|said)"  # of each memory: no context
_SENTENCE = r"(?<=[.!?])[ \t]+(?=\S)|(?<=[\u3002\uff01\uff1f])\s*(?=\S)"
_EMPHASIS = r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"
_PUNCTUATION = r"[,;:!?.\u3002\uff0c\uff1b\uff1a]+(?=\s|$)|(?<=\s)[\u2013\u2014|-](?=\s)"
_CLAUSE = (
    r"[,;:.!?](?=\s|$)|[()\u2013\u2014|\u3002\uff0c\uff1b\uff1a]|\s-\s"
    r"|\b(?:and|but|while|whereas|which|und|aber|wobei|y|pero|et|mais|e|ma|и|но)\b"
)
_DIGIT = r"\d"
_CACHED_TEXTS = 20_000  # in each of two caches


class SpokenWord(Struct, frozen=True):
    """A word of a text."""

    form: str  # by which it is compared
    kind: str  # of fact, PLAIN for none
    raw: str  # the word as it stands in the text


class Clause(Struct, frozen=True):
    """The part of a sentence that a fact belongs to."""

    words: frozenset[str]  # the forms of its telling words
    facts: frozenset[tuple[str, str]]  # each with its kind first
    limits: frozenset[str]  # what denies, bounds or doubts it


class Statement:
    """A sentence, list item, row or block of code, with what it stands under."""

    def __init__(self, raw: str, context: str = "", *, step: bool = False) -> None:
        self.raw = raw
        self.context = context
        self.step = step  # of a numbered list: its place counts

    @cached_property
    def key(self) -> str:
        """A text that is equal for two statements exactly if they say the same."""
        if FENCE.match(self.raw):
            return self.raw
        folded = _fold(self.raw)
        return f"{_fold(self.context)}>{folded}" if self.context else folded

    @cached_property
    def text(self) -> str:
        """The statement with its context, as it is compared."""
        return f"{self.context}, {self.raw}" if self.context else self.raw

    @cached_property
    def tokens(self) -> tuple[SpokenWord, ...]:
        """All words in their order."""
        return tuple(tokens(self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """The forms of the words that say something."""
        return frozenset(token.form for token in self.tokens if is_telling(token))

    @cached_property
    def facts(self) -> frozenset[tuple[str, str]]:
        """The facts as (kind, form)."""
        return frozenset((token.kind, token.form) for token in self.tokens if token.kind != PLAIN)

    @cached_property
    def code(self) -> tuple[str, ...]:
        """The pieces of code, as they are."""
        lines_in_fence = self.raw.splitlines()[1:-1]
        between_backticks = self.raw.split("`")[1::2]
        pieces = lines_in_fence if FENCE.match(self.raw) else between_backticks
        return tuple(piece.strip() for piece in pieces if piece.strip())

    @cached_property
    def limits(self) -> frozenset[str]:
        """What denies, bounds or doubts it."""
        return _limits(self.text, self.tokens)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses; one without a fact and a word beside it belongs to the next."""
        return tuple(_clauses(self.text))


def statements(text: str) -> list[Statement]:
    """Return the statements of a text in their order."""
    return list(_statements(text))


def is_telling(token: SpokenWord) -> bool:
    """Return whether a word carries meaning: it is neither grammar nor a denial."""
    if token.kind != PLAIN:
        return True
    is_grammar = token.form in _stop_words() or token.form in _CJK_GRAMMAR
    return not is_grammar and token.form not in DENIALS


def tokens(text: str) -> Iterator[SpokenWord]:
    """Yield the words of a text."""
    for number, part in enumerate(_parts_at_backticks(normal(text).replace("\u2019", "'"))):
        opens_sentence = number == 0
        for match in re.finditer(_TOKEN, part):
            yield _token(match, in_code=number % 2 == 1, opens_sentence=opens_sentence)
            next_character = part[match.end() : match.end() + 1]
            opens_sentence = next_character in {".", "!", "?", ":", "*"}


def _parts_at_backticks(text: str) -> list[str]:
    """Return the parts of a text in turn: prose at even indices, code in backticks at odd ones.

    A text with a backtick that is never closed is all prose.
    """
    parts = text.split("`")
    return parts if len(parts) % 2 == 1 else [" ".join(parts)]


def _token(match: re.Match[str], *, in_code: bool, opens_sentence: bool) -> SpokenWord:
    """Return a matched word; ``in_code`` says that it stands in backticks."""
    raw, group = match.group(), match.lastgroup or ""
    folded = raw.casefold()
    if in_code:
        return SpokenWord(stem(folded), CODE, raw)
    if group == "flag":
        return SpokenWord(folded, CODE if raw.startswith("--") else PLAIN, raw)
    if group in (ADDRESS, DATE, PATH):
        return SpokenWord(folded, group, raw)
    if group == NUMBER:
        return SpokenWord("".join(raw.split()), NUMBER, raw)
    if group == "cjk":
        return SpokenWord(raw, PLAIN, raw)
    kind = _kind(raw, folded, opens_sentence=opens_sentence)
    form = folded if kind in (NUMBER, ADDRESS, PATH) else stem(folded)
    return SpokenWord(form, kind, raw)


def _kind(raw: str, folded: str, *, opens_sentence: bool) -> str:
    """Return the kind of fact that a word is by its letters and capitals, ``PLAIN`` for none.

    ``folded`` is the word in lower case.
    """
    if re.search(_DIGIT, raw):
        return NUMBER
    if "." in raw:
        return _dotted_kind(folded)
    is_letter_name = raw == "A" and not opens_sentence  # "client A", which is no article
    has_inner_capital = raw[1:] != folded[1:] and _inner_capital(raw)
    if is_letter_name or "_" in raw or has_inner_capital:
        return NAME
    if stem(folded) in _calendar_stems() and raw != "may":  # "may" is the verb
        return DATE
    if not raw[0].isupper() or folded in _stop_words() or stem(folded) in _stop_words():
        return PLAIN
    # A common word that opens a sentence has its capital from there.
    return PLAIN if opens_sentence and stem(folded) in _common_stems() else NAME


def _dotted_kind(folded: str) -> str:
    """Return the kind of fact that a word with a dot is, by what stands behind its last dot."""
    suffix = folded.rpartition(".")[2]
    if suffix in _FILE_SUFFIXES:
        return PATH
    return ADDRESS if len(suffix) > 1 else PLAIN


def _inner_capital(raw: str) -> bool:
    """Return whether a word has a capital behind its first letter."""
    return any(char.isupper() for char in raw[1:])


def _limits(text: str, words: tuple[SpokenWord, ...]) -> frozenset[str]:
    """Return what denies, bounds or doubts a text, as the values of ``bounds.LIMITS``.

    ``words`` are those of the text.
    """
    result = {_limit_of(word) for word in words} | set(re.findall(MARKED, text))
    if not text.isascii() and re.search(CJK_DENIALS, text):
        result.add(DENIAL)
    return frozenset(result - {""})


def _limit_of(token: SpokenWord) -> str:
    """Return by what value of ``bounds.LIMITS`` a word limits its sentence, "" if it does not."""
    word = token.raw.casefold()
    if token.kind == CODE:
        return ""
    return DENIAL if word.endswith("n't") else LIMITS.get(word, "")


def _clauses(text: str) -> Iterator[Clause]:
    """Yield the clauses of a text; one without a fact and another word is joined to the next."""
    words, facts, limits = set[str](), set[tuple[str, str]](), set[str]()
    for clause in map(_clause, _split_clauses(text)):
        words |= clause.words
        facts |= clause.facts
        limits |= clause.limits
        if facts and len(words) > 1:
            yield Clause(frozenset(words), frozenset(facts), frozenset(limits))
            words, facts, limits = set(), set(), set()
    if words or limits:
        yield Clause(frozenset(words), frozenset(facts), frozenset(limits))


def _split_clauses(text: str) -> Iterator[str]:
    """Yield the parts of a text between commas, conjunctions and the like; code is not split."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick is never closed
        yield from re.split(_CLAUSE, text)
        return
    # Each piece of code is replaced by a placeholder while the text is split.
    code_pieces = iter(parts[1::2])
    prose = "`\0`".join(parts[::2])
    for clause in re.split(_CLAUSE, prose):
        yield re.sub("`\0`", lambda _: f"`{next(code_pieces)}`", clause)


def _clause(text: str) -> Clause:
    """Return a part of a sentence as a clause."""
    # Behind a full stop the first word is not taken for the beginning of a text.
    words = tuple(tokens(f". {text}"))
    return Clause(
        frozenset(word.form for word in words if is_telling(word)),
        frozenset((word.kind, word.form) for word in words if word.kind != PLAIN),
        _limits(text, words),
    )


def _statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text, with a bold label as context of what follows it."""
    for block in blocks(text):
        if block.whole:
            yield Statement(block.raw, block.context)
            continue
        label_match = re.match(_LABEL, block.raw)
        label = label_match.group(1) if label_match else ""
        if re.match(_MEMORY_PARTS, label):
            label = ""
        for number, sentence in enumerate(re.split(_SENTENCE, block.raw)):
            label_above = label if number > 0 else ""  # the first sentence has the label itself
            context = ", ".join(filter(None, (block.context, label_above)))
            yield Statement(sentence.strip(), context, step=block.step)


@lru_cache(_CACHED_TEXTS)
def _fold(text: str) -> str:
    """Return a text for comparing: in lower case, without punctuation, emphasis and backticks."""
    parts = _parts_at_backticks(normal(text).replace("\u2019", "'"))
    parts[::2] = [
        re.sub(_PUNCTUATION, " ", re.sub(_EMPHASIS, "", part)).casefold() for part in parts[::2]
    ]
    return " ".join("".join(parts).split())


@lru_cache(_CACHED_TEXTS)
def stem(word: str) -> str:
    """Return an English word in lower case without its ending; any other one as it is."""
    if not word.isascii():
        return word
    word = word.removesuffix("'s")
    if not word.isalpha():
        return word
    found_stems = stems.analyse(word, frozenset())
    return found_stems[0] if found_stems else word  # a very long word has no stem


@cache
def _stop_words() -> frozenset[str]:
    """Return the words that only carry grammar."""
    return frozenset(word_list("stop.txt"))


@cache
def _common_stems() -> frozenset[str]:
    """Return the stems of the commonest words, with the words that only carry grammar."""
    return frozenset(map(stem, word_list("common.txt"))) | _stop_words()


@cache
def _calendar_stems() -> frozenset[str]:
    """Return the stems of the names of months and weekdays."""
    return frozenset(map(stem, _CALENDAR_NAMES))


_CRUDE_WORD = rf"[{WIDE}]{{2}}|(?:(?![{WIDE}])\w){{2,}}"  # compiled at its first use, as ``_TOKEN``
_CRUDE_LETTERS = 5  # of a word's beginning


def crude_words(text: str) -> set[str]:
    """Return the beginnings of a text's words: cheap, and enough to find related texts."""
    return {
        word[:_CRUDE_LETTERS]
        for word in re.findall(_CRUDE_WORD, text.casefold())
        if word not in _stop_words()
    }

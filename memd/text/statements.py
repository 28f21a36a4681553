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


_TOKEN = re.compile(  # what may be tried in vain is bounded, or time would be quadratic
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
_SUFFIXES = _set(
    "md py js ts json yml yaml toml txt sh log rs go c h cpp java kt rb sql css html xml csv cfg"
    " ini lock env"
)
_DAYS = frozenset((*MONTHS, *_set("monday tuesday wednesday thursday friday saturday sunday")))
_LITTLE = _set("的 了 是 在 和 也 就 而 及 与 着 は が を に の で と も 이 가 은 는 을 를")
_LABEL = re.compile(r"\*\*([^*\n]{1,40})(?:[:\uff1a]\*\*|\*\*[:\uff1a])")
_PARTS = re.compile(r"(?:why|how to apply|said)", re.IGNORECASE)  # of each memory: no context
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+(?=\S)|(?<=[\u3002\uff01\uff1f])\s*(?=\S)")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_PUNCTUATION = re.compile(
    r"[,;:!?.\u3002\uff0c\uff1b\uff1a]+(?=\s|$)|(?<=\s)[\u2013\u2014|-](?=\s)"
)
_CLAUSE = re.compile(
    r"[,;:.!?](?=\s|$)|[()\u2013\u2014|\u3002\uff0c\uff1b\uff1a]|\s-\s"
    r"|\b(?:and|but|while|whereas|which|und|aber|wobei|y|pero|et|mais|e|ma|и|но)\b"
)
_DATED = re.compile(r"\s?\((?:week of )?\d{4}-(?:Q\d|\d\d)(?:-\d\d)?(?: to \d{4}-\d\d)?\)")
_DIGIT = re.compile(r"\d")
_CACHED = 20_000


class SpokenWord(Struct, frozen=True):
    """A word: its comparable form, what kind of fact it is, and what stands in the text."""

    form: str
    kind: str
    raw: str


class Clause(Struct, frozen=True):
    """What a fact is bound to: forms of the telling words, the facts with their kinds, denials."""

    words: frozenset[str]
    facts: frozenset[tuple[str, str]]
    limits: frozenset[str]


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
        return f"{_folded(self.context)}>{_folded(self.raw)}" if self.context else _folded(self.raw)

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
        if FENCE.match(self.raw):
            return tuple(line.strip() for line in self.raw.splitlines()[1:-1] if line.strip())
        return tuple(part.strip() for part in self.raw.split("`")[1::2] if part.strip())

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
    return token.kind != PLAIN or not (
        token.form in _stop() or token.form in DENIALS or token.form in _LITTLE
    )


def tokens(text: str) -> Iterator[SpokenWord]:
    """Yield the words of a text."""
    parts = normal(text).replace("\u2019", "'").split("`")
    if len(parts) % 2 == 0:
        parts = [" ".join(parts)]
    for number, part in enumerate(parts):
        first = number == 0
        for match in _TOKEN.finditer(part):
            yield _token(match, coded=number % 2 == 1, first=first)
            first = part[match.end() : match.end() + 1] in {".", "!", "?", ":", "*"}


def _token(match: re.Match[str], *, coded: bool, first: bool) -> SpokenWord:
    """Return a matched word. In backticks it is ``coded``; ``first`` opens a sentence."""
    raw, group = match.group(), match.lastgroup or ""
    folded = raw.casefold()
    if coded:
        return SpokenWord(stem(folded), CODE, raw)
    if group == "flag":
        return SpokenWord(folded, CODE if raw.startswith("--") else PLAIN, raw)
    if group in (ADDRESS, DATE, PATH):
        return SpokenWord(folded, group, raw)
    if group == NUMBER:
        return SpokenWord("".join(raw.split()), NUMBER, raw)
    if group == "cjk":
        return SpokenWord(raw, PLAIN, raw)
    kind = _kind(raw, folded, first=first)
    return SpokenWord(folded if kind in (NUMBER, ADDRESS, PATH) else stem(folded), kind, raw)


def _kind(raw: str, folded: str, *, first: bool) -> str:
    """Return the kind of fact that a word is by its letters and capitals, ``PLAIN`` for none."""
    if _DIGIT.search(raw):
        return NUMBER
    if "." in raw:
        suffix = folded.rpartition(".")[2]
        return PATH if suffix in _SUFFIXES else ADDRESS if len(suffix) > 1 else PLAIN
    lettered = raw == "A" and not first  # "client A", which is no article
    if lettered or "_" in raw or (raw[1:] != folded[1:] and _inner_capital(raw)):
        return NAME
    if stem(folded) in _days() and (raw != "may"):
        return DATE
    if not raw[0].isupper() or folded in _stop() or stem(folded) in _stop():
        return PLAIN
    return NAME if not first or stem(folded) not in _common() else PLAIN


def _inner_capital(raw: str) -> bool:
    """Return whether a word has a capital behind its first letter."""
    return any(char.isupper() for char in raw[1:])


def _limits(text: str, read: tuple[SpokenWord, ...]) -> frozenset[str]:
    """Return what denies, bounds or doubts a text, as the values of ``bounds.LIMITS``."""
    result = {_bound(token) for token in read} | set(MARKED.findall(text))
    if not text.isascii() and CJK_DENIALS.search(text):
        result.add(DENIAL)
    return frozenset(result - {""})


def _bound(token: SpokenWord) -> str:
    """Return what a word does to its sentence: denies, bounds or doubts it; "" for nothing."""
    word = token.raw.casefold()
    if token.kind == CODE:
        return ""
    return DENIAL if word.endswith("n't") else LIMITS.get(word, "")


def _clauses(text: str) -> Iterator[Clause]:
    """Yield the clauses of a text; one without a fact and another word is joined to the next."""
    words, facts, limits = set[str](), set[tuple[str, str]](), set[str]()
    for clause in map(_clause, _split(text)):
        words |= clause.words
        facts |= clause.facts
        limits |= clause.limits
        if facts and len(words) > 1:
            yield Clause(frozenset(words), frozenset(facts), frozenset(limits))
            words, facts, limits = set(), set(), set()
    if words or limits:
        yield Clause(frozenset(words), frozenset(facts), frozenset(limits))


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a text between commas, conjunctions and the like; code is not split."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        yield from _CLAUSE.split(text)
        return
    coded = parts[1::2]
    plain = "`\0`".join(parts[::2])
    spans = iter(coded)
    for piece in _CLAUSE.split(plain):
        yield re.sub("`\0`", lambda _: f"`{next(spans)}`", piece)


def _clause(text: str) -> Clause:
    """Return a part of a sentence as a clause."""
    there = tuple(tokens(f". {text}"))
    return Clause(
        frozenset(token.form for token in there if is_telling(token)),
        frozenset((token.kind, token.form) for token in there if token.kind != PLAIN),
        _limits(text, there),
    )


def _statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text, with a bold label as context of what follows it."""
    for block in blocks(text):
        if block.whole:
            yield Statement(block.raw, block.context)
            continue
        label_match, label = _LABEL.match(block.raw), ""
        for number, sentence in enumerate(_SENTENCE.split(block.raw)):
            context = ", ".join(filter(None, (block.context, label)))
            yield Statement(sentence.strip(), context, step=block.step)
            if number == 0 and label_match and not _PARTS.match(label_match.group(1)):
                label = label_match.group(1)


@lru_cache(_CACHED)
def _folded(text: str) -> str:
    """Return a text for comparing: in lower case, without punctuation, emphasis and backticks."""
    parts = normal(text).replace("\u2019", "'").split("`")
    if len(parts) % 2 == 0:
        parts = [" ".join(parts)]
    parts[::2] = [_PUNCTUATION.sub(" ", _EMPHASIS.sub("", part)).casefold() for part in parts[::2]]
    return " ".join("`".join(parts).replace("`", "").split())


@lru_cache(_CACHED)
def stem(word: str) -> str:
    """Return an English word in lower case without its ending; any other one as it is."""
    if not word.isascii():
        return word
    word = word.removesuffix("'s")
    return (stems.analyse(word, ()) or [word])[0] if word.isalpha() else word


@cache
def _stop() -> frozenset[str]:
    """Return the words that only carry grammar."""
    return frozenset(word_list("stop.txt"))


@cache
def _common() -> frozenset[str]:
    """Return the stems of the commonest words, with the words that only carry grammar."""
    lists = word_list("common.txt")
    return frozenset(map(stem, lists)) | _stop()


@cache
def _days() -> frozenset[str]:
    """Return the stems of the names of months and weekdays."""
    return frozenset(map(stem, _DAYS))


_CRUDE = re.compile(rf"[{WIDE}]{{2}}|(?:(?![{WIDE}])\w){{2,}}")
_LETTERS = 5


def crude_words(text: str) -> set[str]:
    """Return the beginnings of a text's words: cheap, and enough to find related texts."""
    return {word[:_LETTERS] for word in _CRUDE.findall(text.casefold()) if word not in _stop()}


def undated(text: str) -> str:
    """Return a text without the ISO dates that were put behind relative dates."""
    return _DATED.sub("", text)

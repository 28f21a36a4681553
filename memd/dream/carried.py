"""Whether what one memory said is said by others. Pure.

Rules of this file
- Strict: each sentence stands there word for word, dates perhaps more exactly, and the words of
  the description stand somewhere. For ``user`` and ``feedback`` memories there is nothing but
  this, by the rules of ``verbatim.py``, and only memories of these two types can say it.
- So it is for memories without a type, which any memory may take in: people write them by hand.
- Loose, for all others: a sentence that does not stand word for word is still said when its facts
  (numbers, names, code, days, what is quoted) are there, half of its telling words are, and no
  sentence there denies it. Of the telling words of the whole memory 70 % must be there. A block of
  code stands as it was or not at all.
- A "Why" and a "How to apply" go with their memory.
- Sentences deny each other as ``similarity`` says, and when they resemble each other and what one
  denies the other affirms ("pnpm, not npm"), one has the opposite word of the other, both have
  the same words in another order, or each has just one word that the other lacks: "Ann approves
  deploys" is not "Bob approves deploys", and nothing here knows what is a synonym.
- To find what denies a sentence costs a bounded number of comparisons. Where that is not enough,
  nothing is proven.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from memd.core import limits
from memd.core.values import PERSONAL
from memd.documents.document import Document
from memd.dream.similarity import FENCE, Claim, Prose, claim, denies
from memd.dream.verbatim import DATED, Verbatim, missing
from memd.dream.wording import CJK, short, words

# Facts are looked for one by one; of the other words nearly a third is a matter of phrasing: the
# same note written by two people shares about three words in four.
STATEMENT = 0.7
_EACH = 0.5  # of one sentence: what has half of its words missing is another sentence
_RESEMBLING = 0.5  # as in similarity.py, below it sentences speak of different things
_WORK = 200_000  # steps of comparison for one memory, some 50 ms; 500 sentences take a tenth
_SHARED = 8  # words that are compared in the time of one other step
_LITTLE = frozenset(
    words(
        "a an the of to in on at for by and or is are was were be been am it its this that these "
        "those with as how what when where which who why we i you he she they our your their my "
        "do does did has have had will would can could should if so then there here from into "
        "的 了 是 在 和 也 就 都 而 及 与 着"
    )
)
_DENIES_NEXT = frozenset(words("not no never without avoid instead than over nor stop except"))
_PAIRS = words(
    "always never, enable disable, enabled disabled, before after, allow forbid, on off, "
    "allowed forbidden, required optional, must may, more less, first last, up down, "
    "include exclude, with without, true false, all none, public private, accept reject, "
    "add remove, start stop, can cannot, some all, sometimes always, above below"
)
_OPPOSITE = frozenset(
    pair
    for one, two in zip(_PAIRS[::2], _PAIRS[1::2], strict=True)
    for pair in ((one, two), (two, one))
)
_OPPOSED = frozenset(_PAIRS)
_CJK = re.compile(f"[{CJK}]")
_PARTS = re.compile(r"[:/'_-]")
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_QUOTED = re.compile('["\u201c\u300c]([^"\u201c\u201d\u300c\u300d\n]{2,80})["\u201d\u300d]')
_REASON = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*)?(?P<name>why|how to apply)"
    r"(?:[:\uff1a]\*\*|\*\*[:\uff1a]|[:\uff1a])(?P<text>.*)",
    re.IGNORECASE,
)


class Facts:
    """What a memory says, each form of it worked out once."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @property
    def lasting(self) -> bool:
        """Whether it is a person's rule."""
        return self.document.type in PERSONAL

    @property
    def untyped(self) -> bool:
        """Whether nothing says what it is, so that a person's rule may stand in it."""
        return self.document.type is None

    @cached_property
    def verbatim(self) -> Verbatim:
        """The sentences with what they stand under."""
        return Verbatim(self.document)

    @cached_property
    def body(self) -> dict[str, str]:
        """The sentences of the text by what they are compared by."""
        return Prose(self.document.body).sentences

    @cached_property
    def described(self) -> dict[str, str]:
        """The sentences of the description, likewise."""
        return Prose(self.document.description).sentences

    @cached_property
    def sentences(self) -> dict[str, str]:
        """All sentences, likewise."""
        return self.body | self.described

    @cached_property
    def forms(self) -> frozenset[str]:
        """What all sentences are compared by, with the dates in brackets and without."""
        return frozenset(form for name in self.sentences for form in (name, DATED.sub("", name)))

    @cached_property
    def words(self) -> frozenset[str]:
        """All words in their short form, compound ones in their parts too."""
        return frozenset((*self._terms, *_known(self._results)))

    @cached_property
    def statement(self) -> frozenset[str]:
        """The words that say something, in their short form."""
        return frozenset(self._terms)

    @cached_property
    def _results(self) -> tuple[str, ...]:
        return words(f"{self.document.description}\n{self.document.body}")

    @cached_property
    def _terms(self) -> tuple[str, ...]:
        return tuple(_terms(self._results))

    @cached_property
    def denials(self) -> "Denials":
        """Its sentences, to find those that deny others."""
        return Denials(self.sentences.values())

    @cached_property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Each "why" and "how to apply" with what it says."""
        return tuple(_reasons(self.document.body))


class _Sentence:
    """A sentence with what denials are found by; most are never looked at but for their words."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self._results = words(raw)
        self.words = frozenset(self._results)

    @cached_property
    def claim(self) -> Claim:
        """What it is held against others by."""
        return claim(self.raw)

    @cached_property
    def denied(self) -> frozenset[str]:
        """The words that it says "not" or the like of."""
        denied = {
            next(
                (later for later in self._results[place + 1 : place + 4] if later not in _LITTLE),
                "",
            )
            for place, word in enumerate(self._results)
            if word in _DENIES_NEXT
        }
        return frozenset(denied - {""})

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Its telling words as they follow each other."""
        return tuple(word for word in self._results if word not in _LITTLE)

    @cached_property
    def statement(self) -> frozenset[str]:
        """Its telling words in their short form."""
        return frozenset(map(short, self.order))


class Denials:
    """Sentences that may deny others. ``spent`` once the work for finding them was too much."""

    def __init__(self, sentences: Iterable[str], work: int = _WORK) -> None:
        self._sentences = [_Sentence(raw) for raw in sentences if not FENCE.match(raw)]
        self._left = work
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for number, sentence in enumerate(self._sentences):
            for word in sentence.words:
                self._by_word[word].append(number)

    @property
    def spent(self) -> bool:
        """Whether the work was too much, so that "" means nothing."""
        return self._left < 0

    def of(self, raw: str) -> str:
        """Return the first sentence that denies this one, "" when none does."""
        if self.spent or FENCE.match(raw):
            return ""
        one = _Sentence(raw)
        size = len(one.words)
        # Who shares half of the words has at least one of any half of them and one more.
        ordered = sorted(one.words, key=lambda word: len(self._by_word.get(word, ())))
        near: set[int] = set()
        for word in ordered[: size - (size + 1) // 2 + 1]:
            result = self._by_word.get(word, ())
            self._left -= len(result)
            if self._left < 0:
                return ""
            near.update(result)
        for number in sorted(near):
            two = self._sentences[number]
            self._left -= 1 + min(size, len(two.words)) // _SHARED
            if _denied(one, two):
                return two.raw
        return ""


def is_shown(body: str) -> bool:
    """Whether recall shows all of a memory's text."""
    text = body.strip("\r\n")
    lines = text.count("\n") + 1
    return lines <= limits.SURFACED_LINES and len(text.encode()) <= limits.SURFACED_BYTES


def holds(target: Document, source: Document) -> bool:
    """Whether a memory says everything that another one said, word for word."""
    return _stands(Facts(source), [Facts(target)])


def lacks(source: Facts, targets: Sequence[Facts]) -> str:
    """Return a sentence of a memory that the others together do not say, "" when they say all."""
    if source.lasting:
        people = [target.verbatim for target in targets if target.lasting]
        return missing(source.verbatim, people) or reason_lost(source, targets)
    if _stands(source, targets):
        return ""
    forms = frozenset[str]().union(*(target.forms for target in targets))
    known = frozenset[str]().union(*(target.words for target in targets))
    lost = [raw for name, raw in source.sentences.items() if name not in forms]
    if source.untyped and lost:
        return lost[0]
    reported = {raw: statement(raw) for raw in lost}
    for raw in lost:
        if not _reported(raw, reported[raw], known) or _refused(raw, targets):
            return raw
    if lost and _share(source.statement, known) < STATEMENT:
        return min(lost, key=lambda raw: _share(reported[raw], known))
    return reason_lost(source, targets)


def reason_lost(source: Facts, targets: Sequence[Facts]) -> str:
    """Return the "why" or "how to apply" of a memory that no other one gives, "" for none."""
    if not source.reasons:
        return ""
    names = {name for target in targets for name, _ in target.reasons}
    known = frozenset[str]().union(*(target.words for target in targets))
    for name, text in source.reasons:
        if name not in names or _share(statement(text), known) < STATEMENT:
            return f"{name}: {text.strip()}"
    return ""


def statement(text: str) -> frozenset[str]:
    """Return the words of a text that say something, in their short form; CJK in pairs."""
    return frozenset(_terms(words(text)))


def facts(sentence: str) -> frozenset[str]:
    """Return the words of a sentence that name something, in their short form."""
    named = [word for word in claim(sentence).facts if word not in _LITTLE]
    first = next((part for part in sentence.split() if any(map(str.isalnum, part))), "")
    if sum(map(str.isupper, first)) > 1 or any(map(str.isdigit, first)) or "`" in first:
        named += words(first)
    for quoted in _QUOTED.findall(sentence):
        named += words(quoted)
    return frozenset(short(word) for word in named if word not in _LITTLE)


def _stands(source: Facts, targets: Sequence[Facts]) -> bool:
    """Whether each sentence stands there, and each word of the description."""
    if source.lasting:
        return not lacks(source, targets)
    forms = frozenset[str]().union(*(target.forms for target in targets))
    if not source.body.keys() <= forms:
        return False
    rest = " ".join(raw for name, raw in source.described.items() if name not in forms)
    wanted = frozenset(map(short, words(rest))) - _LITTLE
    if wanted and not wanted <= frozenset[str]().union(*(target.words for target in targets)):
        return False
    return not reason_lost(source, targets)


def _reported(raw: str, said: frozenset[str], known: frozenset[str]) -> bool:
    """Whether other memories hold the facts and half the words of a sentence (code: all of it)."""
    if FENCE.match(raw) or _share(said, known) < _EACH:
        return False
    return raw.startswith("#") or facts(raw) <= known  # a heading has its capitals for show


def _refused(raw: str, targets: Sequence[Facts]) -> bool:
    return any(target.denials.of(raw) or target.denials.spent for target in targets)


def _share(wanted: frozenset[str], known: frozenset[str]) -> float:
    return len(wanted & known) / len(wanted) if wanted else 1.0


def _denied(one: _Sentence, two: _Sentence) -> bool:
    left, right = one.words, two.words
    if 2 * min(len(left), len(right)) < max(len(left), len(right)):
        return False
    if denies(one.claim, two.claim):
        return True
    if len(left & right) < _RESEMBLING * len(left | right):
        return False
    if one.denied & (right - two.denied) or two.denied & (left - one.denied):
        return True
    mine, others = (left - right) & _OPPOSED, (right - left) & _OPPOSED
    if any((word, other) in _OPPOSITE for word in mine for other in others):
        return True
    swapped = len(one.statement - two.statement) == 1 == len(two.statement - one.statement)
    return swapped or (one.order != two.order and Counter(one.order) == Counter(two.order))


def _terms(result: Iterable[str]) -> Iterator[str]:
    before = ""
    for word in result:
        if _CJK.match(word):
            if before:
                yield before + word
            before = word
            continue
        before = ""
        if word not in _LITTLE:
            yield short(word)


def _known(result: Iterable[str]) -> Iterator[str]:
    for word in set(result):
        yield short(word)
        if not word.isalnum() and not _DATE.fullmatch(word):
            yield from (short(part) for part in _PARTS.split(word) if part)


def _reasons(body: str) -> Iterator[tuple[str, str]]:
    name, lines = "", list[str]()
    for line in body.splitlines():
        result = _REASON.match(line)
        ends = any(part.strip() for part in lines) and not line.strip()
        if name and (result or ends or line.startswith("#")):
            yield name, " ".join(lines)
            name, lines = "", []
        if result:
            name, lines = result["name"].lower(), [result["text"]]
        elif name:
            lines.append(line)
    if name:
        yield name, " ".join(lines)

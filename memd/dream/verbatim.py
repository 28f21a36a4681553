"""A person's own sentences, word for word, each with what gives it its meaning. Pure.

Rules of this file
- ``user`` and ``feedback`` memories are a person's rules. What counts of them is each sentence as
  it is written: only white space, emphasis, the full stop and the case of plain words outside of
  code are dress, and a date in brackets may be added to a relative one (``rules.py``). The
  description counts as a sentence.
- A sentence means what it stands under: the headings above it, the line with a colon that leads
  to it, the bold label before it, the head of its table, and whether it is quoted, code or
  commented out. The same words under something else are another sentence. Headings and such lines
  are sentences themselves.
- "Never do this." means the sentence before it. So sentences may stand next to each other in one
  paragraph or list item only as they did before, or where whole ones follow each other; and
  nothing else comes between two paragraphs of a memory, wherever they go.
- The sentences of a memory keep their order. What stood in a target before keeps its own place.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from memd.documents.document import Document
from memd.dream.similarity import FENCE, ITEM, Prose, Unit
from memd.text.normal import normal

DATED = re.compile(r"\s?\((?:week of )?\d{4}-\d\d-\d\d\)")  # as core/dates.py puts it
_SIGNS = re.compile(r"[ \t]*(#{1,6})[ \t]")
_UNDERLINED = re.compile(r"[^\n]*\n[ ]{0,3}(=+|-+)[ \t]*")
_BOLD = re.compile(r"\*\*[^*\n]{1,40}(?<![.!?])\*\*")  # alone in a paragraph it is a heading
_INDENTED = 4  # columns from which Markdown shows code
_EMPHASIS = re.compile(r"\*\*|__")
# "-D" is not "-d", nor is a path or a name with signs in it that of another case.
_PLAIN = re.compile(r"[(\[\"'\u2018\u201c*_]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*[^\w\s/\\@#$=+~-]*")
_LINE_OF_TABLE = frozenset("|-: \t")
_COMMENT, _COMMENT_END = "<!--", "-->"


@dataclass(frozen=True, slots=True)
class Stand:
    """A sentence as it is compared, and what it stands under, the widest first."""

    key: str
    under: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence as it is written, and how it stands. ``item``: in a list, or a heading."""

    stand: Stand
    raw: str
    item: bool = False


@dataclass(slots=True)
class _Label:
    """A line that leads to what follows; ``fed`` once something did."""

    key: str
    columns: int
    item: bool
    fed: bool = False

    def over(self, columns: int, *, item: bool) -> bool:
        """Whether a part of the text that begins at these columns is what the line leads to."""
        if self.item:
            return columns > self.columns
        return item or columns > self.columns or not self.fed


class Verbatim:
    """The sentences of one memory: ``runs`` are its paragraphs, list items and headings.

    ``written`` are those of the text, ``body`` its sentences in order, ``sentences`` those of the
    description too.
    """

    def __init__(self, document: Document) -> None:
        self.written = tuple(_runs(document.body))
        self.runs = (*_runs(document.description), *self.written)
        self.body = tuple(said for run in self.written for said in run)
        self.sentences = tuple(said for run in self.runs for said in run)

    @cached_property
    def forms(self) -> frozenset[Stand]:
        """How the sentences stand, with the dates in brackets and without."""
        stands = [said.stand for said in self.sentences]
        return frozenset(stands) | frozenset(map(undated, stands))


class Known:
    """All sentences that people's rules had before, and which of them followed which."""

    def __init__(self, memories: Iterable[Verbatim]) -> None:
        retained = list(memories)
        self.memories = tuple(retained)
        self.stands = {said.stand for memory in retained for said in memory.sentences}
        self._places: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
        self._first: set[str] = set()
        self._last: set[str] = set()
        for number, run in enumerate(run for memory in retained for run in memory.runs):
            self._first.add(run[0].stand.key)
            self._last.add(run[-1].stand.key)
            for place, said in enumerate(run):
                places = self._places[said.stand.key]
                places[number] = places.get(number, (place, place))[0], place

    def has(self, stand: Stand) -> bool:
        """Whether a sentence stood like this, perhaps without its date."""
        return stand in self.stands or undated(stand) in self.stands

    def follows(self, one: Stand, two: Stand) -> bool:
        """Whether one sentence may stand before the other within one paragraph."""
        first, second = self._name(one), self._name(two)
        if first in self._last and second in self._first:
            return True
        left, right = self._places.get(first, {}), self._places.get(second, {})
        return any(left[run][0] < right[run][1] for run in left.keys() & right.keys())

    def _name(self, stand: Stand) -> str:
        return stand.key if stand.key in self._places else undated(stand).key


def key(sentence: str) -> str:
    """Return what two sentences have in common exactly when they are written with the same words.

    Stricter than similarity's, which takes the marks between clauses for dress.
    """
    if FENCE.match(sentence):
        return sentence
    parts = normal(sentence, "NFC").split("`")
    parts[::2] = [_folded(part) for part in parts[::2]]
    if len(parts) % 2 == 0:  # a mark without its twin
        parts[-1] = _folded(parts[-1])
    return " ".join("".join(parts).split()).rstrip(".。 ")


def _folded(text: str) -> str:
    """Return prose without its dress; words that are more than letters keep their case."""
    plain = _EMPHASIS.sub("", text)
    return re.sub(r"\S+", _fold, plain)


def _fold(result: re.Match[str]) -> str:
    word = result.group()
    return word.casefold() if _PLAIN.fullmatch(word) else word


def undated(stand: Stand) -> Stand:
    """Return how a sentence stands without the dates in brackets."""
    return Stand(DATED.sub("", stand.key), stand.under)


def missing(source: Verbatim, targets: Sequence[Verbatim]) -> str:
    """Return the first sentence that stands in no target as it did, "" when each does."""
    lacks = (
        said.raw
        for said in source.sentences
        if not any(said.stand in target.forms for target in targets)
    )
    return next(lacks, "")


def foreign(after: Verbatim, known: Known) -> str:
    """Return the first sentence that stood in no person's rule like this, "" when each did."""
    return next((said.raw for said in after.sentences if not known.has(said.stand)), "")


def whole(after: Verbatim, known: Known) -> tuple[Verbatim, ...]:
    """Return the rules of before all of whose sentences stand in a memory."""
    return tuple(
        memory
        for memory in known.memories
        if all(said.stand in after.forms for said in memory.sentences)
    )


def partial(after: Verbatim, before: Iterable[Verbatim]) -> str:
    """Return the first sentence of a memory that stood in none of these, "" when each did.

    A sentence without those that stood beside it in its rule may say something else.
    """
    said_before = frozenset[Stand]().union(*(memory.forms for memory in before))
    lacks = (
        said.raw
        for said in after.sentences
        if said.stand not in said_before and undated(said.stand) not in said_before
    )
    return next(lacks, "")


def torn(after: Verbatim, known: Known) -> str:
    """Return the first sentence that stands behind another one than before, "" when none does."""
    looked: set[tuple[str, str]] = set()
    for run in after.runs:
        for one, two in pairwise(run):
            pair = one.stand.key, two.stand.key
            if pair not in looked and not known.follows(one.stand, two.stand):
                return two.raw
            looked.add(pair)
    return ""


def turned(before: Verbatim, after: Verbatim, old: Container[Stand] = ()) -> str:
    """Return the first sentence of a memory that changed its place among its own, "" for none.

    ``old`` are sentences that came into ``after`` from elsewhere too, perhaps in that order.
    """
    there = [said.stand for said in after.body]
    forms = {form for stand in there for form in (stand, undated(stand))}
    own: dict[Stand, str] = {}
    for said in before.body:
        if said.stand in forms and said.stand not in old:
            own.setdefault(said.stand, said.raw)
    rest = iter(there)
    for stand, raw in own.items():
        if not any(stand in (result, undated(result)) for result in rest):
            return raw
    return ""


def parted(before: Verbatim, after: Verbatim, old: Container[Stand] = ()) -> str:
    """Return the first paragraph of a memory that something else came before, "" for none.

    List items and headings may follow anything; ``old`` as above.
    """
    own = {said.stand for said in before.body}
    behind = {run[0].stand: run[0].raw for run in before.written if not run[0].item}
    for ahead, run in pairwise((*before.written[:1], *before.written)):
        if run is ahead or ahead[-1].stand in old or run[0].stand in old:
            behind.pop(run[0].stand, None)  # where it stands once, nothing need be before it
    lonely: dict[str, None] = {}
    joined: set[str] = set()
    for ahead, run in pairwise(after.written):
        raw = behind.get(run[0].stand) or behind.get(undated(run[0].stand), "")
        if ahead[-1].stand in own or undated(ahead[-1].stand) in own:
            joined.add(raw)
        elif raw:
            lonely[raw] = None
    return next((raw for raw in lonely if raw not in joined), "")


def _runs(text: str) -> Iterator[tuple[Statement, ...]]:
    headings: list[tuple[int, str]] = []
    labels: list[_Label] = []
    hidden, head, row = False, "", ""
    for unit in Prose(text).units:
        columns, item = _columns(unit.raw), ITEM.match(unit.raw) is not None
        level = _level(unit.raw)
        if level:
            headings = [(other, name) for other, name in headings if other < level]
            labels.clear()
        while labels and not labels[-1].over(columns, item=item):
            labels.pop()
        if labels:
            labels[-1].fed = True
        head = _head(unit.raw, head, row)
        under = (
            *(name for _, name in headings),
            *(label.key for label in labels),
            *_dress(unit, columns, item=item, hidden=hidden),
            *([head] if head else []),
        )
        listed = item or level > 0
        run = tuple(
            Statement(Stand(key(raw), under), raw, listed) for raw in unit.sentences if key(raw)
        )
        if run:
            yield run
        hidden = _hidden(unit.raw, hidden=hidden)
        name = DATED.sub("", run[-1].stand.key if run else "")
        row = name if _is_row(unit.raw) else ""
        if level:
            headings.append((level, name))
        elif _leads_on(unit):
            labels.append(_Label(name, columns, item))


def _leads_on(unit: Unit) -> bool:
    if FENCE.match(unit.raw):
        return False
    colon = unit.raw.rstrip(" \t*_").endswith((":", "\uff1a"))
    return colon or _BOLD.fullmatch(unit.raw.strip()) is not None


def _columns(raw: str) -> int:
    line = raw.expandtabs(_INDENTED)
    return len(line) - len(line.lstrip(" "))


def _level(raw: str) -> int:
    """Return the level of a heading, 0 for anything else."""
    signs = _SIGNS.match(raw)
    if signs:
        return len(signs.group(1))
    line = _UNDERLINED.fullmatch(raw)
    return 0 if line is None else 1 + (line.group(1)[0] == "-")


def _dress(unit: Unit, columns: int, *, item: bool, hidden: bool) -> Iterator[str]:
    """Yield what a part of the text is shown as, where that is not plain prose."""
    if hidden:
        yield _COMMENT
    start = unit.raw.lstrip()[:1]
    if start in (">", "|"):
        yield start
    elif columns >= _INDENTED and not item:
        yield " "
    bullet = ITEM.match(unit.lead)
    label = key(unit.lead[bullet.end() :] if bullet else unit.lead)
    if label:
        yield label


def _is_row(raw: str) -> bool:
    return raw.lstrip().startswith("|")


def _head(raw: str, head: str, row: str) -> str:
    """Return the head of the table that a row stands in; a line of dashes makes one of a row."""
    if not _is_row(raw):
        return ""
    return row if "-" in raw and set(raw) <= _LINE_OF_TABLE else head


def _hidden(raw: str, *, hidden: bool) -> bool:
    """Whether what follows is commented out."""
    opened, closed = raw.rfind(_COMMENT), raw.rfind(_COMMENT_END)
    return opened > closed or (hidden and closed < 0)

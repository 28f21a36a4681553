"""What a dream may do with a person's own rules: nothing but move them, whole. Pure.

Rules of this file
- Each sentence of a ``user`` or ``feedback`` memory stands afterwards, as ``verbatim.py`` has it,
  in the same memory or in one of these two types that it went into, in the same order and with
  nothing between what belongs together. No sentence stands in one that did not stand in one before,
  and none comes into one without all the others of its rule: "Push to main." may have stood behind
  "Never do this.". A date that comes in where
  there was a relative one is the one that was meant when the memory was written, give or take a
  week: nobody can tell which Thursday somebody had in mind, nor in which time zone.
- Its name, its type and all its other fields stay, but the stamps of who wrote last. A new one may
  have what these memories had.
- Each line of its head stood in the head of a rule before, or is a plain one that memd itself would
  write: a comment, a second type or a folded text says to people what memd does not see.
- No memory becomes one of these types, and none claims in a field of its head to come from
  somebody else than before: what a model gathered is not what a person said.
- Of each memory one sentence is named, so that whoever mends it knows where to look.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memd.core import instants
from memd.documents.document import Document, plain, split
from memd.dream.carried import Facts
from memd.dream.values import quoted
from memd.dream.verbatim import (
    DATED,
    Known,
    Stand,
    Verbatim,
    foreign,
    missing,
    parted,
    partial,
    torn,
    turned,
    undated,
    whole,
)
from memd.text.dates import resolve

_STAMPS = frozenset({"modified", "originSessionId", "node_type", "type"})
# What other programs and people write in a head to say whose words these are.
_ORIGINS = frozenset(
    {"origin", "source", "provenance", "author", "actor", "by", "user", "said_by", "saidby"}
    | {"trust", "trusted", "verified", "confirmed", "confidence"}
)
_DAY = 86_400.0
_DAYS = range(-7, 8)
_SAID = re.compile(r"(?:name|description): ")
_STAMP_LINE = re.compile(r"metadata:|[ ]*(?:node_type: memory|modified: [\dTZ:.+\"-]+|"
                     r"originSessionId: [\w\"-]{1,100})")  # fmt: skip


def problems(
    old: Mapping[str, Facts],
    new: Mapping[str, Facts],
    places: Mapping[str, Sequence[str]],
    times: Mapping[str, float],
) -> Iterator[str]:
    """Yield what a dream would do to people's rules, or pass off as one.

    ``old`` and ``new`` are the memories before and after by path, the same object where nothing
    changed; ``places`` are the paths of those that each is in afterwards. ``times`` are the mtimes
    before, in seconds since 1970.
    """
    people = [said for said in old.values() if said.lasting]
    known = Known(said.verbatim for said in people)
    names = {said.document.name for said in people}
    shared = _shared(old, places)
    for path, said in old.items():
        for place in places[path]:
            if said.lasting and new[place].lasting and new[place] is not old.get(place):
                there = frozenset[Stand]() if place == path else shared[place]
                where = path if place == path else f"{path} in {place}"
                yield from _moved(where, said, new[place], there)
    for path, after in new.items():
        before = old.get(path)
        if after is before:
            continue
        yield from _origin(path, before, after)
        if before is not None and before.lasting:
            yield from _retained(path, before, after, [new[place] for place in places[path]])
        if after.lasting:
            yield from _added(path, before, after, known, names)
            moved = [said.verbatim for other, said in old.items() if path in places[other]]
            yield from _parts(path, after, known, moved)
            yield from _dates(path, after, known, old, times)


def _origin(path: str, before: Facts | None, after: Facts) -> Iterator[str]:
    """Yield where a memory would pass for something that it was not."""
    kind = after.document.type
    if before is not None and before.document.type != kind and (before.lasting or after.lasting):
        was, now = before.document.type or "none", kind or "none"
        yield f"{path} would change its type from {was} to {now}"
    fields = {} if before is None else before.document.metadata
    for name, text in after.document.metadata.items():
        claims = name.casefold().replace("-", "_") in _ORIGINS
        if claims and fields.get(name) != text:
            yield f"{path} would say of itself where it comes from: {quoted(f'{name}: {text}')}"


def _retained(path: str, before: Facts, after: Facts, targets: Sequence[Facts]) -> Iterator[str]:
    """Yield what a person's rule would lose."""
    people = [target.verbatim for target in targets if target.lasting]
    lost = missing(before.verbatim, people)
    if lost:
        yield f"{path} would be reworded: '{quoted(lost)}'"
    if _fields(before.document) != _fields(after.document):
        yield f"{path} would get another name or other fields"


def _shared(
    old: Mapping[str, Facts], places: Mapping[str, Sequence[str]]
) -> dict[str, frozenset[Stand]]:
    """Return by place the sentences that several memories bring there, each in its own order."""
    brought: dict[str, Counter[Stand]] = defaultdict(Counter)
    for path, said in old.items():
        for place in places[path]:
            if said.lasting:
                brought[place].update(said.verbatim.forms)
    return {
        place: frozenset(stand for stand, count in stands.items() if count > 1)
        for place, stands in brought.items()
    }


def _moved(where: str, before: Facts, after: Facts, there: frozenset[Stand]) -> Iterator[str]:
    """Yield where the sentences of a rule would stand in another order, or apart."""
    moved = turned(before.verbatim, after.verbatim, there)
    lonely = "" if moved else parted(before.verbatim, after.verbatim, there)
    if moved:
        yield f"{where} would be reordered at '{quoted(moved)}'"
    if lonely:
        yield f"{where} would have something else before '{quoted(lonely)}'"


def _added(
    path: str, before: Facts | None, after: Facts, known: Known, names: set[str]
) -> Iterator[str]:
    """Yield what a memory would say as a person's word that no person's rule said."""
    new = foreign(after.verbatim, known)
    if new:
        yield f"{path} would say something new as a person's word: '{quoted(new)}'"
        return
    place = torn(after.verbatim, known)
    if place:
        yield f"{path} would have '{quoted(place)}' behind another sentence than before"
    if before is None and after.document.name not in names and not _from_path(path, after):
        yield f"{path} would have a name that no rule had: '{quoted(after.document.name)}'"


def _parts(path: str, after: Facts, known: Known, moved: Sequence[Verbatim]) -> Iterator[str]:
    """Yield where a memory would have something of a rule and not all of it as it stood there.

    ``moved`` are the rules that are in this memory now, itself among them: how they stand there
    was looked at before.
    """
    rules = whole(after.verbatim, known)
    said = [*moved, *rules]
    part = partial(after.verbatim, said)
    if part and not foreign(after.verbatim, known):
        yield f"{path} would say a part of a rule without the rest: '{quoted(part)}'"
    counts = Counter(stand for rule in said for stand in rule.forms)
    shared = frozenset(stand for stand, count in counts.items() if count > 1)
    for rule in rules:
        if rule in moved:
            continue
        piece = turned(rule, after.verbatim, shared) or parted(rule, after.verbatim, shared)
        if piece:
            yield f"{path} would have a rule in pieces at '{quoted(piece)}'"


def _dates(
    path: str,
    after: Facts,
    known: Known,
    old: Mapping[str, Facts],
    times: Mapping[str, float],
) -> Iterator[str]:
    """Yield where a sentence of a rule would get a date that it does not mean."""
    for said in after.verbatim.sentences:
        if said.stand in known.stands or not known.has(said.stand):
            continue
        rules = [
            (place, rule.document)
            for place, rule in old.items()
            if rule.lasting and undated(said.stand) in rule.verbatim.forms
        ]
        at = {when for place, rule in rules for when in written(rule, times.get(place))}
        if wrong_date(said.raw, at):
            yield f"{path} would get a date that was not meant: '{quoted(said.raw)}'"
            return


def _from_path(path: str, after: Facts) -> bool:
    stem = path.rpartition("/")[2].removesuffix(".md")
    return after.document.name.replace("-", "_") == stem.replace("-", "_")


def _fields(document: Document) -> dict[str, str]:
    retained = {name: text for name, text in document.metadata.items() if name not in _STAMPS}
    return retained | {"name": document.name}


def written(document: Document, mtime: float | None) -> Iterator[float]:
    """Yield when a memory may have been written, in seconds since 1970: its stamp, its mtime."""
    stamp = instants.written(document.metadata.get("modified", ""))
    yield from (at for at in (stamp, mtime) if at is not None)


def wrong_date(sentence: str, times: Collection[float]) -> bool:
    """Whether a sentence has a date in brackets that it does not mean.

    ``times`` are those at which it may have been written.
    """
    result = frozenset(_bracketed(sentence))
    plain = DATED.sub("", sentence)
    days = (at + day * _DAY for at in times for day in _DAYS)
    right = frozenset(date for at in days for date in _bracketed(resolve(plain, at)))
    return not result <= right


def _bracketed(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield each date in brackets with its place in the sentence without them."""
    passed = 0
    for match in DATED.finditer(sentence):
        yield match.start() - passed, match.group().strip()
        passed += len(match.group())


def foreign_line(content: bytes, document: Document, known: Iterable[bytes]) -> str:
    """Return the first line of a rule's head that it may not have, "" for none.

    ``known`` are the rules of before.
    """
    stood = frozenset(line for rule in known for line in _head_lines(rule))
    kind = f"type: {document.type}"
    own = (line for line in _head_lines(content) if line not in stood and line.strip() != kind)
    return next((line for line in own if not _is_plain_line(line)), "")


def _head_lines(content: bytes) -> Iterator[str]:
    fenced = split(content)
    return iter(()) if fenced is None else (line.rstrip() for line in fenced.lines)


def _is_plain_line(line: str) -> bool:
    if _SAID.match(line):
        return " #" not in line and plain((line,)) is not None
    return not line or _STAMP_LINE.fullmatch(line) is not None

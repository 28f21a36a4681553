"""What a dream may do with a person's own rules: nothing but move them, whole. Pure.

Rules of this file
- Each sentence of a ``user`` or ``feedback`` memory stands afterwards, as ``verbatim.py`` has it,
  in the same memory or in one of these two types that it went into, in the same order and with
  nothing between what belongs together. No sentence stands in one that did not stand in one before,
  and none comes into one without all the others of its rule: "Push to main." may have stood behind
  "Never do this.". A date that comes in is the one that was meant (``dated.py``).
- Its name, its type and all its other fields stay, but the stamps of who wrote last. A new one may
  have what these memories had.
- No memory becomes one of these types, and none claims in a field of its head to come from
  somebody else than before: what a model gathered is not what a person said.
- Of each memory one sentence is named, so that whoever mends it knows where to look.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from memd.documents.document import Document
from memd.dream import dated
from memd.dream.carried import Said
from memd.dream.verbatim import (
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
from memd.dream.verdict import quoted

_STAMPS = frozenset({"modified", "originSessionId", "node_type", "type"})
# What other programs and people write in a head to say whose words these are.
_ORIGINS = frozenset(
    {"origin", "source", "provenance", "author", "actor", "by", "user", "said_by", "saidby"}
    | {"trust", "trusted", "verified", "confirmed", "confidence"}
)


def problems(
    old: Mapping[str, Said],
    new: Mapping[str, Said],
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
            yield from _kept(path, before, after, [new[place] for place in places[path]])
        if after.lasting:
            yield from _added(path, before, after, known, names)
            moved = [said.verbatim for other, said in old.items() if path in places[other]]
            yield from _parts(path, after, known, moved)
            yield from _dates(path, after, known, old, times)


def _origin(path: str, before: Said | None, after: Said) -> Iterator[str]:
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


def _kept(path: str, before: Said, after: Said, targets: Sequence[Said]) -> Iterator[str]:
    """Yield what a person's rule would lose."""
    people = [target.verbatim for target in targets if target.lasting]
    lost = missing(before.verbatim, people)
    if lost:
        yield f"{path} would be reworded: '{quoted(lost)}'"
    if _fields(before.document) != _fields(after.document):
        yield f"{path} would get another name or other fields"


def _shared(
    old: Mapping[str, Said], places: Mapping[str, Sequence[str]]
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


def _moved(where: str, before: Said, after: Said, there: frozenset[Stand]) -> Iterator[str]:
    """Yield where the sentences of a rule would stand in another order, or apart."""
    moved = turned(before.verbatim, after.verbatim, there)
    lonely = "" if moved else parted(before.verbatim, after.verbatim, there)
    if moved:
        yield f"{where} would be reordered at '{quoted(moved)}'"
    if lonely:
        yield f"{where} would have something else before '{quoted(lonely)}'"


def _added(
    path: str, before: Said | None, after: Said, known: Known, names: set[str]
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


def _parts(path: str, after: Said, known: Known, moved: Sequence[Verbatim]) -> Iterator[str]:
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
    after: Said,
    known: Known,
    old: Mapping[str, Said],
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
        at = {when for place, rule in rules for when in dated.written(rule, times.get(place))}
        if dated.wrong(said.raw, at):
            yield f"{path} would get a date that was not meant: '{quoted(said.raw)}'"
            return


def _from_path(path: str, after: Said) -> bool:
    stem = path.rpartition("/")[2].removesuffix(".md")
    return after.document.name.replace("-", "_") == stem.replace("-", "_")


def _fields(document: Document) -> dict[str, str]:
    kept = {name: text for name, text in document.metadata.items() if name not in _STAMPS}
    return kept | {"name": document.name}

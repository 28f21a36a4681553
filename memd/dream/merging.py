"""Duplicates and near-duplicates become one memory. Pure.

Rules of this file
- The richer text stays as it is and gets what it lacks of the other. It is as new as the newer.
- What is added must mean there what it meant: sentences under a heading, in a table or below a
  list item are not moved, so such memories are merged only where nothing is to be added. A person's
  own rules move in whole paragraphs.
- ``carried.py`` has to find everything in the merged memory that each of its sources said, and
  what the index said of the one that goes must stand there too; otherwise both stay. So they do
  where recall would not show all of what it showed.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from memd.core import limits
from memd.core.values import MemoryType
from memd.core.yielding import yield_to_requests
from memd.documents import document
from memd.dream import verbatim
from memd.dream.carried import Facts, facts, holds, is_shown
from memd.dream.material import Memory
from memd.dream.similarity import (
    FENCE,
    Prose,
    alike,
    contradict,
    key,
    missing,
)
from memd.dream.values import Merge, in_the_end
from memd.dream.wording import QUALIFIERS, words

_FEW_WORDS = 5  # "See above." is no duplicate of "See above.": so short, the description decides
_COMMON = 200  # memories with the same three words; more is a template and says nothing
_KNOWN = 0.25  # of the shingles of the shorter of two that are alike; sentences may be short
_PARTS = 256
_LEADS = re.compile(r"[ \t]*#|[^\n]*[:\uff1a][*_\s]*$|.*\n[ ]{0,3}(?:=+|-+)[ \t]*$|[^\n]*<!--")
_STANDS_BELOW = re.compile(r"[ \t]+\S|\|")


def merge_all(
    memories: Sequence[Memory], room: int, hooks: Mapping[str, str]
) -> tuple[tuple[Memory, ...], tuple[Merge, ...]]:
    """Merge until nothing is left to merge, or the change set is full.

    ``room`` is how many files may be touched; ``hooks`` is what the index says of each.
    """
    retained = {memory.path: memory for memory in memories}
    into: dict[str, str] = {}
    while True:
        ordered = sorted(retained.values(), key=_rank)
        before = len(into)
        for first, second in _pairs(ordered):
            yield_to_requests()
            both = first.path in retained and second.path in retained and not second.pinned
            if both and 2 * len(into) + 2 <= room:
                hook = hooks.get(second.path, "")
                merged = _merged(retained[first.path], retained[second.path], hook)
                if merged is not None:
                    retained[first.path] = merged
                    into[second.path] = first.path
                    del retained[second.path]
        if len(into) == before:
            break
    merges = tuple(Merge(in_the_end(into, source), source) for source in into)
    return tuple(retained.values()), merges


def _rank(memory: Memory) -> tuple[bool, int, int, str]:
    yield_to_requests()
    return memory.rank


def carries(memory: Memory) -> bool:
    """Whether a memory says all that it and every memory that went into it said."""
    return _holds(memory, [said for _, said in memory.says])


def _pairs(ordered: Sequence[Memory]) -> Iterator[tuple[Memory, Memory]]:
    """Yield candidates, the richer one first: equal texts, then those that share shingles."""
    equal: dict[tuple[str, ...], Memory] = {}
    for memory in ordered:
        yield_to_requests()
        same = (memory.type.value, *memory.text.sentences)
        if same in equal and _comparable(equal[same], memory):
            yield equal[same], memory
        equal.setdefault(same, memory)
    for kind in MemoryType:
        alone = [memory for memory in ordered if memory.type is kind]
        for first, second in _near(alone):
            if _comparable(first, second):
                yield first, second


def _near(ordered: Sequence[Memory]) -> Iterator[tuple[Memory, Memory]]:
    """Yield the memories that are alike.

    Nearly all of most memories' shingles stand nowhere else, so few of them are looked at.
    """
    repeated = _repeated(ordered)
    known: list[frozenset[int]] = []
    places: dict[int, list[int]] = defaultdict(list)
    for place, memory in enumerate(ordered):
        yield_to_requests()
        known.append(memory.text.shingles & repeated)
        for shingle in known[place]:
            places[shingle].append(place)
    result: set[tuple[int, int]] = set()
    for place, memory in enumerate(ordered):
        yield_to_requests()
        if len(known[place]) < _KNOWN * len(memory.text.shingles):
            continue
        near = (places[shingle] for shingle in known[place])
        shared = Counter(chain.from_iterable(few for few in near if len(few) <= _COMMON))
        for other, count in shared.items():
            pair = (min(place, other), max(place, other))
            fits = other != place and pair not in result
            if fits and alike(memory.text, ordered[other].text, count):
                result.add(pair)
    for one, two in sorted(result):
        yield ordered[one], ordered[two]


def _repeated(memories: Sequence[Memory]) -> set[int]:
    """Return the shingles that stand in more than one memory."""
    seen: list[set[int]] = [set() for _ in range(_PARTS)]  # a large set grows in long leaps
    repeated: set[int] = set()
    for memory in memories:
        yield_to_requests()
        for shingle in memory.text.shingles:
            part = seen[shingle % _PARTS]
            if shingle in part:
                repeated.add(shingle)
            else:
                part.add(shingle)
    return repeated


def _comparable(first: Memory, second: Memory) -> bool:
    fewest = min(len(first.text.words), len(second.text.words))
    return bool(fewest) and (
        fewest >= _FEW_WORDS or key(first.description) == key(second.description)
    )


def _merged(winner: Memory, loser: Memory, hook: str) -> Memory | None:
    """Return the richer memory with all that the other says, ``None`` where that cannot be."""
    if contradict(winner.text, loser.text):
        return None
    if len(winner.content) + len(loser.content) > limits.MEMORY_BYTES:
        return None
    extra = _added(winner, loser)
    if extra is None:
        return None
    merged = replace(
        winner.with_text(_appended(winner.body, extra)),
        mtime_ns=max(winner.mtime_ns, loser.mtime_ns),
        taken=(*winner.says, *loser.says),
    )
    if is_shown(winner.file.body) and not is_shown(merged.body):
        return None
    # What the winner had taken in stands in its text: that is asked for, not each of them again.
    wanted = [document.parse(winner.content, winner.path), *(said for _, said in loser.says)]
    if not _holds(merged, wanted):  # only the description is left
        merged = merged.with_text(_appended(merged.body, loser.description))
    if not _tells(merged, hook) or not _holds(merged, wanted):
        return None  # such as a code block without an end, which would swallow what follows
    return merged


def _holds(memory: Memory, texts: Sequence[document.Document]) -> bool:
    target = document.parse(memory.content, memory.path)
    return all(text == target or holds(target, text) for text in texts)


def _added(winner: Memory, loser: Memory) -> str | None:
    """Return what the richer memory lacks, ``None`` where it would mean something else there."""
    text = Prose(loser.body)
    if winner.lasting:
        stands = [
            *Prose(winner.body).sentences.values(),
            *Prose(winner.description).sentences.values(),
        ]
        known = {verbatim.key(raw) for raw in stands}
        units = [u for u in text.units if any(verbatim.key(s) not in known for s in u.sentences)]
        extra = "\n\n".join(dict.fromkeys(unit.raw for unit in units))
    else:
        said = Prose(winner.body).sentences.keys() | Prose(winner.description).sentences.keys()
        extra = missing(text, said)
    if not extra:
        return extra
    prose = [unit.raw for unit in text.units if not FENCE.match(unit.raw)]
    leads = any(_LEADS.match(raw) for raw in prose)
    below = any(_STANDS_BELOW.match(unit.raw) for unit in Prose(extra).units)
    return None if leads or below else extra


def _tells(memory: Memory, hook: str) -> bool:
    """Whether a memory says whatever the index says of one that goes."""
    if not hook:
        return True
    said = Facts(document.parse(memory.content, memory.path))
    return facts(hook) <= said.words and QUALIFIERS.isdisjoint(
        set(words(hook)) - set(words(f"{memory.description}\n{memory.body}"))
    )


def _appended(body: str, extra: str) -> str:
    if not extra:
        return body
    end = "\r\n" if "\r\n" in body else "\n"
    start = body.rstrip()
    return (start + end + end if start else "") + extra.replace("\n", end) + end

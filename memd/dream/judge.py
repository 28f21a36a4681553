"""What a dream did to the memories, computed and not believed, and whether it may stand. Pure.

Rules of this file: nothing evaporates
- Seen are the memories before and after, and nothing of what a dream says of itself but where a
  memory went and why it is gone; where it went counts when ``carried.py`` finds it there. Links to
  what went may be led on to where it went.
- Each memory that was there before is there after, or is carried by a named one, or was removed
  for a reason of at least two words. Where nothing is claimed, but exactly one memory that the
  dream wrote carries all of it, it went there.
- ``user`` and ``feedback`` memories: ``rules.py``. Nothing else is good enough for them. One
  without a type may be one of them: each of its sentences stands afterwards, word for word.
- A "Why" and a "How to apply" are not lost from a memory that stays or goes into another one.
- More than a third is not taken away: ``amount.py``.
- A new text holds no secret that the old one did not hold. No problem quotes one.
- A damaged file is not touched: what memd cannot read whole it cannot compare. A head
  that memd reads and others refuse is not damaged; mending it changes nothing that is read. No new
  text is damaged or too large.
- What takes others in, or is a rule, is not longer afterwards than what recall shows of a memory.
- The lines of the index: ``handwritten.py``.
- What stays and denies what went is a contradiction that the dream resolved; it is told.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from memd.core import limits
from memd.core.names import INDEX, in_catalogue
from memd.core.text import decode
from memd.core.yielding import yield_to_requests
from memd.documents import secrets
from memd.documents.document import parse
from memd.dream import amount, handwritten, rules
from memd.dream.carried import Denials, Facts, is_shown, lacks, reason_lost
from memd.dream.links import led_on
from memd.dream.values import SHOWN, Contradiction, JudgeResult, Merge, Removal, Wanted, quoted
from memd.dream.verbatim import missing
from memd.dream.wording import words

_LIKELY = 0.5  # of the telling words: what has fewer of them is another text
_REASON_WORDS = 2  # "old" says nothing that a person could judge
_CONTRADICTIONS = 20
_INSPECTIONS = (
    50_000  # steps of looking for them, some 50 ms: a report may do without the last ones
)


def judge(
    before: Mapping[str, bytes],
    wanted: Wanted,
    *,
    index: bytes | None = None,
    times: Mapping[str, float] = MappingProxyType({}),
    total_bytes: int = 0,
    total: int = 0,
    gone_lately: int = 0,
    lost_lately: int = 0,
) -> JudgeResult:
    """Return what the edits do to the memories, and every reason why they may not.

    ``before`` holds each memory that an edit or a merge names, and of which the index says
    something new; ``index`` is the index before, ``times`` are the mtimes in seconds since 1970.
    ``total`` and ``total_bytes`` say how much all memories are, ``gone_lately`` how many dreams
    removed in the last 30 days without merging them, and ``lost_lately`` how many bytes they lost.
    """
    dream = _Dream(before, wanted)
    merged, removed, problems = _went(dream)
    problems += [f"{path} is damaged and would be touched" for path in dream.damaged]
    hidden, result = _secrets(dream, index)
    for path in dream.written:
        yield_to_requests()
        problems += _written(dream, path)
    places = {path: dream.places(path) for path in dream.old} | _into(merged)
    problems += rules.problems(dream.old, dream.new, places, times)
    left = {path: amount.left(dream.old[path], dream.targets(path)) for path in dream.touched}
    rewritten = [path for path in dream.changed if left[path] < amount.REWRITTEN]
    lost = int(sum(amount.lost(len(dream.before[path]), part) for path, part in left.items()))
    problems += amount.too_many(len(removed), len(rewritten), total, gone_lately)
    problems += amount.too_much(lost, total_bytes, lost_lately, total)
    if INDEX in dream.edits:
        memories = {path: said.document for path, said in dream.new.items()}
        free = {path for path in dream.written if not dream.new[path].lasting}
        problems += handwritten.problems(index or b"", dream.edits[INDEX] or b"", memories, free)
    return JudgeResult(
        created=dream.created,
        changed=dream.changed,
        merged=tuple(merged),
        removed=tuple(Removal(item.path, secrets.scrub(item.reason)) for item in removed),
        contradictions=_contradictions(dream),
        problems=(*result, *dict.fromkeys(problems)),
        lost=lost,
        secrets=hidden,
    )


class _Dream:
    """The memories that a dream touches or names, before and after."""

    def __init__(self, before: Mapping[str, bytes], wanted: Wanted) -> None:
        self.before = {path: content for path, content in before.items() if path != INDEX}
        self.edits = {edit.path: edit.content for edit in wanted.edits}
        self.reasons = wanted.reasons
        self.claims: dict[str, list[Merge]] = defaultdict(list)
        for merge in wanted.merges:
            self.claims[merge.source].append(merge)
        self.old = {path: Facts(parse(content, path)) for path, content in self.before.items()}
        self.new = dict(self.old)
        touched = {path: content for path, content in self.edits.items() if path != INDEX}
        for path, content in touched.items():
            if content is None:
                self.new.pop(path, None)
            elif content != before.get(path):
                self.new[path] = Facts(parse(content, path))
        same = {path for path, content in touched.items() if content == before.get(path)}
        self.written = tuple(path for path in touched if path in self.new and path not in same)
        self.created = tuple(path for path in self.written if path not in before)
        self.changed = tuple(path for path in self.written if path in before)
        self.led = self._led()
        self.gone = tuple(sorted(self.old.keys() - self.new.keys()))
        self.touched = (*self.changed, *self.gone)
        self.damaged = [path for path in self.touched if self.old[path].document.damaged]

    def _led(self) -> dict[str, Facts]:
        """Return the memories before with links to what went led on to where it went."""
        into = {merge.source: merge.into for result in self.claims.values() for merge in result}
        texts = {path: said.document for path, said in (self.new | self.old).items()}
        went = {source: place for source, place in into.items() if source not in self.new}
        led = led_on(texts, went)
        return {
            path: said if led[path] == said.document else Facts(led[path])
            for path, said in self.old.items()
        }

    def hides(self, path: str) -> bool:
        """Whether a rule, or what took others in, would be shown less whole than before."""
        after, old = self.new[path], self.old.get(path)
        took_in = [said for source, said in self.old.items() if self.goes_into(source, path)]
        if not took_in and not (after.lasting and old):
            return False
        before = [old] if old else took_in
        whole = all(is_shown(said.document.body) for said in before)
        return whole and not is_shown(after.document.body)

    def goes_into(self, source: str, path: str) -> bool:
        """Whether a memory is said to go into another one."""
        return any(claim.into == path for claim in self.claims.get(source, ()))

    def rules(self) -> list[bytes]:
        """Return the person's rules of before."""
        return [self.before[path] for path, said in self.old.items() if said.lasting]

    def lost(self, path: str, targets: Sequence[Facts]) -> str:
        """Return a sentence of a memory that the targets do not say, its links led on or not."""
        lost = lacks(self.old[path], targets)
        if lost and self.led[path] is not self.old[path]:
            return lacks(self.led[path], targets)
        return lost

    def places(self, path: str) -> tuple[str, ...]:
        """Return where a memory is after the dream: itself, and what it is said to be in."""
        said = (path, *(merge.into for merge in self.claims.get(path, ())))
        return tuple(place for place in dict.fromkeys(said) if place in self.new)

    def targets(self, path: str) -> list[Facts]:
        """Return the memories that a memory is in after the dream."""
        return [self.new[place] for place in self.places(path)]


def _went(dream: _Dream) -> tuple[list[Merge], list[Removal], list[str]]:
    """Return where each memory went that is gone, and what is wrong with that."""
    merged: list[Merge] = []
    removed: list[Removal] = []
    problems: list[str] = []
    for path in dream.gone:
        yield_to_requests()
        claims = dream.claims.get(path, ())
        result = _proven(dream, path, claims) if claims else _computed(dream, path)
        merged += result
        if result:
            continue
        reason = dream.reasons.get(path, "")
        removed.append(Removal(path, reason))
        if claims:
            problems += [_untrue(dream, path, claim) for claim in claims]
        elif dream.old[path].lasting:
            kind = dream.old[path].document.type
            problems.append(f"{path} is a {kind} memory and would go without going into another")
        elif dream.old[path].untyped:
            problems.append(f"{path} has no type and may be a person's rule, but would go")
        elif len(words(reason)) < _REASON_WORDS:
            problems.append(f"{path} would go without a reason")
    return merged, removed, problems


def _proven(dream: _Dream, path: str, claims: Sequence[Merge]) -> Sequence[Merge]:
    """Return the claims that are true: those where one target carries it, or all together."""
    there = [claim for claim in claims if claim.into in dream.new]
    alone = [claim for claim in there if not dream.lost(path, [dream.new[claim.into]])]
    if alone or len(there) < 2:  # noqa: PLR2004 - one target alone was asked already
        return alone
    return [] if dream.lost(path, dream.targets(path)) else there


def _computed(dream: _Dream, path: str) -> Sequence[Merge]:
    source = dream.old[path]
    result = [
        target
        for target in dream.written
        if _likely(source, dream.new[target]) and not dream.lost(path, [dream.new[target]])
    ]
    return [Merge(result[0], path)] if len(result) == 1 else []


def _likely(source: Facts, target: Facts) -> bool:
    return len(source.statement & target.words) >= _LIKELY * len(source.statement)


def _into(merged: Sequence[Merge]) -> dict[str, tuple[str, ...]]:
    into: dict[str, tuple[str, ...]] = {}
    for merge in merged:
        into[merge.source] = (*into.get(merge.source, ()), merge.into)
    return into


def _untrue(dream: _Dream, path: str, claim: Merge) -> str:
    if claim.into not in dream.new:  # whatever a model may have written there
        return f"{path} is said to be in {quoted(claim.into)}, which is not there"
    source, target = dream.old[path], dream.new[claim.into]
    if source.lasting and not target.lasting:
        kind = source.document.type
        return f"{path} is a {kind} memory and would go into {claim.into}, which is none"
    sentence = quoted(dream.lost(path, [target]))
    return f"{path} is said to be in {claim.into}, where this is missing: '{sentence}'"


def _written(dream: _Dream, path: str) -> Iterator[str]:
    """Yield what is wrong with the new text of one memory, whatever its type."""
    content, after = dream.edits[path] or b"", dream.new[path].document
    if len(content) > limits.MEMORY_BYTES:
        yield f"{path} would have {len(content)} bytes, the limit is {limits.MEMORY_BYTES}"
    if after.damaged:
        yield f"{path} would be damaged"
    if not in_catalogue(path):  # such as a log: nothing there is ever recalled
        yield f"{path} is no place for a memory"
    line = rules.foreign_line(content, after, dream.rules()) if dream.new[path].lasting else ""
    if line:
        yield f"{path} would say in its head: '{quoted(line)}'"
    if dream.hides(path):
        yield f"{path} would be longer than what is shown of it: {limits.SURFACED_BYTES} bytes"
    yield from _less(dream, path)


def _less(dream: _Dream, path: str) -> Iterator[str]:
    """Yield what a memory that was there before would lose, whatever its type."""
    after, old = dream.new[path].document, dream.old.get(path)
    if old is None:
        return
    if old.document.type is not None and after.type is None:
        yield f"{path} would lose its type"
    if old.untyped:
        targets = [target.verbatim for target in dream.targets(path)]
        gone = missing(old.verbatim, targets)
        if gone:
            yield f"{path} has no type and may be a person's rule, but would lose '{quoted(gone)}'"
    if not old.lasting:
        lost = reason_lost(old, dream.targets(path))
        if lost and reason_lost(dream.led[path], dream.targets(path)):
            yield f"{path} would lose its reason: '{quoted(lost)}'"


def _secrets(dream: _Dream, index: bytes | None) -> tuple[tuple[str, ...], list[str]]:
    """Return the paths whose new text holds a secret that the old one did not, and sentences."""
    paths: list[str] = []
    problems: list[str] = []
    for path, content in dream.edits.items():
        yield_to_requests()
        old = (index if path == INDEX else dream.before.get(path)) or b""
        if content is None or content == old:
            continue
        result = _flagged(content)
        fresh = {what: line for what, line in result.items() if what not in _flagged(old)}
        if fresh:
            paths.append(path)
        problems += [
            f"{path} would hold what looks like a secret in line {line} ({rule})"
            for (rule, _), line in fresh.items()
        ]
    return tuple(paths), problems


def _flagged(content: bytes) -> dict[tuple[str, str], int]:
    """Return the lines that look like a secret by rule and text, with their numbers."""
    text = decode(content)
    lines = text.split("\n")
    return {(result.rule, lines[result.line - 1]): result.line for result in secrets.find(text)}


def _contradictions(dream: _Dream) -> tuple[Contradiction, ...]:
    """Return what went because something else stays, as far as a bounded search finds it."""
    into = {merge.into for claims in dream.claims.values() for merge in claims}
    stays = {path: dream.new[path] for path in (*dream.written, *sorted(into & dream.new.keys()))}
    forms = frozenset[str]().union(*(said.forms for said in stays.values()))
    lost = [
        (path, raw)
        for path in sorted((*dream.changed, *dream.gone))
        for name, raw in dream.led[path].sentences.items()
        if name not in forms
    ]
    if not lost:
        return ()
    reported = (raw for said in stays.values() for raw in said.sentences.values())
    denials = Denials(reported, _INSPECTIONS)
    result: list[Contradiction] = []
    for path, gone in lost:
        yield_to_requests()
        other = denials.of(gone)
        if other:
            result.append(Contradiction(path, quoted(gone, SHOWN), quoted(other, SHOWN)))
        if len(result) == _CONTRADICTIONS:
            break
    return tuple(result)

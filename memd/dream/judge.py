"""What a dream did to the memories, by files and facts, and which part of it may stand. Pure.

Rules of this file
- Seen are the memories before and after; of what a model says only reasons of removals and where
  a memory went, and both are looked at. Each group (``groups.py``) is judged by itself.
- The body of a ``user``, ``feedback`` or untyped memory stays byte for byte, as do its fields but
  the stamps. An exact copy of one may go. No memory becomes one of these.
- No new memory says only what an instruction file says.
- New statements of others rest on something (``grounds.py``); what they said stands afterwards in
  the group, or was void: a day that is over, a newer statement. Evidence goes with its memory.
- A removal names what makes the memory void. By reasons alone a tenth of the memories or five go
  in one night, a third in 30 days. Of one memory half the telling words may go in 30 days.
- The least trusted origin of a group is the origin of what its memories newly say.
- A damaged file is not touched; nothing new is damaged or too large, or holds a secret that the
  old text did not hold; none is quoted.
- A dream writes no field into a head and takes none away, but the stamps. What a text claims of its
  own origin is replaced elsewhere; no comment comes into a head.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.core import limits
from memd.core.covered import Covered, in_no_file
from memd.core.names import INDEX, TEAM, in_catalogue
from memd.core.text import decode, iso_time, sha256
from memd.core.values import ASSISTANT, OUTSIDE, FileEdit, MemoryFile, least_trusted
from memd.core.yielding import yield_to_requests
from memd.documents import secrets
from memd.documents.document import split
from memd.documents.index import pointers
from memd.dream import index_lines
from memd.dream.grounds import Grounds, restated, void
from memd.dream.groups import Night, Text, named
from memd.dream.values import Merge, Reasoned, Report, Wanted, quoted
from memd.text.dates import resolve
from memd.text.orders import orders, wishes
from memd.text.similarity import RESEMBLING, resemblance
from memd.text.statements import DATE, Statement
from memd.text.words import words

_STAMPS = frozenset({"modified", "originSessionId", "node_type", "type", "origin"})
_NIGHT_LEAST, _NIGHT_PART, _MONTH_PART = 5, 10, 3
_HALF = 2
_WORK = 300_000  # comparisons of two statements for a group, some seconds at the very most
_REASON_WORDS = 2
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Judged:
    """What a dream does, and what is kept back for a person.

    ``edits`` are what may stand, ``kept_back`` what may not, for the problems in the ``report``.
    ``secrets`` are paths whose new text must be kept nowhere, ``members`` those that all of this
    depends on.
    """

    edits: tuple[FileEdit, ...]
    kept_back: tuple[FileEdit, ...]
    secrets: tuple[str, ...]
    members: frozenset[str]
    report: Report


def judge(
    before: Mapping[str, MemoryFile],
    wanted: Wanted,
    report: Report,
    *,
    index: bytes | None,
    now: float,
    lately: tuple[int, Mapping[str, int]],
    covered: Covered = in_no_file,
) -> Judged:
    """Return what may stand of the edits, and every reason why the others may not.

    ``before`` are all memories, ``report`` is the one to go on with. ``lately`` is how many
    memories dreams removed by reasons in 30 days, and how many telling words they took from each.
    ``now`` is in seconds since 1970. ``covered`` tells what instruction files say.
    """
    night = Night(before, wanted, now)
    gone_lately, lost_lately = lately
    judged = [_Group(night, members, lost_lately, covered) for members in night.groups()]
    removals = [group for group in judged if group.removed and not group.problems]
    count = sum(len(group.removed) for group in removals)
    for sentence in _too_many(count, len(before), gone_lately):
        for group in removals:
            group.problems.append(sentence)
    stands = [group for group in judged if not group.problems]
    accepted = {path for group in stands for path in group.members}
    waiting = [path for path in night.edits if path not in accepted]
    texts = {path: text for path, text in night.before.items() if path not in accepted}
    texts |= {path: text for path, text in night.after.items() if path in accepted}
    edits = [edit for group in stands for edit in group.edits()]
    kept_back = [night.edits[path] for path in waiting]
    problems = [sentence for group in judged for sentence in group.problems]
    members = {path for group in judged for path in group.members}
    for edit in wanted.edits:
        if edit.path == INDEX and edit.content is not None:
            members.update(pointers(edit.content))
            old = index or b""
            content, more, some = index_lines.judge(old, edit.content, texts, accepted, waiting)
            problems += more
            edits += [replace(edit, content=content)] if content != old else []
            kept_back += [edit] if some else []
    touched = [e.path for e in edits if e.content is not None and e.path in night.edits]
    report = replace(
        report,
        created=tuple(path for path in touched if path not in night.before),
        changed=tuple(path for path in touched if path in night.before),
        merged=tuple(merge for group in stands for merge in group.merged),
        removed=tuple(removal for group in stands for removal in group.removed),
        problems=tuple(dict.fromkeys(problems)),
        lost={path: count for group in stands for path, count in group.lost.items() if count},
    )
    secret = tuple(path for group in judged for path in group.secrets)
    return Judged(tuple(edits), tuple(kept_back), secret, frozenset(members), report)


def _too_many(count: int, total: int, lately: int) -> Iterator[str]:
    night = max(_NIGHT_LEAST, total // _NIGHT_PART)
    month = max(1, (total + lately) // _MONTH_PART)
    if count > night:
        yield f"{count} of {total} memories would go by reasons alone; {night} may in one night"
    elif count and count + lately > month:
        yield (
            f"{count} of {total} memories would go by reasons alone, {lately} went lately; "
            f"{month} may in 30 days"
        )


class _Group:
    """One group, judged: what is wrong with it, and what became of its memories."""

    def __init__(
        self,
        night: Night,
        members: tuple[str, ...],
        lost_lately: Mapping[str, int],
        covered: Covered,
    ) -> None:
        self._night = night
        self._covered = covered
        self.members = members
        self._old = [night.before[path] for path in members if path in night.before]
        self._new = [night.after[path] for path in members if path in night.after]
        self._there = [one for text in self._new for one in text.statements]
        self._keys = frozenset(one.key for one in self._there)
        self._raw = "\n".join(text.raw for text in self._new)
        self._grounds = Grounds(
            [one for text in self._old for one in text.statements],
            logs=[one for source, said in night.sources if source.log for one in said],
            transcripts=[one for source, said in night.sources if not source.log for one in said],
            raw="\n".join(text.raw for text in self._old),
            paths=night.known.paths,
            days=frozenset(day for text in self._old for day in text.days),
        )
        self.merged: list[Merge] = []
        self.removed: list[Reasoned] = []
        self.lost: dict[str, int] = {}
        self.secrets: list[str] = []
        self._foreign: set[str] = set()  # memories that say something new
        self._outside = False
        self.problems = list(dict.fromkeys(self._problems(lost_lately)))

    def edits(self) -> list[FileEdit]:
        """Return the edits with the origin of what they newly say."""
        edits = {p: self._night.edits[p] for p in self.members if p in self._night.edits}
        for merge in self.merged:
            into = self._night.after[merge.into]
            if into.path not in edits and self._origin(into.path) != into.document.origin:
                key, mtime_ns = sha256(into.content), int(into.at * _NS)
                edits[into.path] = FileEdit(into.path, into.content, key, mtime_ns)
        return [
            replace(e, origin="" if e.content is None else self._origin(p))
            for p, e in edits.items()
        ]

    def _origin(self, path: str) -> str:
        """Return the origin that a memory is to have; "" where it has none and gets none."""
        mine = self._night.before.get(path)
        others = {merge.source for merge in self.merged if merge.into == path}
        if path in self._foreign or mine is None:
            others |= set(self.members)
        origins = [text.document.origin for text in self._old if text.path in {*others, path}]
        if path in self._foreign:
            origins.append(OUTSIDE if self._outside else ASSISTANT if any(origins) else "")
        return least_trusted(*origins, "" if mine else ASSISTANT)

    def _problems(self, lost_lately: Mapping[str, int]) -> Iterator[str]:
        keys = [one.key for text in self._old for one in text.statements]
        changed = len(self._keys.symmetric_difference(keys))
        if changed * (len(keys) + len(self._there)) > _WORK:
            yield f"{self.members[0]} would change in too many places to be compared"
            return
        for path in self.members:
            yield_to_requests()
            if path not in self._night.edits:
                continue
            old, new = self._night.before.get(path), self._night.after.get(path)
            if old is not None and old.document.damaged:
                yield f"{path} is damaged and would be touched"
            elif new is None:
                yield from self._gone(path)
            else:
                for secret, problem in _of_head(new, old, self._old):
                    yield f"{path} {problem}"
                    self.secrets += [path] if secret else []
                if new.fixed or (old is not None and old.fixed):
                    yield from self._personal(path, old, new)
                else:
                    yield from self._said(path, old, new)
                    yield from self._unsaid(path, old, lost_lately.get(path, 0))

    def _gone(self, path: str) -> Iterator[str]:
        old = self._night.before.get(path)
        if old is None:
            return
        reason = self._night.wanted.reasons.get(path, "")
        claims = [merge.into for merge in self._night.wanted.merges if merge.source == path]
        copies = [text for text in self._new if _same(text, old)]
        if old.fixed and not copies:
            kind = old.document.type or "untyped"
            yield f"{path} is a {kind} memory and would go; only an exact copy of one may"
            return
        targets = [text.path for text in (copies or self._new) if text.path != path]
        first = [*claims, *named(reason, targets)]
        ordered = sorted(targets, key=lambda target: (target not in first, target))
        evaporated = list(self._evaporated(old))
        into = next((t for t in ordered if t in first or self._takes(t, old)), "")
        if into and not evaporated:
            self.merged.append(Merge(into, path))
        elif claims:
            if claims[0] not in self._night.after:  # whatever a model may have written there
                yield f"{path} is said to be in {quoted(claims[0])}, which is not there"
            for one in evaporated[:1]:
                yield f"{path} is said to be in {claims[0]}, where '{quoted(one.raw)}' is missing"
        elif len(words(reason)) < _REASON_WORDS:
            yield f"{path} would go without a reason"
        elif not self._is_void(old, reason):
            yield f"{path} would go, and its reason names nothing that voids it: {quoted(reason)}"
        else:
            self.removed.append(Reasoned(path, secrets.scrub(reason)))

    def _takes(self, target: str, old: Text) -> bool:
        return any(one.key in self._night.after[target].keys for one in old.body)

    def _is_void(self, old: Text, reason: str) -> bool:
        """Whether a reason names a day that is over, or something newer that speaks of it."""
        facts = (fact for one in old.statements for fact in one.facts)
        last = max((form for kind, form in facts if kind == DATE and form[0] in "12"), default="")
        if last and last < self._night.today and last in resolve(reason, old.at):
            return True
        others = named(reason, self.members)
        newer = [t for t in self._new if t.path in others and t.at > old.at]
        spoken = Statement(reason)
        said = [one for text in newer for one in text.body]
        said += [one for one in self._newer(old) if resemblance(spoken, one) >= RESEMBLING]
        return any(_near(one, two) for one in said for two in old.body)

    def _personal(self, path: str, old: Text | None, new: Text) -> Iterator[str]:
        kind = new.document.type or (old and old.document.type) or "untyped"
        if old is None:
            gone = [text for text in self._old if text.path not in self._night.after]
            if not any(_same(new, text) for text in gone):
                yield f"{path} would be a new {kind} memory, which needs the person"
            return
        was, now = old.document, new.document
        if was.type != now.type:
            yield f"{path} would change its type from {was.type or 'none'} to {now.type or 'none'}"
        elif was.body.encode() != now.body.encode():
            yield f"{path} is a {kind} memory and would say something else"
        elif (was.name, was.description) != (now.name, now.description):
            yield f"{path} is a {kind} memory and would get another name or description"

    def _said(self, path: str, old: Text | None, new: Text) -> Iterator[str]:
        """Yield what a memory would newly say without a ground for it."""
        newer = self._newer(old)
        known = old.keys if old else frozenset[str]()
        links = frozenset[str]().union(*(text.links for text in self._old))
        for link in sorted(new.links - links - self._night.known.paths):
            if link.endswith(".md"):
                yield f"{path} would link to what is not there: '{quoted(link)}'"
        names = (new.document.name, path.rpartition("/")[2].removesuffix(".md"))
        for name in names if old is None else names[: names[0] != old.document.name]:
            spelled = name.replace("-", " ").replace("_", " ")
            if orders(spelled) or wishes(spelled):  # the index repeats it in every prompt
                yield f"{path} would have a name that orders or wishes: '{quoted(name)}'"
        if any(not _in_order(text, new) for text in self._old):
            yield f"{path} would have steps in another order"
        fresh = "\n".join(o.raw for o in new.statements if o.key not in self._grounds.keys)
        if old is None and (file := self._covered(fresh)):
            yield f"{path} would be a new memory of what {quoted(file)} says already"
        for one in new.statements:
            if one.key in known or not one.words:
                continue
            self._foreign.add(path)
            problem = self._grounds.problem(one, newer)
            if problem:
                yield f"{path} {problem}: '{quoted(one.raw)}'"
            self._outside |= self._grounds.outside(one)

    def _unsaid(self, path: str, old: Text | None, lately: int) -> Iterator[str]:
        """Yield what a memory that stays would lose."""
        if old is None:
            return
        for one in self._evaporated(old):
            yield f"{path} would lose without a reason: '{quoted(one.raw)}'"
        there, said = _words(self._there), _words(old.body)
        changed = [one for one in old.statements if one.key not in self._keys]
        gone = _words([one for one in changed if not self._void(one, old)]) & said - there
        self.lost[path] = len(gone)
        if gone and _HALF * (len(gone) + lately) > len(said) + lately:
            yield f"{path} would lose more than half of its words within a month"

    def _evaporated(self, old: Text) -> Iterator[Statement]:
        """Yield the statements of a memory that stand nowhere in its group afterwards."""
        for one in old.statements:
            if one.key in self._keys or not one.words:
                continue
            plain = one is old.description
            if not self._void(one, old) and not restated(one, self._there, self._raw, plain=plain):
                yield one

    def _void(self, one: Statement, old: Text) -> bool:
        fresh = [new for new in self._there if new.key not in self._grounds.keys]
        since = iso_time(min(old.times))[:10]
        return void(one, [*self._newer(old), *fresh], written=since, today=self._night.today)

    def _newer(self, old: Text | None) -> list[Statement]:
        """Return the statements of memories and sources that are newer than a memory."""
        at = old.at if old else 0.0
        texts = [one for text in self._old if old and text.at > at for one in text.statements]
        sources = [one for source, said in self._night.sources if source.at >= at for one in said]
        return [*texts, *sources]


def _words(said: Iterable[Statement]) -> frozenset[str]:
    return frozenset[str]().union(*(one.words for one in said))


def _same(one: Text, two: Text) -> bool:
    first, second = one.document, two.document
    return first.type == second.type and first.body.strip() == second.body.strip()


def _in_order(old: Text, new: Text) -> bool:
    """Whether the numbered steps of a text that another one has stand there in their order."""
    steps = dict.fromkeys(one.key for one in old.statements if one.step)
    there = [key for key in dict.fromkeys(one.key for one in new.statements) if key in steps]
    return there == [key for key in steps if key in new.keys]


def _near(one: Statement, two: Statement) -> bool:
    return len(one.words & two.words) > 1 and resemblance(one, two) >= RESEMBLING


def _of_head(new: Text, old: Text | None, group: Sequence[Text]) -> Iterator[tuple[bool, str]]:
    """Yield what is wrong whatever it says, each with whether it is a secret."""
    if len(new.content) > limits.MEMORY_BYTES:
        yield False, f"would have {len(new.content)} bytes, the limit is {limits.MEMORY_BYTES}"
    untyped = new.document.type is None and not (old and old.document.type is None)
    if new.document.damaged or untyped:
        yield False, "would be damaged or without a type"
    if not in_catalogue(new.path) or new.path.startswith(TEAM):
        yield False, "is no place for a memory of a dream"
    text, known = decode(new.content), decode(old.content if old else b"")
    for hit in secrets.find(text):
        if text.split("\n")[hit.line - 1] not in known:
            yield True, f"would hold what looks like a secret in line {hit.line} ({hit.rule})"
    fields = _fields(new)
    for field in sorted(fields.difference(*[_fields(text) for text in ([old] if old else group)])):
        yield False, f"would have a field that it had not: '{quoted(field)}'"
    for field in sorted(_fields(old) - fields) if old else ():
        yield False, f"would lose the field '{quoted(field)}'"
    lines = {line for text in group for line in _head(text)}
    for line in _head(new):
        if line not in lines and (" #" in line or line.lstrip().startswith("#")):
            yield False, f"would have a comment in its head: '{quoted(line)}'"


def _fields(text: Text) -> set[str]:
    items = text.document.metadata.items()
    return {f"{name}: {value}" for name, value in items if name not in _STAMPS}


def _head(text: Text) -> list[str]:
    fenced = split(text.content)
    return [] if fenced is None else [line.rstrip() for line in fenced.lines]

"""Judge the changes of a dream: decide which may be made and which are kept back. Pure.

Rules of this file
- Judged are the memories before and after. Of a model's own words only the reasons of removals and
  the claimed merges are used, and both are checked. Each group (``groups.py``) is judged alone.
- The body and the fields, except the stamps, of a ``user``, ``feedback`` or untyped memory stay
  byte for byte. An exact copy of one may be removed. No other memory becomes one of these.
- New statements of other memories need a ground (``grounds.py``). Old ones remain in the group, or
  are void: their day is over or a newer one contradicts them. Evidence stays with its memory. A
  new memory says more than the instruction files.
- A removal names what makes the memory void. A tenth of the memories (or five) may be so removed
  in one night, a third in 30 days. One memory may lose half of its telling words in 30 days.
- The new statements of a group get the least trusted origin in the group.
- A damaged file is not changed. No new text is damaged, too large or has a new secret. Fields of
  frontmatter, except stamps, are not added or removed, and no comment is added.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

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
_WORK = 300_000  # comparisons of two statements for a group, which take some seconds at most
_REASON_WORDS = 2
_NS = 1_000_000_000


class Judged(Struct, frozen=True):
    """The edits of a dream that may be made, and those kept back for a person.

    ``secrets`` are paths whose new text must not be stored anywhere; ``members`` are all paths that
    the judgement depends on. The ``report`` has the problems.
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
    """Return which edits may be made, and the problems of the others.

    ``before`` are all memories; ``report`` is completed. ``lately`` is how many memories dreams
    removed for a reason in 30 days, and how many telling words they took from each of the others.
    ``now`` is in seconds since 1970. ``covered`` returns the instruction file that says a text.
    """
    night = Night(before, wanted, now)
    gone_lately, lost_lately = lately
    judged = [_Group(night, members, lost_lately, covered) for members in night.groups()]
    removals = [group for group in judged if group.removed and not group.problems]
    count = sum(len(group.removed) for group in removals)
    for sentence in _too_many_removals(count, len(before), gone_lately):
        for group in removals:
            group.problems.append(sentence)
    allowed = [group for group in judged if not group.problems]
    accepted = {path for group in allowed for path in group.members}
    waiting = [path for path in night.edits if path not in accepted]
    texts = {path: text for path, text in night.before.items() if path not in accepted}
    texts |= {path: text for path, text in night.after.items() if path in accepted}
    edits = [edit for group in allowed for edit in group.edits()]
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
        merged=tuple(merge for group in allowed for merge in group.merged),
        removed=tuple(removal for group in allowed for removal in group.removed),
        problems=tuple(dict.fromkeys(problems)),
        lost={path: count for group in allowed for path, count in group.lost.items() if count},
    )
    secret = tuple(path for group in judged for path in group.secrets)
    return Judged(tuple(edits), tuple(kept_back), secret, frozenset(members), report)


def _too_many_removals(count: int, total: int, lately: int) -> Iterator[str]:
    """Yield a problem if too many memories would be removed in one night or within 30 days."""
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
    """A group of memories and its judgement: its problems, merges and removals."""

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
        self._after = [one for text in self._new for one in text.statements]
        self._keys = frozenset(one.key for one in self._after)
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
        self._foreign: set[str] = set()  # paths of memories with a new statement
        self._outside = False  # whether a new statement is only in transcripts
        self.problems = list(dict.fromkeys(self._find_problems(lost_lately)))

    def edits(self) -> list[FileEdit]:
        """Return the group's edits with their origins, also those that only set an origin."""
        edits = {p: self._night.edits[p] for p in self.members if p in self._night.edits}
        for merge in self.merged:
            into = self._night.after[merge.into]
            if into.path not in edits and self._new_origin(into.path) != into.document.origin:
                key, mtime_ns = sha256(into.content), int(into.at * _NS)
                edits[into.path] = FileEdit(into.path, into.content, key, mtime_ns)
        return [
            replace(e, origin="" if e.content is None else self._new_origin(p))
            for p, e in edits.items()
        ]

    def _new_origin(self, path: str) -> str:
        """Return the origin that a memory shall have, "" for none."""
        mine = self._night.before.get(path)
        others = {merge.source for merge in self.merged if merge.into == path}
        if path in self._foreign or mine is None:
            others |= set(self.members)
        origins = [text.document.origin for text in self._old if text.path in {*others, path}]
        if path in self._foreign:
            origins.append(OUTSIDE if self._outside else ASSISTANT if any(origins) else "")
        return least_trusted(*origins, "" if mine else ASSISTANT)

    def _find_problems(self, lost_lately: Mapping[str, int]) -> Iterator[str]:
        """Yield what is wrong with the group's edits, and record its merges and removals."""
        keys = [one.key for text in self._old for one in text.statements]
        changed = len(self._keys.symmetric_difference(keys))
        if changed * (len(keys) + len(self._after)) > _WORK:
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
                yield from self._removal_problems(path)
            else:
                for is_secret, problem in _form_faults(new, old, self._old):
                    yield f"{path} {problem}"
                    self.secrets += [path] if is_secret else []
                if new.fixed or (old is not None and old.fixed):
                    yield from self._rule_problems(path, old, new)
                else:
                    yield from self._addition_problems(path, old, new)
                    yield from self._loss_problems(path, old, lost_lately.get(path, 0))

    def _removal_problems(self, path: str) -> Iterator[str]:
        """Record a removed memory as merged or removed, or yield why it may not be."""
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
        preferred = [*claims, *named(reason, targets)]
        ordered = sorted(targets, key=lambda target: (target not in preferred, target))
        missing = list(self._lost_statements(old))
        into = next((t for t in ordered if t in preferred or self._shares_text(t, old)), "")
        if into and not missing:
            self.merged.append(Merge(into, path))
        elif claims:
            if claims[0] not in self._night.after:  # the claim is a model's text, so it is quoted
                yield f"{path} is said to be in {quoted(claims[0])}, which is not there"
            for one in missing[:1]:
                yield f"{path} is said to be in {claims[0]}, where '{quoted(one.raw)}' is missing"
        elif len(words(reason)) < _REASON_WORDS:
            yield f"{path} would go without a reason"
        elif not self._is_voided_by(old, reason):
            yield f"{path} would go, and its reason names nothing that voids it: {quoted(reason)}"
        else:
            self.removed.append(Reasoned(path, secrets.scrub(reason)))

    def _shares_text(self, target: str, old: Text) -> bool:
        """Return whether the memory ``target`` has a statement of an old memory's body."""
        return any(one.key in self._night.after[target].keys for one in old.body)

    def _is_voided_by(self, old: Text, reason: str) -> bool:
        """Return whether a reason names the memory's last day, now past, or a newer statement."""
        facts = (fact for one in old.statements for fact in one.facts)
        last = max((form for kind, form in facts if kind == DATE and form[0] in "12"), default="")
        if last and last < self._night.today and last in resolve(reason, old.at):
            return True
        others = named(reason, self.members)
        newer = [text for text in self._new if text.path in others and text.at > old.at]
        stated = Statement(reason)
        statements = [one for text in newer for one in text.body]
        statements += [s for s in self._newer_than(old) if resemblance(stated, s) >= RESEMBLING]
        return any(_resemble(one, two) for one in statements for two in old.body)

    def _rule_problems(self, path: str, old: Text | None, new: Text) -> Iterator[str]:
        """Yield what is wrong with an edit of a person's rule or of an untyped memory."""
        kind = new.document.type or (old and old.document.type) or "untyped"
        if old is None:
            removed = [text for text in self._old if text.path not in self._night.after]
            if not any(_same(new, text) for text in removed):
                yield f"{path} would be a new {kind} memory, which needs the person"
            return
        was, now = old.document, new.document
        if was.type != now.type:
            yield f"{path} would change its type from {was.type or 'none'} to {now.type or 'none'}"
        elif was.body.encode() != now.body.encode():
            yield f"{path} is a {kind} memory and would say something else"
        elif (was.name, was.description) != (now.name, now.description):
            yield f"{path} is a {kind} memory and would get another name or description"

    def _addition_problems(self, path: str, old: Text | None, new: Text) -> Iterator[str]:
        """Yield what a memory would newly say, link to or be named without a ground."""
        newer = self._newer_than(old)
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

    def _loss_problems(self, path: str, old: Text | None, lately: int) -> Iterator[str]:
        """Yield what a memory that stays would lose; ``lately`` words were lost in 30 days."""
        if old is None:
            return
        for one in self._lost_statements(old):
            yield f"{path} would lose without a reason: '{quoted(one.raw)}'"
        words_after, words_before = _all_words(self._after), _all_words(old.body)
        gone = [s for s in old.statements if s.key not in self._keys and not self._void(s, old)]
        lost = _all_words(gone) & words_before - words_after
        self.lost[path] = len(lost)
        if lost and _HALF * (len(lost) + lately) > len(words_before) + lately:
            yield f"{path} would lose more than half of its words within a month"

    def _lost_statements(self, old: Text) -> Iterator[Statement]:
        """Yield a memory's statements that its group no longer says and that are not void."""
        for one in old.statements:
            if one.key in self._keys or not one.words:
                continue
            plain = one is old.description
            if not self._void(one, old) and not restated(one, self._after, self._raw, plain=plain):
                yield one

    def _void(self, one: Statement, old: Text) -> bool:
        """Return whether a memory's statement is out of date or contradicted by a newer one."""
        fresh = [new for new in self._after if new.key not in self._grounds.keys]
        since = iso_time(min(old.times))[:10]
        return void(one, [*self._newer_than(old), *fresh], written=since, today=self._night.today)

    def _newer_than(self, old: Text | None) -> list[Statement]:
        """Return the statements of memories and sources that are newer than a memory."""
        at = old.at if old else 0.0
        texts = [one for text in self._old if old and text.at > at for one in text.statements]
        sources = [one for source, said in self._night.sources if source.at >= at for one in said]
        return [*texts, *sources]


def _all_words(statements: Iterable[Statement]) -> frozenset[str]:
    return frozenset[str]().union(*(one.words for one in statements))


def _same(one: Text, two: Text) -> bool:
    """Return whether two memories have the same type and body."""
    first, second = one.document, two.document
    return first.type == second.type and first.body.strip() == second.body.strip()


def _in_order(old: Text, new: Text) -> bool:
    """Return whether the numbered steps that two memories share have the same order in both."""
    old_steps = dict.fromkeys(one.key for one in old.statements if one.step)
    new_steps = [
        key for key in dict.fromkeys(one.key for one in new.statements) if key in old_steps
    ]
    return new_steps == [key for key in old_steps if key in new.keys]


def _resemble(one: Statement, two: Statement) -> bool:
    """Return whether two statements share two words and resemble each other."""
    return len(one.words & two.words) > 1 and resemblance(one, two) >= RESEMBLING


def _form_faults(new: Text, old: Text | None, group: Sequence[Text]) -> Iterator[tuple[bool, str]]:
    """Yield problems of size, path, secrets and frontmatter, each with whether it is a secret."""
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
    lines = {line for text in group for line in _frontmatter_lines(text)}
    for line in _frontmatter_lines(new):
        if line not in lines and (" #" in line or line.lstrip().startswith("#")):
            yield False, f"would have a comment in its head: '{quoted(line)}'"


def _fields(text: Text) -> set[str]:
    """Return the fields of a memory's frontmatter, except the stamps, as ``name: value``."""
    items = text.document.metadata.items()
    return {f"{name}: {value}" for name, value in items if name not in _STAMPS}


def _frontmatter_lines(text: Text) -> list[str]:
    """Return the lines of a memory's frontmatter."""
    fenced = split(text.content)
    return [] if fenced is None else [line.rstrip() for line in fenced.lines]

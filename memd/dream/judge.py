"""Judge the changes of a dream: decide which may be made and which are kept back. Pure.

Rules of this file
- Judged are the memories before and after. Of a model's own words only the reasons of removals and
  the claimed merges are used, and both are checked. Each group (``groups.py``) is judged alone.
- The body and the fields, except the stamps, of a ``user``, ``feedback`` or untyped memory stay
  byte for byte. An exact copy of one may be removed. No other memory becomes one of these.
- New statements of other memories need a ground (``grounds.py``). Old ones remain in the group, or
  are void: their day is over or a newer one contradicts them. Evidence stays with its memory.
- A removal names what makes the memory void. A tenth of the memories (or five) may be so removed
  in one changes, a third in 30 days. One memory may lose half of its telling words in 30 days.
- The new statements of a group get the least trusted origin in the group.
- A damaged file is not changed. No new text is damaged, too large or has a new secret. Fields of
  frontmatter, except stamps, are not added or removed, and no comment is added.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memd.base.names import INDEX
from memd.base.text import iso_time, sha256
from memd.base.values import ASSISTANT, OUTSIDE, FileEdit, MemoryFile, least_trusted
from memd.base.yielding import yield_to_requests
from memd.dream import index_lines
from memd.dream.form import form_problems, link_and_name_problems
from memd.dream.grounds import Grounds, is_still_stated, is_void
from memd.dream.groups import (
    DreamChanges,
    MemoryText,
    all_words,
    are_related,
    has_same_step_order,
    is_copy,
    memories_named_in,
)
from memd.dream.values import DreamReport, Merge, Reasoned, Wanted, quoted
from memd.store import secret
from memd.store.index import pointers
from memd.text.similarity import RESEMBLING, resemblance
from memd.text.statements import DATE, Statement
from memd.text.words import words

_REMOVALS_PER_NIGHT = 5  # a dream may remove so many memories for a reason, even of a few
_PART_PER_NIGHT = 10  # or the tenth part of the memories
_PART_PER_MONTH = 3  # the third part of the memories may be so removed in 30 days
_MOST_COMPARISONS = 300_000  # of two statements of a group; they take some seconds
_REASON_WORDS = 2  # a reason has at least so many
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
    report: DreamReport


def judge(
    before: Mapping[str, MemoryFile],
    wanted: Wanted,
    report: DreamReport,
    *,
    index: bytes | None,
    now: float,
    recent_losses: tuple[int, Mapping[str, int]],
) -> Judged:
    """Return which edits may be made, and the problems of the others.

    ``before`` are all memories by path; ``report`` is completed. ``recent_losses`` are the number
    of memories that dreams removed for a reason in 30 days, and by path how many telling words they
    took from each of the others. ``now`` is in seconds since 1970.
    """
    changes = DreamChanges(before, wanted, now)
    recently_removed, words_lost = recent_losses
    groups = [_Group(changes, members, words_lost) for members in changes.groups()]
    removing = [group for group in groups if group.removed and not group.problems]
    count = sum(len(group.removed) for group in removing)
    for sentence in _too_many_removals(count, len(before), recently_removed):
        for group in removing:
            group.problems.append(sentence)
    allowed = [group for group in groups if not group.problems]
    accepted = {path for group in allowed for path in group.members}
    waiting = [path for path in changes.edits if path not in accepted]
    texts = {path: text for path, text in changes.before.items() if path not in accepted}
    texts |= {path: text for path, text in changes.after.items() if path in accepted}
    edits = [edit for group in allowed for edit in group.edits()]
    kept_back = [changes.edits[path] for path in waiting]
    problems = [sentence for group in groups for sentence in group.problems]
    members = {path for group in groups for path in group.members}
    for edit in wanted.edits:
        if edit.path == INDEX and edit.content is not None:
            members.update(pointers(edit.content))
            old_index = index or b""
            content, index_problems, is_kept_back = index_lines.judge(
                old_index, edit.content, texts, accepted, waiting
            )
            problems += index_problems
            if content != old_index:
                edits.append(replace(edit, content=content))
            if is_kept_back:
                kept_back.append(edit)
    secret_paths = tuple(path for group in groups for path in group.secrets)
    report = _completed(report, edits, changes, allowed, problems)
    return Judged(tuple(edits), tuple(kept_back), secret_paths, frozenset(members), report)


def _completed(
    report: DreamReport,
    edits: Sequence[FileEdit],
    changes: DreamChanges,
    allowed: "Sequence[_Group]",
    problems: Iterable[str],
) -> DreamReport:
    """Return a report with the edits that may be made and the problems of the others."""
    written = [e.path for e in edits if e.content is not None and e.path in changes.edits]
    lost_words = {path: count for group in allowed for path, count in group.lost_words.items()}
    return replace(
        report,
        created=tuple(path for path in written if path not in changes.before),
        changed=tuple(path for path in written if path in changes.before),
        merged=tuple(merge for group in allowed for merge in group.merged),
        removed=tuple(removal for group in allowed for removal in group.removed),
        problems=tuple(dict.fromkeys(problems)),
        lost={path: count for path, count in lost_words.items() if count},
    )


def _too_many_removals(count: int, total: int, recently_removed: int) -> Iterator[str]:
    """Yield a problem if too many memories would be removed in one night or within 30 days.

    ``count`` of ``total`` memories would be removed now; ``recently_removed`` were before.
    """
    per_night = max(_REMOVALS_PER_NIGHT, total // _PART_PER_NIGHT)
    per_month = max(1, (total + recently_removed) // _PART_PER_MONTH)
    if count > per_night:
        yield f"{count} of {total} memories would go by reasons alone; {per_night} may in one night"
    elif count and count + recently_removed > per_month:
        yield (
            f"{count} of {total} memories would go by reasons alone, {recently_removed} went"
            f" lately; {per_month} may in 30 days"
        )


class _Group:
    """A group of memories and its judgement: its problems, merges and removals.

    ``members`` are the paths of the group. ``words_lost`` are by path how many telling words dreams
    took from a memory in 30 days.
    """

    def __init__(
        self,
        changes: DreamChanges,
        members: tuple[str, ...],
        words_lost: Mapping[str, int],
    ) -> None:
        self._changes = changes  # all memories of the directory, of which the group is a part
        self.members = members
        # The memories of the group before and after.
        self._old = [changes.before[path] for path in members if path in changes.before]
        self._new = [changes.after[path] for path in members if path in changes.after]
        self._new_statements = [statement for text in self._new for statement in text.statements]
        self._new_keys = frozenset(statement.key for statement in self._new_statements)
        self._new_raw = "\n".join(text.raw for text in self._new)
        sources = changes.sources
        self._grounds = Grounds(
            [statement for text in self._old for statement in text.statements],
            logs=[statement for source, stated in sources if source.log for statement in stated],
            transcripts=[
                statement for source, stated in sources if not source.log for statement in stated
            ],
            raw="\n".join(text.raw for text in self._old),
            paths=changes.known.paths,
        )
        # The results, which _find_problems records.
        self.merged: list[Merge] = []
        self.removed: list[Reasoned] = []
        self.lost_words: dict[str, int] = {}  # by path, how many telling words a memory loses
        self.secrets: list[str] = []  # paths whose new text must not be stored
        self._with_additions: set[str] = set()  # paths of memories with a new statement
        self._has_outside_statement = False  # whether a new statement is only in transcripts
        self.problems = list(dict.fromkeys(self._find_problems(words_lost)))

    def edits(self) -> list[FileEdit]:
        """Return the group's edits with their origins, also those that only set an origin."""
        edits = {p: self._changes.edits[p] for p in self.members if p in self._changes.edits}
        for merge in self.merged:
            target = self._changes.after[merge.into]
            if target.path not in edits and self._new_origin(target.path) != target.document.origin:
                digest, mtime_ns = sha256(target.content), int(target.at * _NS)
                edits[target.path] = FileEdit(target.path, target.content, digest, mtime_ns)
        return [
            replace(edit, origin="" if edit.content is None else self._new_origin(path))
            for path, edit in edits.items()
        ]

    def _new_origin(self, path: str) -> str:
        """Return the origin that a memory gets, "" for none.

        It is the least trusted one of the memory and of all memories whose text it has now.
        """
        is_new = path not in self._changes.before
        has_additions = path in self._with_additions
        sources = {merge.source for merge in self.merged if merge.into == path} | {path}
        if has_additions or is_new:  # its new text may be from any memory of the group
            sources |= set(self.members)
        origins = [text.document.origin for text in self._old if text.path in sources]
        if has_additions and self._has_outside_statement:
            origins.append(OUTSIDE)
        elif has_additions and any(origins):
            origins.append(ASSISTANT)
        if is_new:
            origins.append(ASSISTANT)
        return least_trusted(*origins)

    def _find_problems(self, words_lost: Mapping[str, int]) -> Iterator[str]:
        """Yield what is wrong with the group's edits, and record its merges and removals."""
        old_keys = [statement.key for text in self._old for statement in text.statements]
        changed = len(self._new_keys.symmetric_difference(old_keys))
        if changed * (len(old_keys) + len(self._new_statements)) > _MOST_COMPARISONS:
            yield f"{self.members[0]} would change in too many places to be compared"
            return
        for path in self.members:
            yield_to_requests()
            if path not in self._changes.edits:
                continue
            old, new = self._changes.before.get(path), self._changes.after.get(path)
            if old is not None and old.document.damaged:
                yield f"{path} is damaged and would be touched"
            elif new is None:
                yield from self._removal_problems(path)
            else:
                for is_secret, problem in form_problems(new, old, self._old):
                    yield f"{path} {problem}"
                    self.secrets += [path] if is_secret else []
                if new.is_rule or (old is not None and old.is_rule):
                    yield from self._rule_problems(path, old, new)
                else:
                    yield from self._addition_problems(path, old, new)
                    yield from self._loss_problems(path, old, words_lost.get(path, 0))

    def _removal_problems(self, path: str) -> Iterator[str]:
        """Record a removed memory as merged or removed, or yield why it may not be."""
        old = self._changes.before.get(path)
        if old is None:
            return  # no memory that could be read is lost
        reason = self._changes.wanted.reasons.get(path, "")
        claims = [merge.into for merge in self._changes.wanted.merges if merge.source == path]
        copies = [text for text in self._new if is_copy(text, old)]
        if old.is_rule and not copies:
            kind = old.document.type or "untyped"
            yield f"{path} is a {kind} memory and would go; only an exact copy of one may"
            return
        targets = [text.path for text in (copies or self._new) if text.path != path]
        preferred = [*claims, *memories_named_in(reason, targets)]
        ordered = sorted(targets, key=lambda target: (target not in preferred, target))
        related = (one for one in ordered if one in preferred or self._shares_text(one, old))
        target = next(related, "")
        missing = list(self._lost_statements(old))
        if target and not missing:
            self.merged.append(Merge(target, path))
        elif claims:
            # The claim is a model's text, so it is quoted.
            if claims[0] not in self._changes.after:
                yield f"{path} is said to be in {quoted(claims[0])}, which is not there"
            if missing:
                lost_text = quoted(missing[0].raw)
                yield f"{path} is said to be in {quoted(claims[0])}, where '{lost_text}' is missing"
        elif len(words(reason)) < _REASON_WORDS:
            yield f"{path} would go without a reason"
        elif not self._is_voided_by(old, reason):
            yield f"{path} would go, and its reason names nothing that voids it: {quoted(reason)}"
        else:
            self.removed.append(Reasoned(path, secret.scrub(reason)))

    def _shares_text(self, target: str, old: MemoryText) -> bool:
        """Return whether the memory ``target`` has a statement of an old memory's body."""
        return any(statement.key in self._changes.after[target].keys for statement in old.body)

    def _is_voided_by(self, old: MemoryText, reason: str) -> bool:
        """Return whether a reason names the memory's last day, now past, or a newer statement."""
        facts = (fact for one in old.statements for fact in one.facts)
        # Only dates with a year can be compared; names of days and months are dates too.
        dates = [form for kind, form in facts if kind == DATE and form[0] in "12"]
        last_day = max(dates, default="")
        if last_day and last_day < self._changes.today and last_day in reason:
            return True
        others = memories_named_in(reason, self.members)
        newer_texts = [text for text in self._new if text.path in others and text.at > old.at]
        newer = [one for text in newer_texts for one in text.body]
        stated = Statement(reason)
        newer += [s for s in self._newer_than(old) if resemblance(stated, s) >= RESEMBLING]
        return any(are_related(one, two) for one in newer for two in old.body)

    def _rule_problems(self, path: str, old: MemoryText | None, new: MemoryText) -> Iterator[str]:
        """Yield what is wrong with an edit of a person's rule or of an untyped memory."""
        kind = new.document.type or (old and old.document.type) or "untyped"
        if old is None:  # it may only be a rule that the dream moves to another path
            removed = [text for text in self._old if text.path not in self._changes.after]
            if not any(is_copy(new, text) for text in removed):
                yield f"{path} would be a new {kind} memory, which needs the person"
            return
        was, now = old.document, new.document
        if was.type != now.type:
            yield f"{path} would change its type from {was.type or 'none'} to {now.type or 'none'}"
        elif was.body.encode() != now.body.encode():
            yield f"{path} is a {kind} memory and would say something else"
        elif (was.name, was.description) != (now.name, now.description):
            yield f"{path} is a {kind} memory and would get another name or description"

    def _addition_problems(
        self, path: str, old: MemoryText | None, new: MemoryText
    ) -> Iterator[str]:
        """Yield what a memory would newly say, link to or be named without a ground."""
        for problem in link_and_name_problems(new, old, self._old, self._changes.known.paths):
            yield f"{path} {problem}"
        if any(not has_same_step_order(text, new) for text in self._old):
            yield f"{path} would have steps in another order"
        newer = self._newer_than(old)
        known_keys = old.keys if old else frozenset[str]()
        for statement in new.statements:
            if statement.key in known_keys or not statement.words:
                continue
            self._with_additions.add(path)
            problem = self._grounds.problem(statement, newer)
            if problem:
                yield f"{path} {problem}: '{quoted(statement.raw)}'"
            self._has_outside_statement |= self._grounds.outside(statement)

    def _loss_problems(self, path: str, old: MemoryText | None, words_lost: int) -> Iterator[str]:
        """Yield what a memory that stays would lose.

        ``words_lost`` is how many telling words it lost to dreams in 30 days.
        """
        if old is None:
            return
        for one in self._lost_statements(old):
            yield f"{path} would lose without a reason: '{quoted(one.raw)}'"
        words_before, words_after = all_words(old.body), all_words(self._new_statements)
        lost_statements = [
            s for s in old.statements if s.key not in self._new_keys and not self._void(s, old)
        ]
        lost_count = len((all_words(lost_statements) & words_before) - words_after)
        self.lost_words[path] = lost_count
        half = (len(words_before) + words_lost) / 2
        if lost_count and lost_count + words_lost > half:
            yield f"{path} would lose more than half of its words within a month"

    def _lost_statements(self, old: MemoryText) -> Iterator[Statement]:
        """Yield a memory's statements that its group no longer says and that are not void."""
        for statement in old.statements:
            if statement.key in self._new_keys or not statement.words or self._void(statement, old):
                continue
            is_description = statement is old.description
            if not is_still_stated(
                statement, self._new_statements, self._new_raw, plain=is_description
            ):
                yield statement

    def _void(self, statement: Statement, old: MemoryText) -> bool:
        """Return whether a memory's statement is out of date or contradicted by a newer one."""
        additions = [s for s in self._new_statements if s.key not in self._grounds.keys]
        newer = [*self._newer_than(old), *additions]
        written = iso_time(min(old.times))[:10]
        return is_void(statement, newer, written=written, today=self._changes.today)

    def _newer_than(self, old: MemoryText | None) -> list[Statement]:
        """Return the statements of the group's memories and of sources that are newer.

        For ``None``, a new memory, these are the statements of all sources.
        """
        at = old.at if old else 0.0
        newer_texts = [text for text in self._old if old and text.at > at]
        newer_sources = [stated for source, stated in self._changes.sources if source.at >= at]
        statements = [statement for text in newer_texts for statement in text.statements]
        return [*statements, *(statement for stated in newer_sources for statement in stated)]

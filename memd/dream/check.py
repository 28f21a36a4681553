"""Check what a dream's model chose and wrote, each group by itself. Blocks.

Three rules decide, and none of them understands a sentence:

- **The person's own words stay.** A ``user``, ``feedback`` or untyped memory is afterwards what
  ``joining.py`` makes of it and of the memories merged into it, to the byte. A new one is what Keep
  made of words that the person typed.
- **Moves only.** A ``project`` or ``reference`` memory may be written anew if each of its sentences
  stood in a memory of its group, a daily log or the person's words, and none is lost. Anything else
  is for a second reader (``second_reader.py``), whose list has to be empty.
- **Stands somewhere.** A number, date, address, path or piece of code that stands in no source, and
  a new order or wish, are a problem without asking.

A removal names what makes the memory void: the memory it went into, a newer one, or its last day,
which is over.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice

from msgspec.structs import replace

from memd.agent.proposal import stamped
from memd.base.text import decode, iso_time, sha256
from memd.base.values import ASSISTANT, PERSON, FileEdit, Reasoned, Tree, least_trusted
from memd.base.yielding import yield_to_requests
from memd.dream import joining
from memd.dream.groups import MemoryText, Night
from memd.dream.sources import is_advice, log_statements
from memd.dream.values import TAKEN_BACK, Group, Wanted, damaged, quoted
from memd.dream.workspace import DreamWorkspace
from memd.store.memory import Memory
from memd.text.orders import orders, wishes
from memd.text.statements import Statement, details, has_detail

Repeats = Callable[[Sequence[FileEdit]], Collection[str]]

_DATE = r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)"
_SAID = "**Said:**"
_NEVER_LOST = ("**why:**", "**said:**")
_SHARED_WORDS = 3  # of a source's sentence with a new one, to be shown to the second reader
_SHOWN_SOURCES = 40  # sentences of sources that the second reader is shown
_MOST_PROBLEMS = 50  # of a group
_NS = 1_000_000_000
_PER_NIGHT = 5  # a dream may remove so many memories for a reason, even of a few
_PART_PER_NIGHT = 10  # or the tenth part of the memories
_PART_PER_MONTH = 3  # the third part of the memories may go so in 30 nights


def wanted(
    workspace: DreamWorkspace, tree: Tree, *, session: str, now: float, repeats: Repeats
) -> Wanted:
    """Return the groups of a run's work, each with its problems or what a reader has to compare.

    New memories are stamped with the ``session`` and ``now`` (seconds since 1970). ``repeats``
    returns the paths of edits that a dream made before to the same text.
    """
    night = Night(workspace, tree, session, now)
    groups, left = list[Group](), list[Reasoned]()
    for members in night.groups():
        yield_to_requests()
        group = _Checked(night, members).group()
        if again := sorted(repeats(group.edits)):
            left += group.left(again[0], TAKEN_BACK)
        else:
            groups.append(group)
    changed, problems = night.pointers()
    distilled = {name: sha256(night.logs[name].encode()) for name in workspace.read_logs}
    return Wanted(
        groups=(*groups, *night.questions()),
        pointers=changed,
        left=(*left, *problems),
        listed=damaged(tree),
        distilled={} if left else distilled,
    )


class _Checked:
    """One group of a night; ``members`` are its paths."""

    def __init__(self, night: Night, members: Sequence[str]) -> None:
        self._night = night
        self._members = members
        self._changed = [path for path in members if path in night.files]
        self._old = {path: night.before[path] for path in members if path in night.before}
        self._new = {path: night.after[path] for path in members if path in night.after}
        # Facts are memories that are no rules.
        self._old_facts = [text for text in self._old.values() if not text.is_rule]
        self._new_facts = [text for text in self._new.values() if not text.is_rule]
        self._old_keys = frozenset[str]().union(*(text.keys for text in self._old_facts))
        self._new_keys = frozenset[str]().union(*(text.keys for text in self._new_facts))
        self._given: dict[Callable[[str], bool], bool] = {}  # what ``_gave`` returned
        self._added = {
            text.path: [each for each in text.statements if each.key not in self._old_keys]
            for text in self._new_facts
            # What memd put together has no sentence of its own.
            if text.path in self._changed and not self._is_joined(text)
        }

    def group(self) -> Group:
        """Return the group with its edits, and its problems or the texts to compare."""
        night = self._night
        problems = tuple(dict.fromkeys(islice(self._problems(), _MOST_PROBLEMS)))
        gone = (path for path in self._changed if path not in self._new)
        is_for_reader = not problems and self._needs_reader()
        return Group(
            tuple(map(self._edit, self._changed)),
            {path: night.read.get(path) for path in self._members},
            removals={path: night.removals[path] for path in gone},
            problems=problems,
            old=self._old_texts() if is_for_reader else "",
            new=self._new_texts() if is_for_reader else "",
        )

    def _problems(self) -> Iterator[str]:
        """Yield what is wrong with the group's changes, without asking anybody."""
        for path in self._changed:
            old, new = self._old.get(path), self._new.get(path)
            if new is None:
                yield from self._removal_problems(path)
            elif new.is_rule or (old is not None and old.is_rule):
                yield from self._rule_problems(path, old, new)
            elif path in self._added:
                yield from self._head_problems(new, old)
                for each in old.statements if old else ():
                    is_lost = each.key not in self._new_keys
                    if is_lost and each.raw.casefold().startswith(_NEVER_LOST):
                        yield f"{path} would lose: '{quoted(each.raw)}'"
                for each in self._added[path]:
                    yield from self._statement_problems(new, each)

    def _removal_problems(self, path: str) -> Iterator[str]:
        """Yield why a memory may not go."""
        old, removal = self._old[path], self._night.removals[path]
        if removal.into:
            # Of a fact the texts show whether it is said there.
            into = self._night.after.get(removal.into)
            if old.is_rule and (into is None or not self._is_joined(into)):
                yield f"{path} would go, and {removal.into} does not say it"
        elif old.is_rule:
            yield f"{path} is a {old.read.type or 'untyped'} memory and would go"
        elif removal.by:
            newer = self._night.before.get(removal.by)
            if newer is None or self._times(newer)[-1] <= self._times(old)[-1]:
                yield f"{path} would go, and {removal.by} is no newer than it"
        elif not self._is_over(old, removal.reason):
            yield (
                f"{path} would go, and its reason names no last day of it that is over:"
                f" {quoted(removal.reason)}"
            )

    def _times(self, text: MemoryText) -> list[str]:
        """Return the times at which a memory may have been written, the earliest first."""
        stamp = text.read.metadata.get("modified", "")
        changed = iso_time(self._night.mtimes.get(text.path, 0) / _NS)
        return sorted((stamp or changed, changed))

    def _is_over(self, text: MemoryText, reason: str) -> bool:
        """Return whether a reason names the last day that a memory speaks of, which is over."""
        days = re.findall(_DATE, f"{text.read.description}\n{text.read.body}")
        last = max(days, default="")
        return bool(last) and last < self._night.today and last in reason

    def _rule_problems(self, path: str, old: MemoryText | None, new: MemoryText) -> Iterator[str]:
        """Yield what is wrong with a change of the person's own words."""
        kind = new.read.type or (old and old.read.type) or "untyped"
        if old is None:
            if self._night.decisions.of_person.get(path) != new.content:
                yield f"{path} would be a new {kind} memory, which needs the person's words"
        elif not self._is_joined(new):
            yield f"{path} is a {kind} memory and would say something else"

    def _is_joined(self, text: MemoryText) -> bool:
        """Return whether a memory is what it was with those that were merged into it."""
        return text.content == self._night.decisions.joined.get(text.path)

    def _head_problems(self, new: MemoryText, old: MemoryText | None) -> Iterator[str]:
        """Yield what is wrong with a memory's fields and links."""
        fields = _fields(new.read)
        allowed = {item for text in self._old.values() for item in _fields(text.read)}
        wrong = fields ^ _fields(old.read) if old else fields - allowed
        for name, value in sorted(wrong):
            yield f"{new.path} would gain or lose the field '{quoted(f'{name}: {value}')}'"
        old_links = frozenset[str]().union(*(text.links for text in self._old.values()))
        for link in sorted(new.links - old_links - self._night.known.paths):
            if link.endswith(".md"):
                yield f"{new.path} would link to what is not there: '{quoted(link)}'"

    def _statement_problems(self, new: MemoryText, statement: Statement) -> Iterator[str]:
        """Yield what is wrong with a new statement without asking anybody."""
        yield_to_requests()
        raw = statement.raw
        if raw.startswith(_SAID):
            yield f"{new.path} would have evidence that no memory of it had: '{quoted(raw)}'"
            return
        for detail in details(raw):
            if detail not in self._known_details and not has_detail(self._known, detail):
                yield f"{new.path} would say '{quoted(detail)}', which stands nowhere"
        if is_advice(statement):
            return
        for gives, what in ((orders, "order something"), (wishes, "say what somebody wants")):
            if gives(raw) and not self._gave(gives):
                yield f"{new.path} would {what}, which no memory of it did: '{quoted(raw)}'"

    @cached_property
    def _known(self) -> str:
        """All that the group's memories, the logs and the person say."""
        texts = (decode(text.content) for text in self._old.values())
        return "\n".join((*texts, self._night.sources))

    @cached_property
    def _known_details(self) -> frozenset[str]:
        """The details in all of that."""
        return frozenset(details(self._known))

    def _gave(self, gives: Callable[[str], bool]) -> bool:
        """Return whether a fact of the group was an order, or a wish, before."""
        if gives not in self._given:
            raws = (each.raw for text in self._old_facts for each in text.statements)
            self._given[gives] = any(map(gives, raws))
        return self._given[gives]

    def _needs_reader(self) -> bool:
        """Return whether the group has words that stood nowhere, or lost some."""
        if self._old_keys - self._new_keys:
            return True
        for path in self._added:
            new, old = self._new[path], self._old.get(path)
            if old is not None and not joining.has_steps(new.read.body, old.read.body):
                return True
            if any(self._is_new_wording(path, each) for each in self._added[path]):
                return True
            if self._has_new_head(new, old):
                return True
        return False

    def _is_new_wording(self, path: str, statement: Statement) -> bool:
        """Return whether a new statement stood in no source. New memories may have a reason."""
        if statement.key in self._night.log_keys | self._night.person_keys:
            return False
        of_sources = any(
            each.key in self._night.log_keys | self._night.person_keys for each in self._added[path]
        )
        is_plain_advice = is_advice(statement) and not any(details(statement.raw))
        return not (is_plain_advice and path not in self._old and of_sources)

    def _has_new_head(self, new: MemoryText, old: MemoryText | None) -> bool:
        """Return whether names, description or ``when`` say more than the texts, or lose a word."""
        olds = self._old.values()
        stem = "" if old else new.path.rpartition("/")[2].removesuffix(".md")
        heads = [each.read.description for each in olds]
        heads += [each.read.metadata.get("when", "") for each in olds]
        names = [_spelled(each.read.name) for each in olds]
        for text in (_spelled(new.read.name), _spelled(stem)):
            known = [new.read.body, *heads, *names]
            if text and text not in known and not joining.abridges(text, known):
                return True
        for text in (new.read.description, new.read.metadata.get("when", "")):
            known = [new.read.body, *heads, _spelled(new.read.name)]
            if text and text not in known and not joining.abridges(text, known):
                return True
        if old is None or old.read.description == new.read.description:
            return False
        return not joining.says(joining.text_of(new.read), old.read.description)

    def _edit(self, path: str) -> FileEdit:
        """Return the edit of a member, with its time and its origin."""
        night = self._night
        file, old, new = night.files[path], self._old.get(path), self._new.get(path)
        base = "" if file.base is None else sha256(file.base)
        if new is None:
            return FileEdit(path, None, base)
        if new.content == night.decisions.of_person.get(path):
            return FileEdit(path, new.content, base, origin=PERSON)
        sources = [source for source, into in night.into.items() if into == path]
        taken = [self._old[each] for each in (path, *sources) if each in self._old]
        known = frozenset[str]().union(*(text.keys for text in taken))
        if old is None or not new.keys <= known or not old.keys <= new.keys:
            made = stamped(file, session=night.session, modified=night.now)
            members = self._old.values() if old is None or not new.keys <= known else taken
            origins = [each.read.origin for each in members]
            origins += [ASSISTANT] if any(origins) or old is None else []
            return FileEdit(path, made.content, base, origin=least_trusted(*origins))
        # It says nothing new: it is as old as its newest source.
        mtime_ns = max(night.mtimes.get(each.path, 0) for each in taken)
        stamp = old.read.metadata.get("modified", "")
        if stamp and stamp != new.read.metadata.get("modified", ""):
            file = stamped(file, session=night.session, modified=stamp)
        origin = least_trusted(*(each.read.origin for each in taken))
        return FileEdit(path, file.content, base, mtime_ns, origin=origin)

    def _old_texts(self) -> str:
        """Return the old texts of the group for the second reader, and what sources say of it."""
        result = [self._shown(text, self._times(text)[-1]) for text in self._old_facts]
        words = [set(each.key.split()) for added in self._added.values() for each in added]
        sources = [
            (path, each.raw)
            for path, text in self._night.logs.items()
            for each in log_statements(text)
        ]
        sources += [("the person", each) for each in self._night.person]
        near = [
            f"[{where}] {raw}"
            for where, raw in sources
            if any(len(own & set(Statement(raw).key.split())) >= _SHARED_WORDS for own in words)
        ]
        if near:
            result.append("\n".join(near[:_SHOWN_SOURCES]))
        return "\n\n".join(result)

    def _new_texts(self) -> str:
        """Return the new texts of the group for the second reader."""
        return "\n\n".join(self._shown(text, "now") for text in self._new_facts)

    @staticmethod
    def _shown(text: MemoryText, written: str) -> str:
        """Return a memory as the second reader sees it."""
        read = text.read
        head = f"[{text.path}, written {written}] {_spelled(read.name)}: {read.description}"
        return f"{head}\n{read.body.strip()}"


def _spelled(name: str) -> str:
    """Return a memory's name, or the name of its file, as words."""
    return name.replace("-", " ").replace("_", " ")


def _fields(read: Memory) -> frozenset[tuple[str, str]]:
    """Return the fields of a head that memd does not set."""
    items = read.metadata.items()
    return frozenset((name, value) for name, value in items if name not in joining.OWN_FIELDS)


def too_many(groups: Sequence[Group], total: int, lately: int) -> tuple[Group, ...]:
    """Return the groups, with a problem for those that would remove too many memories.

    In one night a tenth of the ``total`` memories may go for a reason alone, or five; in 30 nights
    a third of what there was. ``lately`` went in the last 30 nights.
    """
    per_night = max(_PER_NIGHT, total // _PART_PER_NIGHT)
    per_month = max(1, (total + lately) // _PART_PER_MONTH - lately)
    result, count = list[Group](), 0
    for group in groups:
        named = [path for path, removal in group.removals.items() if not removal.into]
        number = 0 if group.problems else len(named)
        if number and count + number > min(per_night, per_month):
            span = "one night" if count + number > per_night else "30 nights"
            sentence = (
                f"{', '.join(named)} would go, and more may not go in {span} for a reason alone"
            )
            result.append(replace(group, problems=(sentence,)))
        else:
            count += number
            result.append(group)
    return tuple(result)

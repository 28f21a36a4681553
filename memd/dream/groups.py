"""Group the memories that a dream changes together, so that each group is judged alone. Pure.

Rules of this file
- Memories are of one group if one is merged into the other, took sentences from it, gained a link
  to it or had one to it when it was removed. Memories that a reason names belong to the group too,
  without being changed.
- The target of a link to a memory is not part of a statement; links are compared separately.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from memd.base.instants import written
from memd.base.names import INDEX
from memd.base.text import iso_time
from memd.base.values import PERSONAL, MemoryFile
from memd.base.yielding import yield_to_requests
from memd.dream.values import Wanted
from memd.store.memory import Memory, parse
from memd.text.links import Known, targets
from memd.text.similarity import RESEMBLING, resemblance
from memd.text.statements import Statement, statements

_SHARED_WORDS = 2  # at least, that a moved sentence has in common with the old one
_MOST_STATEMENTS = 500  # sentences that move out of longer memories are not searched
_NS = 1_000_000_000
_PATH = r"[\w./-]+\.md\b"  # of a memory, within a sentence


class MemoryText(Struct, frozen=True, eq=False, dict=True):
    """A memory with its statements; ``at`` is its time in seconds since 1970.

    ``known`` are the memories that links may lead to.
    """

    content: bytes
    path: str
    at: float
    known: Known

    @cached_property
    def document(self) -> Memory:
        """The parsed memory."""
        return parse(self.content, self.path)

    @property
    def is_rule(self) -> bool:
        """Whether its body may not change: it is a person's own rule, or of no known type."""
        return self.document.type in (None, *PERSONAL)

    @cached_property
    def raw(self) -> str:
        """Its description and body, without the targets of links to memories."""
        body = self.known.unlinked(self.document.body, self.path)
        return f"{self.document.description}\n{body}"

    @cached_property
    def description(self) -> Statement:
        """The description as a statement."""
        return Statement(self.document.description)

    @cached_property
    def body(self) -> tuple[Statement, ...]:
        """The statements of the body."""
        return tuple(statements(self.known.unlinked(self.document.body, self.path)))

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the body, and the description."""
        return (*self.body, self.description)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The comparison keys of its statements."""
        return frozenset(statement.key for statement in self.statements)

    @property
    def times(self) -> list[float]:
        """The times at which it may have been written: its mtime and its stamp, if any."""
        stamp = written(self.document.metadata.get("modified", ""))
        return [self.at] if stamp is None else [self.at, stamp]

    @cached_property
    def links(self) -> frozenset[str]:
        """The possible targets of its links."""
        return targets(self.document.body, self.path)


def memories_named_in(reason: str, known_paths: Collection[str]) -> tuple[str, ...]:
    """Return the paths in a reason that are ``known_paths`` memories."""
    return tuple(path for path in dict.fromkeys(re.findall(_PATH, reason)) if path in known_paths)


class DreamChanges:
    """All memories of a directory before and after one dream; ``now`` is in seconds since 1970."""

    def __init__(self, before: Mapping[str, MemoryFile], wanted: Wanted, now: float) -> None:
        self.wanted = wanted
        self.today = iso_time(now)[:10]  # an ISO date
        self.edits = {edit.path: edit for edit in wanted.edits if edit.path != INDEX}
        self.known = Known({*before, *self.edits})  # memories that links may lead to
        # The memories by path; ``after`` has also the unchanged ones.
        self.before = {
            path: MemoryText(file.content, path, file.header.mtime_ns / _NS, self.known)
            for path, file in before.items()
        }
        self.after = {path: text for path, text in self.before.items() if path not in self.edits}
        for path, edit in self.edits.items():
            if edit.content is not None:
                self.after[path] = MemoryText(edit.content, path, now, self.known)
        # The logs and transcripts that the run has read, each with its statements.
        self.sources = [(source, statements(source.text)) for source in wanted.sources]

    def groups(self) -> list[tuple[str, ...]]:
        """Return the paths of each group, the groups in the order of their first edits."""
        group_of: dict[str, list[str]] = {path: [path] for path in self.edits}
        for first_path, second_path in self._related_pairs():
            first = group_of.setdefault(first_path, [first_path])
            second = group_of.setdefault(second_path, [second_path])
            # Join the two groups: all paths of the second one now point to the first list.
            if first is not second:
                first += second
                group_of |= dict.fromkeys(second, first)
        distinct = {id(group): group for group in group_of.values()}  # each list once
        return [tuple(group) for group in distinct.values()]

    def _related_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the paths of each two memories that belong to one group."""
        paths = self.before.keys() | self.after.keys()
        for merge in self.wanted.merges:
            if merge.source in self.edits:
                yield merge.source, merge.into
        for path, reason in self.wanted.reasons.items():
            yield from ((path, other) for other in memories_named_in(reason, paths))
        removed = self.edits.keys() - self.after.keys()
        for path in self.edits:
            old_links = self.before[path].links if path in self.before else frozenset[str]()
            new_links = self.after[path].links if path in self.after else frozenset[str]()
            linked = ((new_links - old_links) & paths) | (old_links & removed)
            yield from ((path, other) for other in sorted(linked))
        yield from self._moved_sentences()

    def _moved_sentences(self) -> Iterator[tuple[str, str]]:
        """Yield the paths of a memory that gained a sentence and of one that lost it."""
        # By word: the lost statements that have it, each with the path of its memory.
        lost_by_word: dict[str, list[tuple[str, Statement]]] = defaultdict(list)
        for path in self.edits.keys() & self.before.keys():
            for old in _only_in(self.before[path], self.after.get(path)):
                # A statement without telling words is found by its whole text.
                for word in old.words or {old.key}:
                    lost_by_word[word].append((path, old))
        for path in self.edits.keys() & self.after.keys():
            yield_to_requests()
            own = self.before[path].body[:_MOST_STATEMENTS] if path in self.before else ()
            for new in _only_in(self.after[path], self.before.get(path)):
                # A sentence moved only if none of the memory's own resembles it more.
                to_own = max((resemblance(new, old) for old in own), default=0.0)
                lost = {
                    id(old): (other, old) for word in new.words for other, old in lost_by_word[word]
                }
                for other, old in lost.values():
                    shares_words = len(old.words & new.words) >= _SHARED_WORDS
                    is_near = shares_words and resemblance(new, old) >= max(RESEMBLING, to_own)
                    if other != path and (is_near or old.key == new.key):
                        yield path, other


def _only_in(text: MemoryText, other: MemoryText | None) -> list[Statement]:
    """Return the body's statements that another memory lacks; none for a very long memory."""
    if len(text.body) > _MOST_STATEMENTS:
        return []
    other_keys = other.keys if other else frozenset[str]()
    return [statement for statement in text.body if statement.key not in other_keys]


def all_words(of: Iterable[Statement]) -> frozenset[str]:
    """Return the telling words of statements."""
    return frozenset[str]().union(*(statement.words for statement in of))


def is_copy(one: MemoryText, two: MemoryText) -> bool:
    """Return whether two memories have the same type and body."""
    first, second = one.document, two.document
    is_same_body = first.body.strip() == second.body.strip()
    return is_same_body and first.type == second.type


def has_same_step_order(old: MemoryText, new: MemoryText) -> bool:
    """Return whether the numbered steps that two memories share have the same order in both."""
    old_steps = dict.fromkeys(statement.key for statement in old.statements if statement.step)
    new_keys = dict.fromkeys(statement.key for statement in new.statements)
    return [k for k in new_keys if k in old_steps] == [k for k in old_steps if k in new.keys]


def are_related(one: Statement, two: Statement) -> bool:
    """Return whether two statements share two words and resemble each other."""
    return len(one.words & two.words) > 1 and resemblance(one, two) >= RESEMBLING

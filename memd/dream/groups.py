"""Which memories of a dream belong together, so that each such group is judged by itself. Pure.

Rules of this file
- A group are memories that are merged, that hand text to each other, or that are linked to each
  other. Memories that a change only names belong to it as well; they are read and stay.
- Links to memories are no text: where one leads is compared apart from what the sentence says.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from memd.core.instants import written
from memd.core.names import INDEX
from memd.core.text import iso_time
from memd.core.values import PERSONAL, MemoryFile
from memd.core.yielding import yield_to_requests
from memd.documents.document import Document, parse
from memd.dream.values import Wanted
from memd.text.dates import resolve
from memd.text.links import Known, targets
from memd.text.similarity import RESEMBLING, resemblance
from memd.text.statements import DATE, Statement, statements

_SHARED = 2  # telling words, at least, of a sentence that went from one memory to another
_LONG = 500  # statements: what is handed on by a longer memory is not looked for
_NS = 1_000_000_000
_PATH = re.compile(r"[\w./-]+\.md\b")


@dataclass(frozen=True, eq=False)
class Text:
    """A memory with its statements, changed ``at`` seconds since 1970.

    ``known`` are the memories that links may lead to.
    """

    content: bytes
    path: str
    at: float
    known: Known

    @cached_property
    def document(self) -> Document:
        """The memory as it is read."""
        return parse(self.content, self.path)

    @property
    def fixed(self) -> bool:
        """Whether its body stays byte for byte: a person's own words, or perhaps so."""
        return self.document.type in (None, *PERSONAL)

    @cached_property
    def raw(self) -> str:
        """Description and body, without where links to memories lead."""
        body = self.known.unlinked(self.document.body, self.path)
        return f"{self.document.description}\n{body}"

    @cached_property
    def description(self) -> Statement:
        """The description."""
        return Statement(self.document.description)

    @cached_property
    def body(self) -> tuple[Statement, ...]:
        """The statements of the body."""
        return tuple(statements(self.known.unlinked(self.document.body, self.path)))

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """All statements."""
        return (*self.body, self.description)

    @cached_property
    def keys(self) -> frozenset[str]:
        """What its statements are compared by."""
        return frozenset(statement.key for statement in self.statements)

    @property
    def times(self) -> list[float]:
        """When it may have been written, in seconds since 1970: its mtime and its stamp."""
        stamp = written(self.document.metadata.get("modified", ""))
        return [self.at] if stamp is None else [self.at, stamp]

    @cached_property
    def days(self) -> frozenset[str]:
        """The dates that its relative dates may mean."""
        parts = [*self.raw.split("\n\n"), *(one.raw for one in self.statements)]
        meant = {resolve(part, at) for part in parts for at in self.times}
        facts = {fact for text in meant for fact in Statement(text).facts}
        return frozenset(form for kind, form in facts if kind == DATE)

    @cached_property
    def links(self) -> frozenset[str]:
        """What its links may lead to."""
        return targets(self.document.body, self.path)


def named(reason: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the memories that a reason names."""
    return tuple(path for path in dict.fromkeys(_PATH.findall(reason)) if path in known)


class Night:
    """All memories before and after a dream; ``now`` is seconds since 1970.

    ``sources`` are what the run has read, with their statements.
    """

    def __init__(self, before: Mapping[str, MemoryFile], wanted: Wanted, now: float) -> None:
        self.wanted = wanted
        self.today = iso_time(now)[:10]
        self.edits = {edit.path: edit for edit in wanted.edits if edit.path != INDEX}
        self.known = Known({*before, *self.edits})
        self.before = {
            path: Text(file.content, path, file.header.mtime_ns / _NS, self.known)
            for path, file in before.items()
        }
        self.after = {path: text for path, text in self.before.items() if path not in self.edits}
        for path, edit in self.edits.items():
            if edit.content is not None:
                self.after[path] = Text(edit.content, path, now, self.known)
        self.sources = [(source, statements(source.text)) for source in wanted.sources]

    def groups(self) -> list[tuple[str, ...]]:
        """Return the groups in the order of their first edits, each with its members."""
        sets: dict[str, list[str]] = {path: [path] for path in self.edits}
        for one, two in self._pairs():
            first, second = sets.setdefault(one, [one]), sets.setdefault(two, [two])
            if first is not second:
                first += second
                sets |= dict.fromkeys(second, first)
        return [tuple(members) for members in {id(one): one for one in sets.values()}.values()]

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the memories of which one is merged into, named by, linked to or split from one."""
        there = self.before.keys() | self.after.keys()
        for merge in self.wanted.merges:
            if merge.source in self.edits:
                yield merge.source, merge.into
        for path, reason in self.wanted.reasons.items():
            yield from ((path, other) for other in named(reason, there))
        gone = self.edits.keys() - self.after.keys()
        for path in self.edits:
            old = self.before[path].links if path in self.before else frozenset[str]()
            new = self.after[path].links if path in self.after else frozenset[str]()
            linked = ((new - old) & there) | (old & gone)
            yield from ((path, other) for other in sorted(linked))
        yield from self._handed()

    def _handed(self) -> Iterator[tuple[str, str]]:
        """Yield the memories of which one lost a sentence that another one gained."""
        losers: dict[str, list[tuple[str, Statement]]] = defaultdict(list)
        for path in self.edits.keys() & self.before.keys():
            for old in _more(self.before[path], self.after.get(path)):
                for word in old.words or {old.key}:
                    losers[word].append((path, old))
        for path in self.edits.keys() & self.after.keys():
            yield_to_requests()
            own = self.before[path].body[:_LONG] if path in self.before else ()
            for new in _more(self.after[path], self.before.get(path)):
                least = max((resemblance(new, old) for old in own), default=0.0)
                for other, old in {id(o): (p, o) for w in new.words for p, o in losers[w]}.values():
                    shared = len(old.words & new.words)
                    near = shared >= _SHARED and resemblance(new, old) >= max(RESEMBLING, least)
                    if other != path and (near or old.key == new.key):
                        yield path, other


def _more(text: Text, other: Text | None) -> list[Statement]:
    """Return what one memory says and another one does not; nothing of a long one."""
    known = other.keys if other else frozenset[str]()
    return [one for one in text.body if one.key not in known] if len(text.body) <= _LONG else []

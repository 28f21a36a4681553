"""A run of a dream's model beside the directory: which memories it changes together. Blocks.

Memories are of one group if one is merged into the other or superseded by it, took a sentence or a
detail from it, gained a link to it, or had one to it when it was removed.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.text import iso_time, sha256
from memd.base.values import PERSONAL, FileEdit, Pointer, Reasoned, Tree
from memd.dream import joining
from memd.dream.sources import log_statements
from memd.dream.values import Group, Removal, quoted
from memd.dream.workspace import DreamWorkspace
from memd.store.index import own_lines, pointers
from memd.store.memory import Memory, parse
from memd.text.links import Known, targets
from memd.text.statements import Statement, details, statements


class MemoryText(Struct, frozen=True, dict=True, eq=False):
    """A memory's text; ``known`` are the memories that links may lead to."""

    path: str
    content: bytes
    known: Known

    @cached_property
    def read(self) -> Memory:
        """The parsed memory."""
        return parse(self.content, self.path)

    @property
    def is_rule(self) -> bool:
        """Whether it is the person's own, or of no known type."""
        return self.read.type in (None, *PERSONAL)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of its body; the targets of links to memories do not count."""
        body = self.known.unlinked(self.read.body, self.path)
        return tuple(each for each in statements(body) if each.key)

    @cached_property
    def links(self) -> frozenset[str]:
        """The possible targets of its links."""
        return targets(self.read.body, self.path)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of its statements."""
        return frozenset(each.key for each in self.statements)


class Night:
    """What a run did in its workspace, beside the directory as it is now.

    ``read`` has the files as the run read them first.
    """

    def __init__(self, workspace: DreamWorkspace, tree: Tree, session: str, now: float) -> None:
        self.session = session
        self.now, self.today = iso_time(now), iso_time(now)[:10]
        self.files = {file.path: file for file in workspace.proposal().files}
        self._index = self.files.pop(INDEX, None)
        self.decisions = workspace.decisions
        self.read = workspace.memories_read()
        self.logs = workspace.logs
        self.person = workspace.persons_sentences()
        self._tree = tree
        self.mtimes = {header.path: header.mtime_ns for header in tree.headers()}
        self.known = Known({*self.mtimes, *self.files})
        self.before = {
            path: MemoryText(path, content, self.known)
            for path, content in self.read.items()
            if content is not None and path != INDEX
        }
        self.after = {path: text for path, text in self.before.items() if path not in self.files}
        self.after |= {
            path: MemoryText(path, file.content, self.known)
            for path, file in self.files.items()
            if file.content is not None
        }
        self.removals = self.decisions.removals
        self.into = {path: each.into for path, each in self.removals.items() if each.into}

    @cached_property
    def log_keys(self) -> frozenset[str]:
        """The keys of the statements of the daily logs."""
        all_of_logs = (each for text in self.logs.values() for each in log_statements(text))
        return frozenset(each.key for each in all_of_logs)

    @cached_property
    def person_keys(self) -> frozenset[str]:
        """The keys of the person's sentences."""
        return frozenset(Statement(each).key for each in self.person)

    @cached_property
    def sources(self) -> str:
        """All text of the logs and of the person."""
        return "\n".join((*self.logs.values(), *self.person))

    def groups(self) -> list[tuple[str, ...]]:
        """Return the paths of each group, the groups in the order of their first changes."""
        group_of: dict[str, list[str]] = {path: [path] for path in self.files}
        for first_path, second_path in self._related():
            first = group_of.setdefault(first_path, [first_path])
            second = group_of.setdefault(second_path, [second_path])
            if first is not second:
                first += second
                group_of |= dict.fromkeys(second, first)
        distinct = {id(group): group for group in group_of.values()}
        return [tuple(group) for group in distinct.values()]

    def _related(self) -> Iterator[tuple[str, str]]:
        """Yield the paths of each two memories that belong to one group."""
        for path, removal in self.removals.items():
            if path in self.files and (removal.into or removal.by):
                yield path, removal.into or removal.by
        removed = self.files.keys() - self.after.keys()
        lost: dict[str, list[str]] = defaultdict(list)  # paths by what they say no more
        for path in self.files:
            old, new = self.before.get(path), self.after.get(path)
            old_links = old.links if old else frozenset[str]()
            new_links = new.links if new else frozenset[str]()
            linked = ((new_links - old_links) & self.before.keys()) | (old_links & removed)
            yield from ((path, other) for other in sorted(linked))
            for each in old.statements if old else ():
                if new is None or each.key not in new.keys:
                    for sign in (each.key, *details(each.raw)):
                        lost[sign].append(path)
        for path in self.files.keys() & self.after.keys():
            own = frozenset(details(self.before[path].read.body if path in self.before else ""))
            for each in self.after[path].statements:
                signs = (each.key, *(d for d in details(each.raw) if d not in own))
                if path not in self.before or each.key not in self.before[path].keys:
                    yield from ((path, other) for sign in signs for other in lost[sign])

    def questions(self) -> Iterator[Group]:
        """Yield a group for each two rules of which the person has to say which one holds."""
        for (old, by), reason in self.decisions.questions.items():
            if {old, by} & self.files.keys():
                continue
            texts = [f"{path} ({quoted(self.before[path].read.description)})" for path in (old, by)]
            because = f": {quoted(reason)}" if reason else ""
            question = f"which of these holds, {texts[0]} or {texts[1]}?{because}"
            content = self.before[old].content
            yield Group(
                (FileEdit(old, None, sha256(content)),),
                {path: self.before[path].content for path in (old, by)},
                removals={old: Removal(question)},
                problems=(question,),
            )

    def pointers(self) -> tuple[dict[str, Pointer], list[Reasoned]]:
        """Return the new lines of the index by path, and what of the run's index is not done."""
        file = self._index
        if file is None or file.content is None:
            return {}, []
        old, new = pointers(file.base), pointers(file.content)
        result, problems = dict[str, Pointer](), list[Reasoned]()
        if own_lines(file.base or b"") != own_lines(file.content):
            problems.append(Reasoned(INDEX, "its lines that no memory has stay as they are"))
        for path, pointer in new.items():
            text = self.after.get(path) or self._text(path)
            if pointer == old.get(path) or text is None:
                continue
            earlier = old.get(path)
            texts = [text.read.body, text.read.description, path.replace("-", " ")]
            texts += [f"{earlier.title}\n\n{earlier.hook}"] if earlier else []
            new_texts = [pointer.title, pointer.hook.removesuffix(" (outside)").rstrip("\u2026 ")]
            if all(joining.abridges(each, (*texts, text.read.name)) for each in new_texts if each):
                result[path] = pointer
            else:
                problems.append(Reasoned(path, "its line in the index would say something else"))
        return result, problems

    def _text(self, path: str) -> MemoryText | None:
        """Return a memory that the run did not read, ``None`` if there is none."""
        try:
            file = self._tree.read(path) if path in self.mtimes.keys() - self.files.keys() else None
        except MemdError:
            return None
        return None if file is None else MemoryText(path, file.content, self.known)

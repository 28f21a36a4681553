"""``MEMORY.md``, updated in the set that changes the memories to which its lines point.

Afterwards each line leads to a memory and each memory has a line, but for lines that a person wrote
and for directories of very many memories. Nothing here writes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from memd.base import limits
from memd.base.names import INDEX, TEAM
from memd.base.values import IMPORT, OUTSIDE, Pointer
from memd.state.changes import Step
from memd.store import index, memory
from memd.store.index import Entries, read
from memd.store.tree import LiveTree

_INDEX_IS_FULL = f"{INDEX} would have more than {limits.READ_BYTES} bytes with one more line"
_MARKED_ORIGINS = (OUTSIDE, IMPORT)  # index lines of such memories end with a mark


class MemorySteps(Struct, frozen=True):
    """The steps of a set that change memories."""

    steps: Sequence[Step]
    bodies: Mapping[str, bytes]  # by hash: the texts before and after each step

    def own(self) -> Iterator[Step]:
        """Yield the steps of memories outside ``team/``, which has an index of its own."""
        return (step for step in self.steps if not step.path.startswith(TEAM))


def updated_index(
    content: bytes | None,
    pointers: Mapping[str, Pointer],
    tree: LiveTree,
    changes: MemorySteps,
    *,
    drop_dangling: bool = False,
) -> tuple[bytes | None, str]:
    """Return the index ``content`` updated for a set, and the reason why it lacks new lines or "".

    ``pointers`` are lines that the draft gives, by the path of the memory; other new lines are made
    from the memories' heads. With ``drop_dangling`` a person's lines that lead to nothing go, too.
    """
    content = _with_followed_lines(content, changes)
    texts_after = {step.path: changes.bodies[step.after] for step in changes.own() if step.after}
    deleted = {step.path for step in changes.own() if not step.after}
    entries = read(content or b"")
    # Of the files that lines name: those that exist after the set.
    existing = tree.among(entries.named | pointers.keys()) - deleted

    must_have_line = texts_after.keys() | (pointers.keys() & existing)
    must_have_line |= _memories_of_small_directory(tree, changes)
    missing = must_have_line - {line.paths[0] for line in entries.lines}
    given_lines = {path: pointers[path] for path in missing & pointers.keys()}
    lines_from_heads = _lines_from_heads(missing - given_lines.keys(), tree, texts_after)
    new_lines = lines_from_heads | given_lines

    of_person = _lines_of_person(entries, existing, deleted, tree, drop_dangling=drop_dangling)
    updated = index.reconcile(content, must_have_line, new_lines, existing, of_person)
    if updated is not None:
        # A line that came without a step of its memory may lack the mark of foreign words.
        other_lines_changed = content != tree.index() or not missing.issubset(texts_after)
        outside = _outside_marks(tree, changes, everywhere=other_lines_changed)
        updated = index.with_marks(updated, outside)
    is_too_large = len(updated or b"") > limits.READ_BYTES
    was_too_large = len(content or b"") > limits.READ_BYTES
    if is_too_large and not was_too_large:
        # No new lines, then: only those that lead nowhere are dropped.
        content_without_dangling = index.reconcile(
            content, (), {}, existing | must_have_line, of_person
        )
        return content_without_dangling, _INDEX_IS_FULL
    return updated, ""


def _with_followed_lines(content: bytes | None, changes: MemorySteps) -> bytes | None:
    """Return the index in which memd's lines of changed memories say what their heads now say."""
    heads: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {}  # before and after, by path
    for step in changes.own():
        if step.before and step.after:
            before, after = (
                memory.parse(changes.bodies[text], step.path).fields[:2]
                for text in (step.before, step.after)
            )
            if before != after:
                heads[step.path] = before, after
    return index.with_followed_lines(content, heads) if content and heads else content


def matches_files(tree: LiveTree) -> bool:
    """Say whether the live index has exactly the lines that the directory's files need.

    If not, files came or went without memd, and an older index would be wrong as well.
    """
    expected, _ = updated_index(tree.index(), {}, tree, MemorySteps((), {}))
    return expected == tree.index()


def _memories_of_small_directory(tree: LiveTree, changes: MemorySteps) -> frozenset[str]:
    """Return the memories that are there before and after a set, none for a large directory.

    In a large directory only the memories of the set get a line: prompts load the first 200 lines
    at most, so a thousand generated ones would be useless.
    """
    created = sum(step.before is None for step in changes.own())
    deleted = {step.path for step in changes.own() if not step.after}
    memories = tree.files() - {header.path for header in tree.team()}
    count_after = len(memories) + created - len(deleted)
    return memories - deleted if count_after <= limits.INDEX_ENTRIES else frozenset()


def _outside_marks(tree: LiveTree, changes: MemorySteps, *, everywhere: bool) -> dict[str, bool]:
    """Return by path whether an index line needs the mark of a memory from outside or an import.

    A memory that is no longer from there has ``False``. With ``everywhere`` all memories of the
    directory are included, else only those of the set.
    """
    is_marked_by_path: dict[str, bool] = {}
    if everywhere:
        headers = tree.headers()
        is_marked_by_path = {
            header.path: True for header in headers if header.origin in _MARKED_ORIGINS
        }
    for step in changes.steps:
        was_marked = _has_marked_origin(step.path, step.before, changes.bodies)
        is_marked = _has_marked_origin(step.path, step.after, changes.bodies)
        if was_marked or is_marked:
            is_marked_by_path[step.path] = is_marked
    return is_marked_by_path


def _has_marked_origin(path: str, text_hash: str | None, bodies: Mapping[str, bytes]) -> bool:
    """Say whether the text with this hash is of a memory from outside; ``None`` is no text."""
    if text_hash is None:
        return False
    return memory.parse(bodies[text_hash], path).origin in _MARKED_ORIGINS


def _lines_of_person(
    entries: Entries,
    existing: AbstractSet[str],
    deleted: AbstractSet[str],
    tree: LiveTree,
    *,
    drop_dangling: bool,
) -> frozenset[str]:
    """Return the targets of index lines that lead to no memory, and never did as far as memd knows.

    ``existing`` are the files that exist after the set, ``deleted`` those that it deletes. A person
    may have written such a line, so it stays; but only if the live index has it already, and with
    ``drop_dangling`` only if something lies there.
    """
    if entries.named <= existing:  # every line leads to a memory
        return frozenset()
    live_targets = read(tree.index() or b"").named
    dangling = [
        line
        for line in entries.lines
        if existing.isdisjoint(line.paths)
        and live_targets.issuperset(line.paths)
        and not (drop_dangling and not tree.lies(line.paths))
    ]
    targets = {path for line in dangling for path in line.paths}
    never_known = tree.unknown(targets) - deleted
    # A link may stand for several paths; one that memd knows is enough to drop the line.
    return frozenset(line.paths[0] for line in dangling if never_known.issuperset(line.paths))


def _lines_from_heads(
    paths: Collection[str], tree: LiveTree, texts_after: Mapping[str, bytes]
) -> dict[str, Pointer]:
    """Return index lines made from the name and the description in the heads of memories.

    ``texts_after`` are the texts that the set writes, by path.
    """
    lines: dict[str, Pointer] = {}
    for path in paths:
        if path in texts_after:
            name, description, *_ = memory.parse(texts_after[path], path).fields
            lines[path] = index.of_memory(name, description)
    if len(lines) < len(paths):  # reading all headers is slow, and seldom needed
        for header in tree.headers():
            if header.path in paths and header.path not in lines:
                lines[header.path] = index.of_memory(header.name, header.description)
    return lines

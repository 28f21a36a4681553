"""Turns the draft of a plan into the exact change: checked, merged, with the index in order.

Nothing here writes. An edit of a file that changed since its writer read it is merged with the live
text, if the log still has the text that the writer read. The index (MEMORY.md) is a set of lines:
- memd adds a line for a memory that has none, replaces the lines that it wrote, and removes a line
  when the change, or one before it, removed the file.
- A line to a file that never existed is a person's and stays; ``drop_dangling`` takes it out.
- Above 1,000 memories only those of the change get a line: prompts load 200 lines at most.
``team/MEMORY.md`` is derived from the memories beside it; a person's own lines stay behind.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.errors import MemdError, TooLarge
from memd.base.names import INDEX, INDEXES, TEAM, TEAM_INDEX, clash, in_catalogue
from memd.base.text import sha256
from memd.base.values import (
    FOREIGN,
    IMPORT,
    OUTSIDE,
    Draft,
    FileEdit,
    MemoryType,
    Plan,
    Tree,
    least_trusted,
)
from memd.store import check, index, memory, merge
from memd.store.disk import Content
from memd.store.log import ChangeLog, Step
from memd.store.memory import Memory
from memd.store.tree import LiveTree

_INDEX_IS_FULL = f"{INDEX} would have more than {limits.READ_BYTES} bytes with one more line"
_MARKED_ORIGINS = (OUTSIDE, IMPORT)  # index lines of such memories end with a mark
_TYPE_ORDER = {kind: number for number, kind in enumerate((*MemoryType, None))}


class Prepared(Struct):
    """A change that is ready to be made."""

    steps: list[Step] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)  # the texts before and after, by hash
    # By path: the memories of the steps before and after, ``None`` for no file.
    memories: dict[str, tuple[Memory | None, Memory | None]] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)  # whose text was merged with newer text
    emptied: set[str] = field(default_factory=set)  # files that are empty at the moment
    notes: list[str] = field(default_factory=list)  # why an index was not updated

    def add(self, edit: FileEdit, live: Content | None, mode: int | None = None) -> bool:
        """Add the step of an edit; return ``False`` if nothing changes.

        ``mode`` is that of a new file.
        """
        if edit.content == (live.content if live else None):
            return False
        before = live.hash if live else None
        after = None if edit.content is None else sha256(edit.content)
        if live:
            self.bodies[live.hash] = live.content
            if live.emptied:
                self.emptied.add(edit.path)
        if edit.content is not None and after is not None:
            self.bodies[after] = edit.content
        before_mtime_ns = live.mtime_ns if live else None
        mode = live.mode if live else mode
        self.steps.append(Step(edit.path, before, after, before_mtime_ns, mode, edit.mtime_ns))
        return True


def prepare(draft: Draft, tree: LiveTree, log: ChangeLog, origin: str = "") -> Prepared:
    """Return the change that a draft wants; without steps if nothing differs.

    ``origin`` says where the words come from, "" if unknown; it is written into the head of each
    memory. Texts that were in this directory before are not checked, and an import brings its own
    check. Raises what ``check.py`` refuses, Conflict for an edit that cannot be merged, and what
    reading the tree raises.
    """
    imports = draft.check_import is not None
    check.check_edits(draft.edits, restores=draft.restores, imports=imports)
    made = Prepared(merged=set(draft.merged))
    index_edits: dict[str, FileEdit] = {}
    for requested in draft.edits:
        edit, live = requested, tree.file(requested.path)
        if edit.base is not None and edit.base != (live.hash if live else ""):
            edit = _merged_with_live(edit, live, log)
            made.merged.add(edit.path)
        if edit.path in INDEXES:  # handled last: an index depends on the memories of the change
            index_edits[edit.path] = edit
            continue
        edit, old, new = _checked(edit, live, draft, origin)
        if made.add(edit, live, draft.modes.get(edit.path)):
            made.memories[edit.path] = (old, new)
    created = {step.path for step in made.steps if step.before is None}
    deleted = {step.path for step in made.steps if step.after is None}
    clashing = clash(created, (tree.memories() | created) - deleted) if created else None
    if clashing is not None:
        raise check.name_clash(*clashing)
    if made.steps or index_edits or draft.pointers or draft.mend_index:
        paths = (*index_edits, *made.memories, *tree.shared())
        has_team = TEAM_INDEX in tree.rows or any(path.startswith(TEAM) for path in paths)
        indexes = {INDEX: _own_index} | ({TEAM_INDEX: _team_index} if has_team else {})
        for path, new_index in indexes.items():
            index_edit, note = new_index(draft, index_edits.get(path), tree, made)
            made.notes += [f"{note}; it is left as it is"] if note else []
            if index_edit is not None:
                made.add(index_edit, tree.file(path), draft.modes.get(path))
    if not draft.restores:
        passed = {*(made.memories if imports else ()), TEAM_INDEX}
        texts = [
            (step.path, made.bodies[step.before] if step.before else None, made.bodies[step.after])
            for step in made.steps
            if step.after and step.path not in passed
        ]
        # A line that memd writes into the index is of one memory, and of what is searched here.
        check.check_new_texts(texts, by_lines={INDEX} - index_edits.keys())
    made.merged &= {step.path for step in made.steps}
    return made


def prepare_refused(draft: Draft, tree: LiveTree) -> Prepared:
    """Return the change of a draft that conflicts, without merging: the log keeps its texts.

    Raises what ``check.py`` refuses in the texts; such texts are not kept.
    """
    made = Prepared()
    for edit in draft.edits:
        live = tree.file(edit.path)
        before = live.content if live else None
        if edit.content is not None and edit.content != before:
            is_index = edit.path == INDEX
            most = limits.READ_BYTES if is_index else limits.MEMORY_BYTES
            check.check_size(edit.path, edit.content, most)
            if not is_index:
                check.check_shared(edit.path, edit.content)
            check.check_secrets(edit.path, before, edit.content)
        made.add(edit, live)
    return made


def mend_index(paths: Collection[str] = ()) -> Plan:
    """Return the plan that puts the index in order, with a line for each of these memories."""

    def plan(tree: Tree) -> Draft:
        """Return the draft."""
        pointers = {
            header.path: index.of_memory(header.name, header.description)
            for header in tree.headers()
            if header.path in paths
        }
        return Draft(pointers=pointers, mend_index=True)

    return plan


def delayed_save_plan(step: Step, body: bytes, log: ChangeLog) -> Plan:
    """Return the plan that brings a late save into the live file, or changes nothing.

    The program began with the text before the step. If both changed the same lines, the late save
    wins, unless somebody else changed the file since memd wrote it.
    """

    def plan(tree: Tree) -> Draft:
        """Return the draft with what the late save changed, empty if the live file has it."""
        is_index = step.path in INDEXES
        result = None if is_index else tree.read(step.path)
        live = tree.index() if is_index else result.content if result else None
        live_hash = None if live is None else sha256(live)
        base = log.body(step.before) or log.body(step.after) or b""
        wanted = None
        if live is not None and is_index:
            wanted = merge.merge_index(base, body, live)
        elif live is not None:
            wanted = merge.merge_memory(base, body, live, step.path)
        # If the file is as memd left it, no work of others is lost when the late save replaces it.
        if wanted is None and live_hash in (step.before, step.after):
            wanted = body
        if wanted is None or wanted == live:
            return Draft()
        # ``restores``: the text is saved already, so its size and secrets are not checked.
        return Draft((FileEdit(step.path, wanted, live_hash or ""),), restores=True)

    return plan


def merge_edit(edit: FileEdit, base: bytes | None, live: bytes) -> bytes | None:
    """Return the live text merged with a writer's edit, or ``None`` if they cannot be merged.

    ``base`` is the text that the edit is based on, ``None`` if it is lost. An edit of the index
    that is based on no index is merged as if both sides had begun with an empty one.
    """
    if edit.path == INDEX and not edit.base:
        base = b""
    if base is None or edit.content is None:
        return None
    if edit.path == INDEX:
        return merge.merge_index(base, edit.content, live)
    return merge.merge_memory(base, edit.content, live, edit.path)


def _merged_with_live(edit: FileEdit, live: Content | None, log: ChangeLog) -> FileEdit:
    """Return an edit merged with the live file, which changed since its writer read it.

    Raises Conflict if they cannot be merged. That includes an edit that deletes a changed file, and
    one of a file that was deleted.
    """
    content = merge_edit(edit, log.body(edit.base), live.content) if live else None
    if content is None or live is None:
        raise check.conflict(edit.path, edit.base or "", live.hash if live else "")
    mtime_ns = None if edit.mtime_ns is None else max(edit.mtime_ns, live.mtime_ns)
    return replace(edit, content=content, base=live.hash, mtime_ns=mtime_ns)


def _checked(
    edit: FileEdit, live: Content | None, draft: Draft, origin: str
) -> tuple[FileEdit, Memory | None, Memory | None]:
    """Return the edit of a memory with the origin in its head, and the memory before and after.

    Raises what ``check.py`` refuses; credentials are searched later.
    """
    before = live.content if live else None
    old = None if before is None else memory.parse(before, edit.path)
    if edit.content is None:
        return edit, old, None
    new = memory.parse(edit.content, edit.path)
    if draft.check_import is not None:
        draft.check_import(edit.path, before, edit.content)
    elif not draft.restores:
        content = _with_origin(edit, old, new, origin, by_person=draft.by_person)
        if content is not edit.content:
            edit, new = replace(edit, content=content), memory.parse(content, edit.path)
        if content != before:
            check.check_size(edit.path, content)
            if edit.path.startswith(TEAM):
                check.check_shared(edit.path, content)
    return edit, old, new


def _with_origin(
    edit: FileEdit, old: Memory | None, new: Memory, writer_origin: str, *, by_person: bool
) -> bytes:
    """Return the text of an edit with its origin (who its words come from) in the head.

    A foreign origin of the live memory stays, and so does any origin if only the head changes,
    unless the person saves it (``by_person``). The text may name a less trusted origin than its
    writer has. Raises Invalid for a head that cannot be changed.
    """
    origin, content = edit.origin or writer_origin, edit.content or b""
    if not origin or edit.path.startswith(TEAM) or new.head is None:
        return content
    if by_person:
        wanted = origin
    elif old and old.raw_body == new.raw_body and not edit.origin:  # only the head changes
        wanted = old.origin
    else:
        # What the text says of itself counts only if the writer did not name the origin.
        said = ("" if edit.origin else new.origin, old.origin if old else "")
        wanted = least_trusted(origin, *(each for each in said if each in FOREIGN))
    if wanted == new.origin:
        return content
    try:
        return memory.with_fields(content, {"metadata.origin": wanted})
    except MemdError:
        # A foreign origin must be in the head, or these words would pass for the user's own.
        if new.origin or wanted in FOREIGN:
            raise
        return content


def _own_index(
    draft: Draft, wanted: FileEdit | None, tree: LiveTree, made: Prepared
) -> tuple[FileEdit | None, str]:
    """Return the edit of the index after a change, and the reason why it lacks new lines or "".

    ``wanted`` is the draft's own edit of the index, on which the result is based.
    """
    try:
        file = tree.file(INDEX)
    except TooLarge as error:
        return None, error.sentence
    live = file.content if file else None
    content, note = wanted.content if wanted else live, ""
    # If files came or went without memd, an older index would be wrong as well.
    is_exact = (
        wanted is not None
        and draft.exact_index
        and _with_lines(live, Draft(), tree, Prepared())[0] == live
    )
    if not is_exact:
        content, note = _with_lines(content, draft, tree, made)
    if content is not None and not draft.restores:
        check.check_size(INDEX, content, limits.READ_BYTES)
    return FileEdit(INDEX, content, mtime_ns=wanted.mtime_ns if wanted else None), note


def _with_lines(
    content: bytes | None, draft: Draft, tree: LiveTree, made: Prepared, *, adds: bool = True
) -> tuple[bytes | None, str]:
    """Return an index with the lines that a change needs, and why it lacks some or "".

    Unless it ``adds`` lines, it only drops those that lead nowhere.
    """
    changed = {path: both for path, both in made.memories.items() if not path.startswith(TEAM)}
    heads = {
        path: ((old.name, old.description), (new.name, new.description))
        for path, (old, new) in changed.items()
        if old and new and (old.name, old.description) != (new.name, new.description)
    }
    parsed = index.Index(content)
    if heads:
        parsed.follow(heads)
    written = {path for path, (_, new) in changed.items() if new}
    deleted = changed.keys() - written
    entries = parsed.entries.values()
    named = (path for entry in entries for path in entry.paths)
    existing = tree.memories(chain(draft.pointers, named)).difference(deleted) | written
    must_have_line = written | (draft.pointers.keys() & existing)
    private = tree.memories().difference(tree.shared(), deleted) | written
    if len(private) <= limits.INDEX_ENTRIES:
        must_have_line |= private
    missing = must_have_line - parsed.listed
    pointers = dict(draft.pointers)
    for path in missing - pointers.keys():
        head = (path in changed and changed[path][1]) or tree.rows[path].header
        pointers[path] = index.of_memory(head.name, head.description)
    of_person = frozenset[str]()
    if not parsed.listed <= existing:
        lost = [entry for entry in entries if existing.isdisjoint(entry.paths)]
        of_person = _lines_of_person(lost, deleted, tree, dropped=draft.drop_dangling)
    if not adds:
        parsed.reconcile((), {}, existing | must_have_line, of_person)
        return (None if content is None else b"".join(parsed.lines)), _INDEX_IS_FULL
    added = parsed.reconcile(must_have_line, pointers, existing, of_person)
    if content is None and not added:
        return None, ""
    # A line that came without a step of its memory may lack the mark of foreign words.
    everywhere = content != tree.index() or not missing <= written
    _mark_outside(parsed, added, tree, made, everywhere=everywhere)
    updated = b"".join(parsed.lines)
    if len(updated) > limits.READ_BYTES >= len(content or b""):
        return _with_lines(content, draft, tree, made, adds=False)
    return updated, ""


def _lines_of_person(
    lost: Collection[index.IndexEntry], deleted: AbstractSet[str], tree: LiveTree, *, dropped: bool
) -> frozenset[str]:
    """Return the targets of index lines that lead to no memory, and never did as far as memd knows.

    A person may have written such a line, so it stays; but only if the live index has it already,
    and where such lines are ``dropped`` only if something lies there.
    """
    in_live = {path for entry in index.entries(tree.index()) for path in entry.paths}
    dangling = [
        entry
        for entry in lost
        if in_live.issuperset(entry.paths) and not (dropped and not tree.lies(entry.paths))
    ]
    never_known = tree.unknown({path for entry in dangling for path in entry.paths}) - deleted
    # A link may stand for several paths; one that memd knows is enough to drop the line.
    return frozenset(entry.path for entry in dangling if never_known.issuperset(entry.paths))


def _mark_outside(
    parsed: index.Index,
    added: Mapping[str, int],
    tree: LiveTree,
    made: Prepared,
    *,
    everywhere: bool,
) -> None:
    """Have the mark on the lines of memories from outside or an import, and not on others.

    ``added`` are the numbers of new lines, by path. With ``everywhere`` the lines of all memories
    are considered, else only those of the change's.
    """
    rows = tree.rows.items() if everywhere else ()
    marked = {path: True for path, row in rows if row.header.origin in _MARKED_ORIGINS}
    for path, both in made.memories.items():
        was, now = (each is not None and each.origin in _MARKED_ORIGINS for each in both)
        if was or now:
            marked[path] = now
    if not marked:
        return
    lines = {number: entry.paths for number, entry in parsed.entries.items()}
    lines |= {number: (path,) for path, number in added.items()}
    for number, paths in lines.items():
        path = next((path for path in paths if path in marked), "")
        if path:
            parsed.mark(number, marked=marked[path])


def _team_index(
    draft: Draft,  # noqa: ARG001 - the shape of ``_own_index``
    wanted: FileEdit | None,
    tree: LiveTree,
    made: Prepared,
) -> tuple[FileEdit | None, str]:
    """Return the edit of the team's index after a change, or ``None`` and the reason against one.

    ``wanted`` is an edit that restores an earlier index with a person's own lines.
    """
    changed = {path: new for path, (_, new) in made.memories.items() if path.startswith(TEAM)}
    headers = (tree.rows[path].header for path in tree.shared())
    team = {header.path: (header.name, header.description, header.type) for header in headers}
    try:
        live = tree.file(TEAM_INDEX)
    except MemdError as error:
        # Without a step of a team's memory the change does not concern this index.
        return None, error.sentence if changed else ""
    team = {path: head for path, head in team.items() if path not in changed}
    team |= {path: (new.name, new.description, new.type) for path, new in changed.items() if new}
    ordered = sorted(
        (_TYPE_ORDER[kind], name.casefold(), path, description, name)
        for path, (name, description, kind) in team.items()
    )
    lines = {
        path.removeprefix(TEAM): index.of_memory(name, description)
        for _, _, path, description, name in ordered
        if in_catalogue(path.removeprefix(TEAM))
    }
    content = wanted.content if wanted else live.content if live else None
    derived = index.derive(content, lines)
    if len(derived or b"") > limits.READ_BYTES:
        return None, f"{TEAM_INDEX} would have more than {limits.READ_BYTES} bytes"
    # The restored mtime counts only where the text is the restored one, or the file comes back.
    if wanted and (derived == wanted.content or wanted.base == ""):
        return FileEdit(TEAM_INDEX, derived, mtime_ns=wanted.mtime_ns), ""
    return FileEdit(TEAM_INDEX, derived), ""

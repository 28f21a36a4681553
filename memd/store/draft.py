"""Turns the draft of a plan into the exact change: checked, merged, with the index in order.

Nothing here writes. An edit of a file that changed since its writer read it is merged with the live
text, if the log still has the text that the writer read. The index (MEMORY.md) is a set of lines:
- memd adds a line for a memory that has none, replaces the lines that it wrote, and removes a line
  when the change, or one before it, removed the file.
- A line to a file that never existed is a person's and stays; ``drop_dangling`` takes it out.
- Above 1,000 memories only those of the change get a line: prompts load 200 lines at most.
``team/MEMORY.md`` is derived from the memories beside it; a person's own lines stay behind.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, INDEXES, TEAM, TEAM_INDEX, clash, in_catalogue
from memd.base.text import sha256
from memd.base.values import (
    FOREIGN,
    IMPORT,
    OUTSIDE,
    Draft,
    FileEdit,
    MemoryType,
    Pointer,
    least_trusted,
)
from memd.store import check, index, memory, merge
from memd.store.log import ChangeLog, Step
from memd.store.tree import LiveTree, StoredFile

_INDEX_IS_FULL = f"{INDEX} would have more than {limits.READ_BYTES} bytes with one more line"
_MARKED_ORIGINS = (OUTSIDE, IMPORT)  # index lines of such memories end with a mark
_TYPE_ORDER = {kind: number for number, kind in enumerate((*MemoryType, None))}


class Prepared(Struct):
    """A change that is ready to be made."""

    steps: list[Step] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)  # the texts before and after, by hash
    merged: set[str] = field(default_factory=set)  # whose text was merged with newer text
    emptied: set[str] = field(default_factory=set)  # files that are empty at the moment
    notes: list[str] = field(default_factory=list)  # why an index was not updated

    def add(self, edit: FileEdit, live: StoredFile | None, mode: int | None = None) -> None:
        """Add the step of an edit, unless nothing changes; ``mode`` is that of a new file."""
        before = live.hash if live else None
        after = None if edit.content is None else sha256(edit.content)
        if before == after:
            return
        if live:
            self.bodies[live.hash] = live.content
            if live.emptied:
                self.emptied.add(edit.path)
        if edit.content is not None and after is not None:
            self.bodies[after] = edit.content
        before_mtime_ns = live.mtime_ns if live else None
        mode = live.mode if live else mode
        self.steps.append(Step(edit.path, before, after, before_mtime_ns, mode, edit.mtime_ns))

    def text(self, text_hash: str | None) -> bytes | None:
        """Return a text of the change, ``None`` for no file."""
        return None if text_hash is None else self.bodies[text_hash]

    def own(self) -> list[Step]:
        """Return the steps of memories outside ``team/``, which has an index of its own."""
        return [step for step in self.steps if not step.path.startswith(TEAM)]


def prepare(draft: Draft, tree: LiveTree, log: ChangeLog, origin: str = "") -> Prepared:
    """Return the change that a draft wants; without steps if nothing differs.

    ``origin`` says where the words come from, "" if unknown; it is written into the head of each
    memory. Raises what ``check.py`` refuses, Conflict for an edit that cannot be merged, and what
    reading the tree raises.
    """
    imports = draft.check_import is not None
    check.check_edits(draft.edits, restores=draft.restores, imports=imports)
    made = Prepared(merged=set(draft.merged))
    index_edits: dict[str, FileEdit] = {}
    for requested in draft.edits:
        live = tree.file(requested.path)
        edit = _merged_with_live(requested, live, log)
        if edit is not requested:
            made.merged.add(edit.path)
        if edit.path in INDEXES:  # handled last: an index depends on the memories of the change
            index_edits[edit.path] = edit
        else:
            made.add(_checked(edit, live, draft, origin), live, draft.modes.get(edit.path))
    if made.steps:
        _check_name_clashes(tree, made.steps)
    if made.steps or index_edits or draft.pointers or draft.mend_index:
        for path, derive in ((INDEX, _own_index), (TEAM_INDEX, _team_index)):
            index_edit, note = derive(draft, index_edits.get(path), tree, made)
            if note:
                made.notes.append(f"{note}; it is left as it is")
            if index_edit is not None:
                made.add(index_edit, tree.file(path), draft.modes.get(path))
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
        if edit.content is not None and edit.path == INDEX:
            check.check_index(before, edit.content)
        elif edit.content is not None:
            check.check_body(edit.path, before, edit.content)
        made.add(edit, live)
    return made


def draft_with_lines(paths: Collection[str], tree: LiveTree) -> Draft:
    """Return the draft that corrects the index and gives these memories a line in it."""
    pointers = {
        header.path: index.of_memory(header.name, header.description)
        for header in tree.headers()
        if header.path in paths
    }
    return Draft(pointers=pointers, mend_index=True)


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


def _merged_with_live(edit: FileEdit, live: StoredFile | None, log: ChangeLog) -> FileEdit:
    """Return the edit itself, or merged with the live file if that changed since it was read.

    Raises Conflict if they cannot be merged. That includes an edit that deletes a changed file, and
    one of a file that was deleted.
    """
    live_hash = live.hash if live else ""
    if edit.base is None or edit.base == live_hash:
        return edit
    content = merge_edit(edit, log.body(edit.base), live.content) if live else None
    if content is None or live is None:
        raise check.conflict(edit.path, edit.base, live_hash)
    mtime_ns = None if edit.mtime_ns is None else max(edit.mtime_ns, live.mtime_ns)
    return replace(edit, content=content, base=live.hash, mtime_ns=mtime_ns)


def _checked(edit: FileEdit, live: StoredFile | None, draft: Draft, origin: str) -> FileEdit:
    """Check the new text of a memory; return its edit with the origin written into the head.

    Texts that were in this directory before are not checked, and those of an import have their
    origin already. Raises what ``check.py`` refuses.
    """
    if edit.content is None or draft.restores:
        return edit
    before = live.content if live else None
    if draft.check_import is not None:
        draft.check_import(edit.path, before, edit.content)
        return edit
    content = _with_origin(edit, edit.content, before, origin, by_person=draft.by_person)
    check.check_body(edit.path, before, content)
    return edit if content is edit.content else replace(edit, content=content)


def _with_origin(
    edit: FileEdit, content: bytes, before: bytes | None, writer_origin: str, *, by_person: bool
) -> bytes:
    """Return the text of an edit with its origin (who its words come from) in the head.

    A foreign origin of the live memory stays, and so does any origin if only the head changes,
    unless the person saves it (``by_person``). The text may name a less trusted origin than its
    writer has. Raises Invalid for a head that cannot be changed.
    """
    origin = edit.origin or writer_origin
    if not origin or edit.path.startswith(TEAM) or memory.split(content) is None:
        return content
    new = memory.parse(content, edit.path)
    old = memory.parse(before, edit.path) if before is not None else None
    if by_person:
        wanted = origin
    elif old and old.body == new.body and not edit.origin:  # only the head changes
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


def _check_name_clashes(tree: LiveTree, steps: Collection[Step]) -> None:
    """Refuse new names that differ from others only in case. Raises Refused."""
    created = {step.path for step in steps if step.before is None}
    if created:
        deleted = {step.path for step in steps if step.after is None}
        clashing_pair = clash(created, (tree.files() | created) - deleted)
        if clashing_pair is not None:
            raise check.name_clash(*clashing_pair)


def _own_index(
    draft: Draft, wanted: FileEdit | None, tree: LiveTree, made: Prepared
) -> tuple[FileEdit | None, str]:
    """Return the edit of the index after a change, and the reason why it lacks new lines or "".

    ``wanted`` is the draft's own edit of the index, on which the result is based.
    """
    trouble = tree.index_trouble()
    if trouble:
        return None, trouble
    live = tree.index()
    content, note = wanted.content if wanted else live, ""
    # If files came or went without memd, an older index would be wrong as well.
    is_exact = (
        wanted is not None and draft.exact_index and _with_lines(live, Draft(), tree)[0] == live
    )
    if not is_exact:
        content, note = _with_lines(content, draft, tree, made)
    if content is not None and not draft.restores:
        check.check_index(live, content)
    return FileEdit(INDEX, content, mtime_ns=wanted.mtime_ns if wanted else None), note


def _with_lines(
    content: bytes | None, draft: Draft, tree: LiveTree, made: Prepared | None = None
) -> tuple[bytes | None, str]:
    """Return an index with the lines that a change needs, and why it lacks some or ""."""
    made = made or Prepared()
    own = made.own()
    content = _with_followed_lines(content, made)
    written = {step.path for step in own if step.after}
    deleted = {step.path for step in own if not step.after}
    entries = index.read(content or b"")
    # Of the files that lines name: those that exist after the change.
    existing = tree.among(entries.named | draft.pointers.keys()) | written
    existing -= deleted
    must_have_line = written | (draft.pointers.keys() & existing)
    memories = {path for path in tree.files() if not path.startswith(TEAM)}
    created = sum(step.before is None for step in own)
    if len(memories) + created - len(deleted) <= limits.INDEX_ENTRIES:
        must_have_line |= memories - deleted
    missing = must_have_line - {line.paths[0] for line in entries.lines}
    lines = {
        path: draft.pointers[path] if path in draft.pointers else _line_from_head(path, tree, made)
        for path in missing
    }
    of_person = _lines_of_person(entries, existing, deleted, tree, dropped=draft.drop_dangling)
    updated = index.reconcile(content, must_have_line, lines, existing, of_person)
    if updated is not None:
        # A line that came without a step of its memory may lack the mark of foreign words.
        everywhere = content != tree.index() or not missing.issubset(written)
        updated = index.with_marks(updated, _outside_marks(tree, made, everywhere=everywhere))
    if len(updated or b"") > limits.READ_BYTES >= len(content or b""):
        # No new lines, then: only those that lead nowhere are dropped.
        existing |= must_have_line
        return index.reconcile(content, (), {}, existing, of_person), _INDEX_IS_FULL
    return updated, ""


def _with_followed_lines(content: bytes | None, made: Prepared) -> bytes | None:
    """Return the index in which memd's lines of changed memories say what their heads now say."""
    heads: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {}  # before and after, by path
    for step in made.own():
        if step.before and step.after:
            texts = (made.bodies[step.before], made.bodies[step.after])
            parsed = [memory.parse(text, step.path) for text in texts]
            before, after = ((each.name, each.description) for each in parsed)
            if before != after:
                heads[step.path] = before, after
    return index.with_followed_lines(content, heads) if content and heads else content


def _line_from_head(path: str, tree: LiveTree, made: Prepared) -> Pointer:
    """Return the index line of a memory from the name and the description in its head."""
    after = next((step.after for step in made.steps if step.path == path), None)
    if after is not None:
        parsed = memory.parse(made.bodies[after], path)
        return index.of_memory(parsed.name, parsed.description)
    header = tree.rows[path].header
    return index.of_memory(header.name, header.description)


def _lines_of_person(
    entries: index.Entries,
    existing: AbstractSet[str],
    deleted: AbstractSet[str],
    tree: LiveTree,
    *,
    dropped: bool,
) -> frozenset[str]:
    """Return the targets of index lines that lead to no memory, and never did as far as memd knows.

    A person may have written such a line, so it stays; but only if the live index has it already,
    and where such lines are ``dropped`` only if something lies there.
    """
    if entries.named <= existing:  # every line leads to a memory
        return frozenset()
    live_targets = index.read(tree.index() or b"").named
    dangling = [
        line
        for line in entries.lines
        if existing.isdisjoint(line.paths)
        and live_targets.issuperset(line.paths)
        and not (dropped and not tree.lies(line.paths))
    ]
    targets = {path for line in dangling for path in line.paths}
    never_known = tree.unknown(targets) - deleted
    # A link may stand for several paths; one that memd knows is enough to drop the line.
    return frozenset(line.paths[0] for line in dangling if never_known.issuperset(line.paths))


def _outside_marks(tree: LiveTree, made: Prepared, *, everywhere: bool) -> dict[str, bool]:
    """Return by path whether an index line needs the mark of a memory from outside or an import.

    A memory that is no longer from there has ``False``. With ``everywhere`` all memories of the
    directory are included, else only those of the change.
    """
    marked: dict[str, bool] = {}
    if everywhere:
        headers = tree.headers()
        marked = {header.path: True for header in headers if header.origin in _MARKED_ORIGINS}
    for step in made.steps:
        was, now = (
            text is not None and memory.parse(text, step.path).origin in _MARKED_ORIGINS
            for text in (made.text(step.before), made.text(step.after))
        )
        if was or now:
            marked[step.path] = now
    return marked


def _team_index(
    draft: Draft,  # noqa: ARG001 - the shape of ``_own_index``
    wanted: FileEdit | None,
    tree: LiveTree,
    made: Prepared,
) -> tuple[FileEdit | None, str]:
    """Return the edit of the team's index after a change, or ``None`` and the reason against one.

    ``wanted`` is an edit that restores an earlier index with a person's own lines.
    """
    steps = [step for step in made.steps if step.path.startswith(TEAM)]
    entries: dict[str, tuple[str, str, MemoryType | None]] = {
        header.path: (header.name, header.description, header.type) for header in tree.team()
    }
    if not steps and not entries and wanted is None and TEAM_INDEX not in tree.rows:
        return None, ""
    try:
        live = tree.file(TEAM_INDEX)
    except MemdError as error:
        # Without a step of a team's memory the change does not concern this index.
        return None, error.sentence if steps else ""
    for step in steps:
        entries.pop(step.path, None)
        if step.after:
            parsed = memory.parse(made.bodies[step.after], step.path)
            entries[step.path] = (parsed.name, parsed.description, parsed.type)
    ordered = sorted(
        (_TYPE_ORDER[kind], name.casefold(), path, description, name)
        for path, (name, description, kind) in entries.items()
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

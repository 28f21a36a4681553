"""Turns a plan's draft into the exact change set: checked, merged, with the index updated.

Nothing here writes. An edit of a file that changed since its writer read it is merged with the live
text, if the journal still has the text that the writer read.
"""

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.names import INDEX, INDEXES, TEAM, TEAM_INDEX, clash
from memd.base.text import sha256
from memd.base.values import FOREIGN, Draft, FileEdit, Pointer, Tree, least_trusted
from memd.state.changes import Step
from memd.store import door, index, memory
from memd.store.door import ConflictError as ConflictError
from memd.store.door import NameClashError as NameClashError
from memd.store.door import NotSharedError as NotSharedError
from memd.store.door import SecretRefusedError as SecretRefusedError
from memd.store.door import TooLargeError as TooLargeError
from memd.store.door import TooManyFilesError as TooManyFilesError
from memd.store.door import check_secrets as check_secrets
from memd.store.door import check_shared as check_shared
from memd.store.memory import HeadNotEditableError
from memd.store.memory_index import MemorySteps, matches_files, updated_index
from memd.store.merge import merge_index, merge_memory
from memd.store.team_index import derive_team_index
from memd.store.tree import LiveTree, StoredFile

Blobs = Callable[[str], bytes | None]  # returns the text with a hash, ``None`` if it is lost


class ImportedTexts:
    """Checks the texts of an import, and skips a text that has already passed."""

    def __init__(self) -> None:
        self._passed: set[tuple[str, str]] = set()  # paths with hashes

    def check(self, path: str, before: bytes | None, content: bytes) -> None:
        """Refuse a text that no import may bring. Raises TooLargeError and SecretRefusedError.

        The type is not checked: no file of an import is shared with a team.
        """
        path_and_hash = (path, sha256(content))
        if content == before or path_and_hash in self._passed:
            return
        door.check_size(path, content, limits.READ_BYTES)
        check_secrets(path, before, content)
        if before is None:  # no earlier line excused a credential of this text
            self._passed.add(path_and_hash)


class StoreDraft(Draft, frozen=True):
    """A draft with options that only the store itself may set."""

    # The texts come from an archive, and whoever made the draft wrote their origin into them. Names
    # and sizes are those that a person's files may have, and a set may have 10,000 of them.
    imports: bool = False
    imported: ImportedTexts = field(default_factory=ImportedTexts)  # checks these texts
    by_person: bool = False  # the person saves the texts, so they are theirs, whoever wrote them
    restores: bool = False  # the texts were in this directory before, so they are not checked
    modes: Mapping[str, int | None] = field(default_factory=dict)  # by path: of restored files
    exact_index: bool = False  # the draft's index is taken byte by byte
    mend_index: bool = False  # the index is checked even if nothing else changes
    drop_dangling: bool = False  # lines to files that never existed go, too
    conflicts: tuple[str, ...] = ()  # paths that the draft leaves alone
    merged: tuple[str, ...] = ()  # paths whose text was merged with newer work


class Prepared(Struct, frozen=True):
    """A change set that is ready to be recorded."""

    steps: tuple[Step, ...]
    bodies: Mapping[str, bytes]  # by hash: the texts before and after each step
    merged: tuple[str, ...] = ()  # paths whose new text was merged with newer work
    note: str = ""  # why an index was not updated, "" when it was
    conflicts: tuple[str, ...] = ()  # paths that the draft had to leave alone


def prepare(draft: Draft, tree: LiveTree, blobs: Blobs, origin: str = "") -> Prepared:
    """Return the set that makes the changes of a draft; without steps if nothing differs.

    ``blobs`` returns a text by its hash. ``origin`` says where the draft's words come from, "" if
    unknown; it is written into the head of each memory. Raises what ``door.py`` refuses,
    ConflictError for an edit that cannot be merged, and what reading the tree raises.
    """
    options = draft if isinstance(draft, StoreDraft) else StoreDraft()
    if options.imports:
        door.check_imports(draft.edits)
    else:
        door.check_edits(draft.edits, restores=options.restores)
    bodies: dict[str, bytes] = {}
    steps: list[Step] = []
    index_edits: dict[str, FileEdit] = {}
    merged = set(options.merged)
    for requested_edit in draft.edits:
        live = tree.file(requested_edit.path)
        edit = _merged_with_live(requested_edit, live, blobs)
        if edit is not requested_edit:
            merged.add(edit.path)
        if edit.path in INDEXES:  # handled last: an index depends on the memories of the set
            index_edits[edit.path] = edit
        else:
            edit = _checked_edit(edit, live, options, origin)
            _add_step(steps, bodies, edit, live, options.modes.get(edit.path))
    if steps:
        _check_name_clashes(tree, steps)
    notes: list[str] = []
    if steps or index_edits or draft.pointers or options.mend_index:
        changes = MemorySteps(tuple(steps), bodies)
        for index_edit, reason_against_update in (
            _derived_index(options, draft.pointers, index_edits.get(INDEX), tree, changes),
            derive_team_index(index_edits.get(TEAM_INDEX), changes.steps, bodies, tree),
        ):
            if reason_against_update:
                notes.append(f"{reason_against_update}; it is left as it is")
            if index_edit is not None:
                mode = options.modes.get(index_edit.path)
                _add_step(steps, bodies, index_edit, tree.file(index_edit.path), mode)
    merged_paths = tuple(step.path for step in steps if step.path in merged)
    return Prepared(tuple(steps), bodies, merged_paths, "; ".join(notes), options.conflicts)


def draft_with_lines(paths: Collection[str], tree: Tree) -> Draft:
    """Return the draft that corrects the index and gives these memories a line in it."""
    headers = tree.headers()
    pointers = {
        header.path: index.of_memory(header.name, header.description)
        for header in headers
        if header.path in paths
    }
    return StoreDraft(pointers=pointers, mend_index=True)


def prepare_refused(draft: Draft, tree: LiveTree) -> Prepared:
    """Return the set of a draft that conflicts, without merging: the journal stores its texts.

    Raises what ``door.py`` refuses in the texts; such texts are not stored.
    """
    bodies: dict[str, bytes] = {}
    steps: list[Step] = []
    for edit in draft.edits:
        live = tree.file(edit.path)
        if edit.content is not None and edit.path != INDEX:
            _check_body(edit.path, live, edit.content)
        elif edit.content is not None:
            _check_index(tree.index(), edit.content)
        _add_step(steps, bodies, edit, live, None)
    return Prepared(tuple(steps), bodies)


def merge(edit: FileEdit, base: bytes | None, live: bytes) -> bytes | None:
    """Return the live text merged with a writer's edit, or ``None`` if they cannot be merged.

    ``base`` is the text that the edit is based on, ``None`` if it is lost. An edit of the index
    that is based on no index is merged as if both sides had begun with an empty one.
    """
    if edit.path == INDEX and not edit.base:
        base = b""
    if base is None or edit.content is None:
        return None
    if edit.path == INDEX:
        return merge_index(base, edit.content, live)
    return merge_memory(base, edit.content, live, edit.path)


def _merged_with_live(edit: FileEdit, live: StoredFile | None, blobs: Blobs) -> FileEdit:
    """Return the edit itself, or merged with the live file if that changed since it was read.

    Raises ConflictError if they cannot be merged. That includes an edit that deletes a changed
    file, and one of a file that was deleted.
    """
    live_hash = live.hash if live else ""
    if edit.base is None or edit.base == live_hash:
        return edit
    base = blobs(edit.base) if edit.base else None
    content = merge(edit, base, live.content) if live else None
    if content is None or live is None:
        raise ConflictError(edit.path, edit.base, live_hash)
    mtime_ns = None if edit.mtime_ns is None else max(edit.mtime_ns, live.mtime_ns)
    return replace(edit, content=content, base=live.hash, mtime_ns=mtime_ns)


def _checked_edit(
    edit: FileEdit, live: StoredFile | None, options: StoreDraft, origin: str
) -> FileEdit:
    """Check the new text of a memory; return its edit with the origin written into the head.

    Texts that were in this directory before are not checked, and those of an import have their
    origin already. Raises what ``door.py`` refuses.
    """
    if edit.content is None or options.restores:
        return edit
    if options.imports:
        options.imported.check(edit.path, live.content if live else None, edit.content)
        return edit
    edit = _with_origin(edit, edit.content, live, origin, by_person=options.by_person)
    _check_body(edit.path, live, edit.content or b"")
    return edit


def _with_origin(
    edit: FileEdit,
    content: bytes,
    live: StoredFile | None,
    writer_origin: str,
    *,
    by_person: bool,
) -> FileEdit:
    """Return the edit with its memory's origin (who its words come from) in the head.

    ``content`` is the edit's text. A foreign origin of the live memory stays, and so does any
    origin if only the head changes, unless the person saves it (``by_person``). The text may name
    a less trusted origin than its writer has. Raises FrontmatterNotEditableError.
    """
    origin = edit.origin or writer_origin
    new = memory.parse(content, edit.path)
    has_head = memory.split(content) is not None
    if not origin or edit.path.startswith(TEAM) or not has_head:
        return edit
    old = memory.parse(live.content, edit.path) if live else None
    if by_person:
        wanted = origin
    elif old and old.body == new.body and not edit.origin:  # only the head changes
        wanted = old.origin
    else:
        # What the text says of itself counts only if the writer did not name the origin.
        origin_in_text = "" if edit.origin else new.origin
        origin_of_live = old.origin if old else ""
        foreign_origins = [each for each in (origin_of_live, origin_in_text) if each in FOREIGN]
        wanted = least_trusted(origin, *foreign_origins)
    if wanted == new.origin:
        return edit
    try:
        marked = memory.with_fields(content, {"metadata.origin": wanted})
    except HeadNotEditableError:
        # A foreign origin must be in the head, or these words would pass for the user's own.
        if new.origin or wanted in FOREIGN:
            raise
        return edit
    return replace(edit, content=marked)


def _derived_index(
    options: StoreDraft,
    pointers: Mapping[str, Pointer],
    wanted: FileEdit | None,
    tree: LiveTree,
    changes: MemorySteps,
) -> tuple[FileEdit | None, str]:
    """Return the edit of the index after a set, and the reason why it lacks new lines or "".

    ``wanted`` is the draft's own edit of the index, on which the result is based. ``pointers`` are
    lines that the draft gives, by the path of the memory.
    """
    trouble = tree.index_trouble()
    if trouble:
        return None, trouble
    live = tree.index()
    content, note = wanted.content if wanted else live, ""
    is_exact = wanted is not None and options.exact_index and matches_files(tree)
    if not is_exact:
        content, note = updated_index(
            content, pointers, tree, changes, drop_dangling=options.drop_dangling
        )
    if content is not None and not options.restores:
        _check_index(live, content)
    return FileEdit(INDEX, content, mtime_ns=wanted.mtime_ns if wanted else None), note


def _check_body(path: str, live: StoredFile | None, content: bytes) -> None:
    """Check size, type and secrets of a text that differs from the live one.

    Raises TooLargeError, NotSharedError and SecretRefusedError.
    """
    if live is None or live.content != content:
        door.check_size(path, content)
        door.check_shared(path, content)
        check_secrets(path, live.content if live else None, content)


def _add_step(
    steps: list[Step],
    bodies: dict[str, bytes],
    edit: FileEdit,
    live: StoredFile | None,
    mode: int | None,
) -> None:
    """Add an edit's step, and the texts before and after it by hash, unless nothing changes.

    ``mode`` is the mode of a file that is not there yet.
    """
    before = live.hash if live else None
    after = None if edit.content is None else sha256(edit.content)
    if before == after:
        return
    if live:
        bodies[live.hash] = live.content
    if edit.content is not None and after is not None:
        bodies[after] = edit.content
    steps.append(
        Step(
            edit.path,
            before,
            after,
            before_mtime_ns=live.mtime_ns if live else None,
            mode=live.mode if live else mode,
            after_mtime_ns=edit.mtime_ns,
        )
    )


def _check_name_clashes(tree: LiveTree, steps: Collection[Step]) -> None:
    """Refuse new names that differ from others only in case. Raises NameClashError."""
    created = {step.path for step in steps if step.before is None}
    if not created:
        return
    deleted = {step.path for step in steps if step.after is None}
    names_after = (tree.files() | created) - deleted
    clashing_pair = clash(created, names_after)
    if clashing_pair is not None:
        raise NameClashError(*clashing_pair)


def _check_index(before: bytes | None, content: bytes) -> None:
    """Check size and secrets of a new index. Raises TooLargeError and SecretRefusedError."""
    if len(content) > limits.READ_BYTES:
        raise TooLargeError(INDEX, len(content), limits.READ_BYTES)
    check_secrets(INDEX, before, content)

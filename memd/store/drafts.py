"""From a plan's draft to the exact change set: checked, merged, with the index updated.

Nothing here writes. An edit of a file that changed since its writer read it is merged with the live
text, if the journal still has the text that the writer read.
"""

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct, field
from msgspec.structs import replace

from memd.core import limits
from memd.core.names import INDEX, TEAM, TEAM_INDEX, clash
from memd.core.text import sha256
from memd.core.values import FOREIGN, IMPORT, OUTSIDE, Draft, FileEdit, Pointer, Tree, least_trusted
from memd.documents import document, index
from memd.documents.document import FrontmatterNotEditableError
from memd.documents.index import Entries, read
from memd.state.changes import Step
from memd.store import door
from memd.store.door import ConflictError as ConflictError
from memd.store.door import NameClashError as NameClashError
from memd.store.door import NotSharedError as NotSharedError
from memd.store.door import SecretRefusedError as SecretRefusedError
from memd.store.door import TooLargeError as TooLargeError
from memd.store.door import TooManyFilesError as TooManyFilesError
from memd.store.door import check_secrets as check_secrets
from memd.store.door import check_shared as check_shared
from memd.store.team_index import follow
from memd.store.tree import LiveTree, StoredFile

_FULL = f"{INDEX} would have more than {limits.READ_BYTES} bytes with one more line"
_FROM_OUTSIDE = (OUTSIDE, IMPORT)  # whose lines in the index say so
Blobs = Callable[[str], bytes | None]


class ImportedTexts:
    """Checks the texts of an import, and skips a text that has already passed."""

    def __init__(self) -> None:
        self._passed: set[tuple[str, str]] = set()

    def check(self, path: str, before: bytes | None, content: bytes) -> None:
        """Refuse a text that no import may bring. Raises TooLargeError and SecretRefusedError.

        The type is not checked: no file of an import is shared with a team.
        """
        key = (path, sha256(content))
        if content == before or key in self._passed:
            return
        door.check_size(path, content, limits.READ_BYTES)
        check_secrets(path, before, content)
        if before is None:  # no earlier line excused a credential of this text
            self._passed.add(key)


class StoreDraft(Draft, frozen=True):
    """A draft with options that only the store itself may set.

    ``imports``: the bodies come from an archive, marked by whoever made the draft; names and sizes
    are those that a person's files may have, and each set may have 10,000 of them. ``imported``
    checks their texts.
    ``restores``: the bodies were in this directory before, so sizes and secrets are not checked;
    ``modes`` are the modes of files that come back. ``exact_index``: the draft's index is taken
    byte by byte. ``mend_index``: check the index even if nothing else changes. ``conflicts`` are
    paths that the draft leaves alone, ``merged`` paths whose content it merged with newer work.
    """

    imports: bool = False
    imported: ImportedTexts = field(default_factory=ImportedTexts)
    restores: bool = False
    modes: Mapping[str, int | None] = field(default_factory=dict)
    exact_index: bool = False
    mend_index: bool = False
    conflicts: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()


class Prepared(Struct, frozen=True):
    """The steps of a set, and the bodies before and after each step by their hashes.

    ``merged`` are the paths of steps whose new body was merged with newer work, ``conflicts`` those
    that the draft had to leave alone. ``note`` says why the index was not updated, "" when it was.
    """

    steps: tuple[Step, ...]
    bodies: Mapping[str, bytes]
    merged: tuple[str, ...] = ()
    note: str = ""
    conflicts: tuple[str, ...] = ()


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
    wanted_index: FileEdit | None = None
    team_index: FileEdit | None = None
    merged = set(options.merged)
    for wanted in draft.edits:
        result = tree.file(wanted.path)
        edit = _on_live(wanted, result, blobs)
        if edit is not wanted:
            merged.add(edit.path)
        if edit.path == INDEX:
            wanted_index = edit
            continue
        if edit.path == TEAM_INDEX:
            team_index = edit
            continue
        edit = _admitted(edit, result, options, origin)
        _add(steps, bodies, edit, result, options.modes.get(edit.path))
    if steps:
        _check_case(tree, steps)
    notes: list[str] = []
    if steps or wanted_index or team_index or draft.pointers or options.mend_index:
        topics = Prepared(tuple(steps), bodies)
        for derived, why in (
            _index_edit(options, draft.pointers, wanted_index, tree, topics),
            follow(team_index, topics.steps, bodies, tree),
        ):
            notes += [f"{why}; it is left as it is"] if why else []
            if derived is not None:
                mode = options.modes.get(derived.path)
                _add(steps, bodies, derived, tree.file(derived.path), mode)
    both = tuple(step.path for step in steps if step.path in merged)
    return Prepared(tuple(steps), bodies, both, "; ".join(notes), options.conflicts)


def pointing_to(paths: Collection[str], tree: Tree) -> Draft:
    """Return the draft that corrects the index and gives these memories a line in it."""
    lines = {each.path: Pointer(each.name, each.description) for each in tree.headers()}
    wanted = {path: lines[path] for path in paths if path in lines}
    return StoreDraft(pointers=wanted, mend_index=True)


def refused(draft: Draft, tree: LiveTree) -> Prepared:
    """Return the steps of a draft without merging: the journal keeps them after a conflict.

    Raises what ``door.py`` refuses in the texts; such texts are not kept.
    """
    bodies: dict[str, bytes] = {}
    steps: list[Step] = []
    for edit in draft.edits:
        result = tree.file(edit.path)
        if edit.content is not None and edit.path != INDEX:
            _check_body(edit.path, result, edit.content)
        elif edit.content is not None:
            _check_index(tree.index(), edit.content)
        _add(steps, bodies, edit, result, None)
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
        return index.merge(base, edit.content, live)
    return document.merge(base, edit.content, live, edit.path)


def _on_live(edit: FileEdit, result: StoredFile | None, blobs: Blobs) -> FileEdit:
    """Return the edit; merged with the live file if that has changed. Raises ConflictError.

    An edit that deletes the changed file, or whose file was deleted, is a conflict.
    """
    live = result.hash if result else None
    if edit.base is None or edit.base == (live or ""):
        return edit
    base = blobs(edit.base) if edit.base else None
    content = merge(edit, base, result.content) if result else None
    if content is None or result is None:
        raise ConflictError(edit.path, edit.base, live or "")
    mtime = None if edit.mtime_ns is None else max(edit.mtime_ns, result.mtime_ns)
    return replace(edit, content=content, base=result.hash, mtime_ns=mtime)


def _admitted(
    edit: FileEdit, result: StoredFile | None, options: StoreDraft, origin: str
) -> FileEdit:
    """Return the checked edit with its memory's origin. Raises what ``door.py`` refuses."""
    if edit.content is None or options.restores:
        return edit
    if options.imports:
        options.imported.check(edit.path, result.content if result else None, edit.content)
        return edit
    edit = _marked(edit, result, origin)
    _check_body(edit.path, result, edit.content or b"")
    return edit


def _marked(edit: FileEdit, result: StoredFile | None, origin: str) -> FileEdit:
    """Return the edit with its memory's origin (who its words come from) in the head.

    A foreign origin stays. The origin also stays if only the head changes. A text may claim a
    less trusted origin than its writer has. Raises FrontmatterNotEditableError.
    """
    written = edit.origin or origin
    new = document.parse(edit.content or b"", edit.path)
    if not written or edit.path.startswith(TEAM) or not document.split(edit.content or b""):
        return edit
    old = document.parse(result.content, edit.path) if result else None
    if old and old.body == new.body and not edit.origin:
        wanted = old.origin
    else:
        claims = (old.origin if old else "", "" if edit.origin else new.origin)
        wanted = least_trusted(written, *filter(FOREIGN.__contains__, claims))
    if wanted == new.origin:
        return edit
    try:
        content = document.with_fields(edit.content or b"", {"metadata.origin": wanted})
    except FrontmatterNotEditableError:
        if new.origin or wanted in FOREIGN:
            raise
        return edit
    return replace(edit, content=content)


def _index_edit(
    options: StoreDraft,
    pointers: Mapping[str, Pointer],
    wanted: FileEdit | None,
    tree: LiveTree,
    topics: Prepared,
) -> tuple[FileEdit | None, str]:
    """Return the edit of the index, and why it lacks lines for the set's memories, "" if not."""
    if trouble := tree.index_trouble():
        return None, trouble
    content, note = wanted.content if wanted else tree.index(), ""
    if not (wanted and options.exact_index and _matches_files(tree)):
        content, note = _reconciled(content, pointers, tree, topics)
    if content is not None and not options.restores:
        _check_index(tree.index(), content)
    return FileEdit(INDEX, content, mtime_ns=wanted.mtime_ns if wanted else None), note


def _check_body(path: str, result: StoredFile | None, content: bytes) -> None:
    """Check size, type and secrets of a body that differs from the live one. Raises as those."""
    if result is None or result.content != content:
        door.check_size(path, content)
        door.check_shared(path, content)
        check_secrets(path, result.content if result else None, content)


def _add(
    steps: list[Step],
    bodies: dict[str, bytes],
    edit: FileEdit,
    result: StoredFile | None,
    mode: int | None,
) -> None:
    """Add an edit's step, and the bodies before and after it, unless nothing changes."""
    before = result.hash if result else None
    after = None if edit.content is None else sha256(edit.content)
    if before == after:
        return
    if result:
        bodies[result.hash] = result.content
    if edit.content is not None and after:
        bodies[after] = edit.content
    steps.append(
        Step(
            edit.path,
            before,
            after,
            before_mtime_ns=result.mtime_ns if result else None,
            mode=result.mode if result else mode,
            after_mtime_ns=edit.mtime_ns,
        )
    )


def _check_case(tree: LiveTree, steps: Collection[Step]) -> None:
    """Refuse new names that differ from others only in case. Raises NameClashError."""
    created = {step.path for step in steps if step.before is None}
    gone = {step.path for step in steps if step.after is None}
    result = clash(created, (tree.files() | created) - gone) if created else None
    if result is not None:
        raise NameClashError(*result)


def _check_index(before: bytes | None, content: bytes) -> None:
    """Check size and secrets of a new index. Raises TooLargeError and SecretRefusedError."""
    if len(content) > limits.READ_BYTES:
        raise TooLargeError(INDEX, len(content), limits.READ_BYTES)
    check_secrets(INDEX, before, content)


def _matches_files(tree: LiveTree) -> bool:
    """Say whether the live index has just the lines that the directory's files ask for.

    If not, files came or went behind memd's back, and an older index would be wrong as well.
    """
    return _reconciled(tree.index(), {}, tree, Prepared((), {}))[0] == tree.index()


def _reconciled(
    content: bytes | None, pointers: Mapping[str, Pointer], tree: LiveTree, topics: Prepared
) -> tuple[bytes | None, str]:
    """Return the index updated for a set, and why it lacks lines for the set, "" if it does not.

    In a directory of many memories only those of the set get a line: prompts load the first 200
    lines at most, so a thousand generated ones would be useless.
    """
    steps = [step for step in topics.steps if not step.path.startswith(TEAM)]
    fresh = {step.path: topics.bodies[step.after] for step in steps if step.after}
    gone = {step.path for step in steps if not step.after}
    result = read(content or b"")
    there = tree.among(result.named | pointers.keys()) - gone
    files = fresh.keys() | (pointers.keys() & there)
    created = sum(step.before is None for step in steps)
    memories = tree.files() - {each.path for each in tree.team()}
    if len(memories) + created - len(gone) <= limits.INDEX_ENTRIES:
        files |= memories - gone
    missing = files - {line.paths[0] for line in result.lines}
    given = {path: pointers[path] for path in missing & pointers.keys()}
    lines = _lines(missing - given.keys(), tree, fresh) | given
    unknown = frozenset[str]() if result.named <= there else _unknown(result, there, gone, tree)
    full = index.reconcile(content, files, lines, there, unknown)
    if full is not None:
        edited = content != tree.index() or not missing.issubset(fresh)
        full = index.with_marks(full, _outside(tree, topics, everywhere=edited))
    if len(full or b"") <= limits.READ_BYTES or len(content or b"") > limits.READ_BYTES:
        return full, ""
    return index.reconcile(content, (), {}, there | files, unknown), _FULL


def _outside(tree: LiveTree, topics: Prepared, *, everywhere: bool) -> dict[str, bool]:
    """Return by path which memories are from outside or an import; ``False`` if no longer so."""
    results: dict[str, bool] = {}
    if everywhere:
        results = {each.path: True for each in tree.headers() if each.origin in _FROM_OUTSIDE}
    for step in topics.steps:
        now, before = (
            key is not None
            and document.parse(topics.bodies[key], step.path).origin in _FROM_OUTSIDE
            for key in (step.after, step.before)
        )
        if now or before:
            results[step.path] = now
    return results


def _unknown(
    result: Entries, there: AbstractSet[str], gone: AbstractSet[str], tree: LiveTree
) -> frozenset[str]:
    """Return the targets of index lines that stay though memd never had a memory there.

    A person may have written them. They stay only if they are in the live index already.
    """
    live = read(tree.index() or b"").named
    lines = [n for n in result.lines if there.isdisjoint(n.paths) and live.issuperset(n.paths)]
    never = tree.unknown({path for line in lines for path in line.paths}) - gone
    # A link may stand for several paths; one that memd knows is enough to drop the line.
    return frozenset(line.paths[0] for line in lines if never.issuperset(line.paths))


def _lines(
    missing: Collection[str], tree: LiveTree, fresh: Mapping[str, bytes]
) -> dict[str, Pointer]:
    """Return the index lines of memories, from the name and description in their heads."""
    written = (path for path in missing if path in fresh)
    lines = {path: Pointer(*document.parse(fresh[path], path).fields[:2]) for path in written}
    if len(lines) < len(missing):
        lines |= {h.path: Pointer(h.name, h.description) for h in tree.headers()} | lines
    return lines

"""Plan how each file of an import changes the live tree. Pure.

Rules of this file
- No work is lost: a live file is changed only if its earlier text is known, or if the new text
  contains all its statements. Otherwise both stay, the import's as ``name-2.md``.
- A text that an import brought before, or that the directory had before, is not new. So importing
  twice has the same result as importing once.
- Imported memories are marked as such, except for the exact bytes that this directory had before.
- A file that cannot be imported is listed with its reason; the others are imported.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.imports import Original
from memd.core.names import INDEX, INDEXES, SUFFIX, TEAM, TEAM_INDEX, check_name, check_odd_name
from memd.core.text import sha256
from memd.core.values import FOREIGN, PERSONAL, FileEdit, MemoryFile, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import index
from memd.portable.marking import marked
from memd.portable.nearness import NearMemories, Overlap, overlap
from memd.portable.plan import (
    BESIDE,
    CREATED,
    MERGED,
    UPDATED,
    ImportPlan,
    Incoming,
    KnownFiles,
    MergedFile,
    TakenNames,
)
from memd.portable.values import LeftOutFile, ProposedMemory
from memd.store.drafts import ImportedTexts, TooLargeError, check_shared, merge

_NUMBERS = range(2, 1000)  # tried for a free name, such as ``name-2.md``
_STEM_CHARACTERS = 90  # of a name before such a number
_DAY_NS = 86_400 * 10**9
_TEAM_IS_JOINED = "the project joined a team, whose server says what is in it"
_NO_FREE_NAME = "no name beside it is free"
_CANNOT_BE_MARKED = "its head says whose words it holds, and cannot be marked as an import"
_LIVE_IS_NEWER = "what is here came from a newer archive"
_TOO_MANY_MEMORIES = (
    f"one import brings at most {limits.IMPORT_FILES:,} memories; import the others apart"
)


def plan_import(incoming: Incoming, tree: Tree, known: KnownFiles) -> ImportPlan:
    """Return the plan for importing files into a tree. Raises MemdError if it is unreadable."""
    planner = _Planner(incoming, tree, known)
    indexes = {file.path: file for file in incoming.files if file.path in INDEXES}
    for file in sorted(incoming.files, key=lambda file: file.path):
        yield_to_requests()
        if file.path not in INDEXES:
            planner.add_or_leave_out(file, planner.add_memory)
    return planner.finish(indexes)  # indexes come last: they depend on the imported memories


class _Planner:
    """Builds the plan of one import, file by file.

    Its methods that add a file return the reason why the file is left out, "" if it is not.
    """

    def __init__(self, incoming: Incoming, tree: Tree, known: KnownFiles) -> None:
        self._incoming, self._tree, self._known = incoming, tree, known
        self._incoming_paths = {file.path for file in incoming.files}
        self._taken_names = TakenNames(header.path for header in tree.headers())
        self._near_memories = NearMemories(tree)
        # From the hash of an import's own bytes to the files that earlier imports made of them.
        self._originals_by_hash: defaultdict[str, list[Original]] = defaultdict(list)
        # From a path to the hashes of the texts that earlier imports wrote there.
        self._imported_hashes: defaultdict[str, list[str]] = defaultdict(list)
        for original in known.originals.values():
            self._originals_by_hash[original.exported].append(original)
            self._imported_hashes[original.path].append(original.live)
        # From a path to the hashes of its texts in the source's history, oldest first.
        self._history_hashes: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for change in incoming.past:
            for each in change.files:
                hashes = (digest for digest in (each.before, each.after) if digest)
                self._history_hashes[each.path] |= dict.fromkeys(hashes)
        self._files: dict[str, MergedFile] = {}  # the planned files by their path here
        self._left_out: list[LeftOutFile] = []
        self._same = 0  # the number of memories that are here already
        self._checked_texts = ImportedTexts()  # texts that the store need not check again

    def add_or_leave_out(self, file: ProposedMemory, add: Callable[[ProposedMemory], str]) -> None:
        """Add a file with the method ``add``, or list it with the reason why it is left out."""
        try:
            why = self._reason_against(file) or add(file)
        except MemdError as error:
            why = error.sentence
        if why:
            self._left_out.append(LeftOutFile(file.path, why))

    def add_memory(self, file: ProposedMemory) -> str:
        """Decide what the import does with a memory, and add that to the plan. Raises MemdError.

        - This directory had its exact bytes, and no file is live: create it again, without a mark.
        - Its frontmatter cannot be marked as imported: leave it out.
        - Its text is here, or was here before: count it as the same.
        - No live file has its path: create it, unless a live memory has the same statements.
        - A live file has its path: update that file, merge both, or create it beside that file.
        """
        digest, live = sha256(file.content), self._tree.read(file.path)
        was_here = digest in self._known.versions(file.path)
        if was_here and live is None:
            return self._create(file, file.content)
        content = marked(file.content, file.path)
        if content is None:
            return _CANNOT_BE_MARKED
        if was_here or self._has_text(digest, content, file.path):
            self._same += 1
            return ""
        if live is None:
            return self._add_unless_similar(file, content)
        return self._add_to_live(file, content, live)

    def finish(self, indexes: Mapping[str, ProposedMemory]) -> ImportPlan:
        """Return the plan, after adding the source's indexes to it."""
        has_renamed = any(path != file.name for path, file in self._files.items())
        is_empty = self._tree.index() is None and not self._tree.headers()
        # Everything comes to an empty directory under its own name: the result is as exported.
        exact = is_empty and not has_renamed and not self._left_out
        if INDEX in indexes:
            self.add_or_leave_out(indexes[INDEX], self._add_index)
        if TEAM_INDEX in indexes:
            self.add_or_leave_out(indexes[TEAM_INDEX], partial(self._add_team_index, exact=exact))
        pointers = index.pointers(indexes[INDEX].content) if INDEX in indexes else {}
        pointed_paths = self._files.keys() & pointers.keys()
        absent = [path for path in INDEXES if exact and path not in indexes]
        return ImportPlan(
            tuple(self._files.values()),
            tuple(Original(path, "", kind=self._incoming.kind) for path in absent),
            self._same,
            tuple(self._left_out),
            {path: pointers[path] for path in sorted(pointed_paths)},
            self._checked_texts,
        )

    def _reason_against(self, file: ProposedMemory) -> str:
        """Return why a file cannot be imported, "" if it can.

        Raises MemdError for a name or a text that no memory may have.
        """
        if self._incoming.joined and file.path.startswith(TEAM):
            return _TEAM_IS_JOINED
        if len(self._files) >= limits.IMPORT_FILES and file.path not in INDEXES:
            return _TOO_MANY_MEMORIES
        if file.exact:  # an earlier memory: its name and text may be odd
            check_odd_name(file.path)
        else:
            check_name(file.path)
            check_shared(file.path, file.content)
            if len(file.content) > limits.MEMORY_BYTES:
                raise TooLargeError(file.path, len(file.content), limits.MEMORY_BYTES)
        return ""

    def _has_text(self, digest: str, content: bytes, path: str) -> bool:
        """Return whether the live file is this text, or was made of it by an earlier import.

        ``digest`` is the hash of the import's own bytes, ``content`` the text with its mark. A file
        that an earlier import made counts under any path, also if somebody has changed it since.
        """
        if self._live_hash(path) in (digest, sha256(content)):
            return True
        for original in self._originals_by_hash[digest]:
            if original.path != path and original.path in self._incoming_paths:
                continue  # this import has a file of its own for that path
            live_hash = self._live_hash(original.path)
            if live_hash == original.live:
                return True
            # The hash alone is no proof: it is stored for proposals that a person refused, too.
            was_written = original.live in self._known.versions(original.path)
            if live_hash and was_written:
                return True
        return False

    def _live_hash(self, path: str) -> str:
        """Return the hash of a live file, "" if there is none or it cannot be read."""
        with suppress(MemdError):
            file = self._tree.read(path)
            return file.hash if file else ""
        return ""

    def _add_unless_similar(self, file: ProposedMemory, content: bytes) -> str:
        """Create a memory, unless a live one with another name has all of its statements.

        If it has all statements of a live one and more, it updates that one.
        """
        similar = (
            live
            for live in self._near_memories.of(content)
            if live.header.path not in self._files  # the plan changes it already
            and live.header.path not in self._incoming_paths  # the source has both
        )
        return "" if self._update_similar(file, content, similar) else self._create(file, content)

    def _add_to_live(self, file: ProposedMemory, content: bytes, live: MemoryFile) -> str:
        """Add a memory whose path a live memory with another text has.

        - The live text comes from an earlier import, or from the source's history: update it, but
          leave the new memory out if it is older.
        - Both have a common ancestor: merge them; the memory counts as the same if the live text
          has all of its changes already.
        - One of them has all statements of the other: keep that one.
        - Otherwise, or if the merge fails: create the memory under a free name beside the live one.
        """
        is_imported = (file.path, live.hash) in self._known.originals
        if is_imported and 0 < file.mtime_ns < live.header.mtime_ns:
            return _LIVE_IS_NEWER
        if is_imported or live.hash in self._history_hashes[file.path]:
            return self._change(file, content, live, UPDATED)
        base_hash, base = next(self._common_ancestors(file.path), ("", b""))
        if not base_hash:
            is_added = self._update_similar(file, content, (live,))
            return "" if is_added else self._create_beside(file, content)
        if _has_changes(base, content, live.content):
            self._same += 1
            return ""
        result = merge(FileEdit(file.path, content, base_hash), base, live.content)
        if result:
            return self._change(file, result, live, MERGED)
        return self._create_beside(file, content)

    def _update_similar(
        self, file: ProposedMemory, content: bytes, candidates: Iterable[MemoryFile]
    ) -> bool:
        """Keep or update the first live memory that shares all statements; return if one does.

        A live memory with all statements of the new one stays unchanged. One whose statements are
        all in the new one gets the new one's text.
        """
        for live in candidates:
            shared = overlap(content, live)
            if shared is Overlap.LIVE_HAS_ALL:
                self._same += 1
                return True
            if shared is Overlap.NEW_HAS_ALL and _is_replaceable(live):
                self._change(file, content, live, UPDATED)
                return True
        return False

    def _common_ancestors(self, path: str) -> Iterator[tuple[str, bytes]]:
        """Yield hash and text of the common ancestors of the live file and the imported one.

        These are the texts that imports wrote before, then those of the source's history, newest
        first, as far as this directory had them too.
        """
        versions = self._known.versions(path)
        for digest in (*self._imported_hashes[path], *reversed(self._history_hashes[path])):
            body = self._known.body(digest) if digest in versions else None
            if body is not None:
                yield digest, body

    def _create_beside(self, file: ProposedMemory, content: bytes) -> str:
        """Create a memory under the first free name from ``name-2.md`` on.

        If a file with such a name has its text already, the memory counts as the same.
        """
        folder, slash, name = file.path.rpartition("/")
        stem = name.removesuffix(SUFFIX)[:_STEM_CHARACTERS]
        for number in _NUMBERS:
            path = f"{folder}{slash}{stem}-{number}{SUFFIX}"
            if self._live_hash(path) in (sha256(file.content), sha256(content)):
                self._same += 1
                return ""
            if self._is_free(path):
                return self._create(file, content, path)
        return _NO_FREE_NAME

    def _is_free(self, path: str) -> bool:
        """Return whether no file has this path: none live, planned or still to come."""
        if self._taken_names.conflict(path) or path in self._files:
            return False
        return self._tree.read(path) is None and path not in self._incoming_paths

    def _create(self, file: ProposedMemory, content: bytes, path: str = "") -> str:
        """Plan to create a memory at ``path``, by default its own path."""
        path = path or file.path
        if why := self._taken_names.conflict(path):
            return why
        self._checked_texts.check(path, None, content)
        self._taken_names.add(path)
        action = CREATED if path == file.path else BESIDE
        edit = FileEdit(path, content, "", self._mtime_ns(file))
        self._files[path] = self._merged_file(file, action, edit, None)
        return ""

    def _change(self, file: ProposedMemory, content: bytes, live: MemoryFile, action: str) -> str:
        """Plan to replace a live memory's text; return "", since this is always possible."""
        path, mtime_ns = live.header.path, self._mtime_ns(file)
        self._checked_texts.check(path, live.content, content)
        if mtime_ns is not None and action == MERGED:
            mtime_ns = max(mtime_ns, live.header.mtime_ns)  # a merge is as new as its newer part
        edit = FileEdit(path, content, live.hash, mtime_ns)
        self._files[path] = self._merged_file(file, action, edit, live.content)
        return ""

    def _merged_file(
        self, file: ProposedMemory, action: str, edit: FileEdit, before: bytes | None
    ) -> MergedFile:
        """Return a file of the plan; ``before`` is the live text that its edit replaces."""
        original = None
        if action != MERGED:  # a merged text is not the source's alone
            new_hash = sha256(edit.content or b"")
            exported_hash, kind = sha256(file.content), self._incoming.kind
            original = Original(edit.path, exported_hash, new_hash, file.origin, kind)
        return MergedFile(file.path, action, edit, before, file.content, original)

    def _mtime_ns(self, file: ProposedMemory) -> int | None:
        """Return a file's mtime, at most a day in the future, or ``None`` if it is unknown."""
        return min(file.mtime_ns, self._incoming.now_ns + _DAY_NS) or None

    def _add_index(self, file: ProposedMemory) -> str:
        """Add the source's index. If one is live, add only the new index's own lines to that one.

        Own lines are those that lead to no memory; they are marked as imported. Return "", since an
        index is never left out.
        """
        live, base, mtime_ns = self._tree.index(), "", self._mtime_ns(file)
        digest = sha256(file.content)
        was_here = digest in self._known.versions(INDEX)  # these exact bytes need no mark
        content = file.content if was_here else index.with_own_marks(file.content, marked=True)
        if live is not None:
            if _unmarked_own_lines(content) <= _unmarked_own_lines(live):
                return ""
            result = index.merge(b"", content, live)
            if result is None or result == live:
                return ""
            content, base, mtime_ns = result, sha256(live), None
        self._checked_texts.check(INDEX, live, content)
        edit = FileEdit(INDEX, content, base, mtime_ns)
        original = None
        if not base and not was_here:  # the store completes it, so its hash is not known yet
            original = Original(INDEX, digest, "", file.origin, self._incoming.kind)
        action = MERGED if base else CREATED
        self._files[INDEX] = MergedFile(INDEX, action, edit, live, file.content, original)
        return ""

    def _add_team_index(self, file: ProposedMemory, *, exact: bool) -> str:
        """Add the source's index of team memories, if there is none here and it is needed.

        It is needed if it has own lines or team memories are imported. ``exact`` says whether the
        directory will be as it was exported. Return "", since an index is never left out.
        """
        has_team_files = any(path.startswith(TEAM) for path in self._files)
        is_needed = has_team_files or bool(index.own_lines(file.content))
        if self._tree.read(TEAM_INDEX) is not None or not is_needed:
            return ""
        self._checked_texts.check(TEAM_INDEX, None, file.content)
        edit = FileEdit(TEAM_INDEX, file.content, "", self._mtime_ns(file))
        # The store completes it, so its hash is not known yet.
        digest, kind = sha256(file.content), self._incoming.kind
        original = Original(TEAM_INDEX, digest, "", file.origin, kind) if exact else None
        self._files[TEAM_INDEX] = MergedFile(
            TEAM_INDEX, CREATED, edit, None, file.content, original
        )
        return ""


def _unmarked_own_lines(content: bytes) -> set[bytes]:
    """Return the lines of an index that lead to no memory, without the mark of imported words."""
    return set(index.own_lines(index.with_own_marks(content, marked=False)))


def _is_replaceable(live: MemoryFile) -> bool:
    """Return whether an import may replace a memory: all but a person's own rules."""
    return live.header.type not in PERSONAL or live.header.origin in FOREIGN


def _has_changes(base: bytes, new: bytes, live: bytes) -> bool:
    """Return whether ``live`` has all lines that ``new`` added to ``base``, and none it removed."""
    old_lines, new_lines, live_lines = (Counter(text.splitlines()) for text in (base, new, live))
    has_added = all(live_lines[line] >= new_lines[line] for line in new_lines - old_lines)
    return has_added and all(live_lines[line] <= new_lines[line] for line in old_lines - new_lines)

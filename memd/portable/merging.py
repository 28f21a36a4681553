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

_NAMES = 1000  # the highest number that is tried for a free name
_STEM_CHARACTERS = 90
_DAY_NS = 86_400 * 10**9
_JOINED = "the project joined a team, whose server says what is in it"
_NO_NAME = "no name beside it is free"
_CLAIMS = "its head says whose words it holds, and cannot be marked as an import"
_OLDER = "what is here came from a newer archive"
_MANY = f"one import brings at most {limits.IMPORT_FILES:,} memories"


def merged(incoming: Incoming, tree: Tree, known: KnownFiles) -> ImportPlan:
    """Return the plan for importing files into a tree. Raises MemdError if it is unreadable."""
    planner = _Planner(incoming, tree, known)
    indexes = {file.path: file for file in incoming.files if file.path in INDEXES}
    for file in sorted(incoming.files, key=lambda file: file.path):
        yield_to_requests()
        if file.path not in INDEXES:
            planner.attempt(file, planner.take)
    return planner.finished(indexes)  # last: indexes depend on which memories are imported


class _Planner:
    """Builds the plan of one import, file by file."""

    def __init__(self, incoming: Incoming, tree: Tree, known: KnownFiles) -> None:
        self._incoming, self._tree, self._known = incoming, tree, known
        self._paths = {file.path for file in incoming.files}
        self._names = TakenNames(header.path for header in tree.headers())
        self._near = NearMemories(tree)
        self._brought: defaultdict[str, list[Original]] = defaultdict(list)
        self._written: defaultdict[str, list[str]] = defaultdict(list)
        for original in known.originals.values():
            self._brought[original.exported].append(original)
            self._written[original.path].append(original.live)
        self._ancestors: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for change in incoming.past:  # oldest first, so each path's hashes are in order of time
            for each in change.files:
                self._ancestors[each.path] |= dict.fromkeys(filter(None, (each.before, each.after)))
        self._files: dict[str, MergedFile] = {}
        self._left: list[LeftOutFile] = []
        self._same = 0
        self._imported = ImportedTexts()

    def attempt(self, file: ProposedMemory, add: Callable[[ProposedMemory], str]) -> None:
        """Add a file with ``add``, which returns why not ("" if added); list that reason."""
        try:
            why = self._refusal(file) or add(file)
        except MemdError as error:
            why = error.sentence
        if why:
            self._left.append(LeftOutFile(file.path, why))

    def take(self, file: ProposedMemory) -> str:
        """Add a memory to the plan; return why it is left out, "" if not. Raises MemdError."""
        key, live = sha256(file.content), self._tree.read(file.path)
        versions = self._known.versions(file.path)
        if live is None and key in versions:  # the exact bytes that were here need no mark
            return self._create(file, file.content)
        content = marked(file.content, file.path)
        if content is None:
            return _CLAIMS
        if self._is_here(key, content, file.path) or (live is not None and key in versions):
            self._same += 1
            return ""
        if live is None:
            return self._add_unless_near(file, content)
        return self._add_to_live(file, content, live)

    def finished(self, indexes: Mapping[str, ProposedMemory]) -> ImportPlan:
        """Return the plan, after adding the source's indexes to it."""
        renamed = any(path != file.name for path, file in self._files.items())
        fresh = self._tree.index() is None and not self._tree.headers()
        # Everything comes to an empty directory under its own name: the result is as exported.
        exact = fresh and not renamed and not self._left
        if INDEX in indexes:
            self.attempt(indexes[INDEX], self._add_index)
        if TEAM_INDEX in indexes:
            self.attempt(indexes[TEAM_INDEX], partial(self._add_team_index, exact=exact))
        pointers = index.pointers(indexes[INDEX].content) if INDEX in indexes else {}
        created = self._files.keys() & pointers.keys()
        absent = [path for path in INDEXES if exact and path not in indexes]
        return ImportPlan(
            tuple(self._files.values()),
            tuple(Original(path, "", kind=self._incoming.kind) for path in absent),
            self._same,
            tuple(self._left),
            {path: pointers[path] for path in sorted(created)},
            self._imported,
        )

    def _refusal(self, file: ProposedMemory) -> str:
        """Return why a file cannot be imported, "" if it can. Raises MemdError for bad files."""
        if self._incoming.joined and file.path.startswith(TEAM):
            return _JOINED
        if len(self._files) >= limits.IMPORT_FILES and file.path not in INDEXES:
            return _MANY
        if file.exact:
            check_odd_name(file.path)
        else:
            check_name(file.path)
            check_shared(file.path, file.content)
            if len(file.content) > limits.MEMORY_BYTES:
                raise TooLargeError(file.path, len(file.content), limits.MEMORY_BYTES)
        return ""

    def _is_here(self, key: str, content: bytes, path: str) -> bool:
        """Return whether a text is here already, with or without its mark, or changed since.

        Earlier imports of it count too, except under another name that this import also contains.
        """
        live = self._live_hash(path)
        if live in (key, sha256(content)):
            return True
        for original in self._brought[key]:
            if original.path != path and original.path in self._paths:
                continue
            live = self._live_hash(original.path)
            if live == original.live or (live and self._was_written(original)):
                return True
        return False

    def _was_written(self, original: Original) -> bool:
        """Return whether an import's text was written here: a person may have refused it."""
        return original.live in self._known.versions(original.path)

    def _live_hash(self, path: str) -> str:
        """Return the hash of a live file, "" if there is none or it cannot be read."""
        with suppress(MemdError):
            file = self._tree.read(path)
            return file.hash if file else ""
        return ""

    def _add_unless_near(self, file: ProposedMemory, content: bytes) -> str:
        """Add a memory with a new name, unless one with another name has the same statements.

        Return why it is left out, "" if it is not.
        """
        near = (
            live
            for live in self._near.of(content)
            if live.header.path not in self._files  # one import into it is enough
            and live.header.path not in self._paths  # the source has both
        )
        return "" if self._update_near(file, content, near) else self._create(file, content)

    def _add_to_live(self, file: ProposedMemory, content: bytes, live: MemoryFile) -> str:
        """Add a memory whose name a live memory with another text has: update, merge or rename.

        Return why it is left out, "" if it is not.
        """
        brought = (file.path, live.hash) in self._known.originals
        if brought and 0 < file.mtime_ns < live.header.mtime_ns:
            return _OLDER
        if brought or live.hash in self._ancestors[file.path]:
            return self._change(file, content, live, UPDATED)
        key, base = next(self._common_ancestors(file.path), ("", b""))
        if key and _has_changes(base, content, live.content):
            self._same += 1
            return ""
        if key and (result := merge(FileEdit(file.path, content, key), base, live.content)):
            return self._change(file, result, live, MERGED)
        if not key and self._update_near(file, content, (live,)):
            return ""
        return self._create_beside(file, content)

    def _update_near(
        self, file: ProposedMemory, content: bytes, near: Iterable[MemoryFile]
    ) -> bool:
        """Update a live memory that the new one says and more; return ``False`` if none is.

        A live memory that says all of the new one is left as it is, and counts too.
        """
        for live in near:
            common = overlap(content, live)
            if common is Overlap.SAID:
                self._same += 1
                return True
            if common is Overlap.MORE and _is_replaceable(live):
                self._change(file, content, live, UPDATED)
                return True
        return False

    def _common_ancestors(self, path: str) -> Iterator[tuple[str, bytes]]:
        """Yield hash and text of the common ancestors of the live file and the imported one.

        These are texts that imports wrote before, then those of the source's history, newest first.
        """
        versions = self._known.versions(path)
        for key in (*self._written[path], *reversed(self._ancestors[path])):
            body = self._known.body(key) if key in versions else None
            if body is not None:
                yield key, body

    def _create_beside(self, file: ProposedMemory, content: bytes) -> str:
        """Add a memory as ``name-2.md`` (or the next free number), unless it is there already.

        Return why it is left out, "" if it is not.
        """
        folder, slash, name = file.path.rpartition("/")
        stem = name.removesuffix(SUFFIX)[:_STEM_CHARACTERS]
        for number in range(2, _NAMES):
            path = f"{folder}{slash}{stem}-{number}{SUFFIX}"
            if self._live_hash(path) in (sha256(file.content), sha256(content)):
                self._same += 1
                return ""
            is_free = not self._names.conflict(path) and not self._is_there(path)
            if path not in self._paths and is_free:
                return self._create(file, content, path)
        return _NO_NAME

    def _is_there(self, path: str) -> bool:
        """Return whether a file is planned or live. Raises MemdError."""
        return path in self._files or self._tree.read(path) is not None

    def _create(self, file: ProposedMemory, content: bytes, path: str = "") -> str:
        """Plan to create a memory at a path (by default its own); return why not, "" if planned."""
        path = path or file.path
        if why := self._names.conflict(path):
            return why
        self._imported.check(path, None, content)
        self._names.add(path)
        action = CREATED if path == file.path else BESIDE
        edit = FileEdit(path, content, "", self._mtime_ns(file))
        self._files[path] = self._as_planned(file, action, edit, None)
        return ""

    def _change(self, file: ProposedMemory, content: bytes, live: MemoryFile, action: str) -> str:
        """Plan to replace a live memory's text; return "" (no reason to leave it out)."""
        path, mtime_ns = live.header.path, self._mtime_ns(file)
        self._imported.check(path, live.content, content)
        if mtime_ns is not None and action == MERGED:
            mtime_ns = max(mtime_ns, live.header.mtime_ns)  # a merge is as new as its newer part
        edit = FileEdit(path, content, live.hash, mtime_ns)
        self._files[path] = self._as_planned(file, action, edit, live.content)
        return ""

    def _as_planned(
        self, file: ProposedMemory, action: str, edit: FileEdit, before: bytes | None
    ) -> MergedFile:
        """Return a file of the plan; ``before`` is the live text that its edit replaces."""
        live, key = sha256(edit.content or b""), sha256(file.content)
        original = Original(edit.path, key, live, file.origin, self._incoming.kind)
        stored = None if action == MERGED else original
        return MergedFile(file.path, action, edit, before, file.content, stored)

    def _mtime_ns(self, file: ProposedMemory) -> int | None:
        """Return a file's mtime, at most a day in the future, or ``None`` if it is unknown."""
        return min(file.mtime_ns, self._incoming.now_ns + _DAY_NS) or None

    def _add_index(self, file: ProposedMemory) -> str:
        """Add the source's index: whole if there is none here, else its own lines in their order.

        Own lines, which are no pointers, are marked as imported. Return "": none is left out.
        """
        live, base, mtime_ns = self._tree.index(), "", self._mtime_ns(file)
        key = sha256(file.content)
        was_here = key in self._known.versions(INDEX)
        content = file.content if was_here else index.with_own_marks(file.content, marked=True)
        if live is not None:
            live_lines, new_lines = (
                set(index.own_lines(index.with_own_marks(each, marked=False)))
                for each in (live, content)
            )
            if new_lines <= live_lines:
                return ""
            result = index.merge(b"", content, live)
            if result is None or result == live:
                return ""
            content, base, mtime_ns = result, sha256(live), None
        self._imported.check(INDEX, live, content)
        edit = FileEdit(INDEX, content, base, mtime_ns)
        original = None
        if not base and not was_here:  # the store completes it, so its hash is not known yet
            original = Original(INDEX, key, "", file.origin, self._incoming.kind)
        action = MERGED if base else CREATED
        self._files[INDEX] = MergedFile(INDEX, action, edit, live, file.content, original)
        return ""

    def _add_team_index(self, file: ProposedMemory, *, exact: bool) -> str:
        """Add the source's index of team memories, if there is none here and it is needed.

        It is needed if it has own lines or team memories are imported. ``exact``: the directory
        will be as it was exported. Return "": none is left out.
        """
        team = any(path.startswith(TEAM) for path in self._files)
        if self._tree.read(TEAM_INDEX) is not None or not (team or index.own_lines(file.content)):
            return ""
        self._imported.check(TEAM_INDEX, None, file.content)
        edit = FileEdit(TEAM_INDEX, file.content, "", self._mtime_ns(file))
        # The store completes it, so its hash is not known yet.
        key, kind = sha256(file.content), self._incoming.kind
        original = Original(TEAM_INDEX, key, "", file.origin, kind) if exact else None
        self._files[TEAM_INDEX] = MergedFile(
            TEAM_INDEX, CREATED, edit, None, file.content, original
        )
        return ""


def _is_replaceable(live: MemoryFile) -> bool:
    """Return whether an import may replace a memory: all but a person's own rules."""
    return live.header.type not in PERSONAL or live.header.origin in FOREIGN


def _has_changes(base: bytes, new: bytes, live: bytes) -> bool:
    """Return whether ``live`` has all lines that ``new`` added to ``base``, and none it removed."""
    old_lines, new_lines, live_lines = (Counter(text.splitlines()) for text in (base, new, live))
    has_added = all(live_lines[line] >= new_lines[line] for line in new_lines - old_lines)
    return has_added and all(live_lines[line] <= new_lines[line] for line in old_lines - new_lines)

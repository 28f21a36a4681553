"""Plan what an import does with each file in the live tree. Pure.

Rules of this file
- No work is lost: a live file is changed only if an import wrote it last. Otherwise both stay, the
  import's as ``name-2.md``.
- Importing twice has the same result as importing once.
- Imported memories are marked as such.
- A file that cannot be imported is listed with its reason; the others are imported.
"""

from collections.abc import Callable
from contextlib import suppress

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, INDEXES, SUFFIX, TEAM, TEAM_INDEX, check_name, check_odd_name
from memd.base.text import sha256
from memd.base.values import FileEdit, MemoryFile, Tree
from memd.base.yielding import yield_to_requests
from memd.portable.marking import marked
from memd.portable.plan import (
    BESIDE,
    CREATED,
    UPDATED,
    ImportPlan,
    Incoming,
    PlannedFile,
    TakenNames,
)
from memd.portable.values import LeftOutFile, ReadFile
from memd.store import index
from memd.store.check import ImportedTexts, check_shared, check_size
from memd.store.merge import merge_index

_NUMBERS = range(2, 1000)  # tried for a free name, such as ``name-2.md``
_STEM_CHARACTERS = 90  # of a name before such a number
_DAY_NS = 86_400 * 10**9
_TEAM_IS_JOINED = "the project joined a team, whose server says what is in it"
_NO_FREE_NAME = "no name beside it is free"
_CANNOT_BE_MARKED = "its head says whose words it holds, and cannot be marked as an import"
_TOO_MANY_MEMORIES = (
    f"one import brings at most {limits.IMPORT_FILES:,} memories; import the others apart"
)


def plan_import(incoming: Incoming, tree: Tree) -> ImportPlan:
    """Return the plan for importing files into a tree. Raises MemdError if it is unreadable."""
    planner = _Planner(incoming, tree)
    indexes = {file.path: file for file in incoming.files if file.path in INDEXES}
    for file in sorted(incoming.files, key=lambda file: file.path):
        yield_to_requests()
        if file.path not in INDEXES:
            planner.add_or_leave_out(file, planner.add_memory)
    # Indexes come last: they depend on the imported memories.
    if INDEX in indexes:
        planner.add_or_leave_out(indexes[INDEX], planner.add_index)
    if TEAM_INDEX in indexes:
        planner.add_or_leave_out(indexes[TEAM_INDEX], planner.add_team_index)
    return planner.plan(indexes.get(INDEX))


class _Planner:
    """Builds the plan of one import, file by file.

    Its methods that add a file return the reason why the file is left out, "" if it is not.
    """

    def __init__(self, incoming: Incoming, tree: Tree) -> None:
        self._incoming, self._tree = incoming, tree
        self._incoming_paths = {file.path for file in incoming.files}
        self._taken_names = TakenNames(header.path for header in tree.headers())
        self._files: dict[str, PlannedFile] = {}  # the planned files by their path here
        self._left_out: list[LeftOutFile] = []
        self._same = 0  # the number of memories that are here already
        self._checked_texts = ImportedTexts()  # texts that the store need not check again

    def add_or_leave_out(self, file: ReadFile, add: Callable[[ReadFile], str]) -> None:
        """Add a file with the method ``add``, or list it with the reason why it is left out."""
        try:
            why = self._reason_against(file) or add(file)
        except MemdError as error:
            why = error.sentence
        if why:
            self._left_out.append(LeftOutFile(file.path, why))

    def add_memory(self, file: ReadFile) -> str:
        """Decide what the import does with a memory, and add that to the plan. Raises MemdError.

        - Its text is here under its path: count it as the same.
        - Nothing has its path: create it.
        - An import wrote the file with its path last: update that.
        - Otherwise: create it under a free name beside that file.
        """
        content = marked(file.content, file.path)
        if content is None:
            return _CANNOT_BE_MARKED
        live = self._tree.read(file.path)
        if live is None:
            return self._create(file, content)
        if live.content in (file.content, content):
            self._same += 1
            return ""
        if self._incoming.was_imported(file.path, live.hash):
            self._update(file, content, live)
            return ""
        return self._create_beside(file, content)

    def add_index(self, file: ReadFile) -> str:
        """Add the source's index. If one is live, add only the new index's own lines to that one.

        Own lines are those that lead to no memory; they are marked as imported. Return "", since an
        index is never left out.
        """
        live, base, mtime_ns = self._tree.index(), "", self._mtime_ns(file)
        content = index.with_own_marks(file.content, marked=True)
        if live is not None:
            if _unmarked_own_lines(content) <= _unmarked_own_lines(live):
                return ""
            result = merge_index(b"", content, live)
            if result is None or result == live:
                return ""
            content, base, mtime_ns = result, sha256(live), None
        self._checked_texts.check(INDEX, live, content)
        edit = FileEdit(INDEX, content, base, mtime_ns)
        self._files[INDEX] = PlannedFile(INDEX, UPDATED if base else CREATED, edit)
        return ""

    def add_team_index(self, file: ReadFile) -> str:
        """Add the source's index of team memories, if there is none here and it is needed.

        It is needed if it has own lines or team memories are imported. Return "", since an index is
        never left out.
        """
        has_team_files = any(path.startswith(TEAM) for path in self._files)
        is_needed = has_team_files or bool(index.own_lines(file.content))
        if self._tree.read(TEAM_INDEX) is not None or not is_needed:
            return ""
        self._checked_texts.check(TEAM_INDEX, None, file.content)
        edit = FileEdit(TEAM_INDEX, file.content, "", self._mtime_ns(file))
        self._files[TEAM_INDEX] = PlannedFile(TEAM_INDEX, CREATED, edit)
        return ""

    def plan(self, index_file: ReadFile | None) -> ImportPlan:
        """Return the plan; index lines of new files are those of the source's index."""
        pointers = index.pointers(index_file.content) if index_file else {}
        paths = sorted(self._files.keys() & pointers.keys())
        return ImportPlan(
            tuple(self._files.values()),
            self._same,
            tuple(self._left_out),
            {path: pointers[path] for path in paths},
            self._checked_texts,
        )

    def _reason_against(self, file: ReadFile) -> str:
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
            check_size(file.path, file.content)
        return ""

    def _create_beside(self, file: ReadFile, content: bytes) -> str:
        """Create a memory under the first free name from ``name-2.md`` on.

        If a file with such a name has its text already, the memory counts as the same.
        """
        folder, slash, name = file.path.rpartition("/")
        stem = name.removesuffix(SUFFIX)[:_STEM_CHARACTERS]
        for number in _NUMBERS:
            path = f"{folder}{slash}{stem}-{number}{SUFFIX}"
            live = self._read(path)
            if live is not None and live.content in (file.content, content):
                self._same += 1
                return ""
            is_planned = path in self._files or path in self._incoming_paths
            if live is None and not is_planned and not self._taken_names.conflict(path):
                return self._create(file, content, path)
        return _NO_FREE_NAME

    def _read(self, path: str) -> MemoryFile | None:
        """Return a live file, ``None`` if there is none or it cannot be read."""
        with suppress(MemdError):
            return self._tree.read(path)
        return None

    def _create(self, file: ReadFile, content: bytes, path: str = "") -> str:
        """Plan to create a memory at ``path``, by default its own path."""
        path = path or file.path
        if why := self._taken_names.conflict(path):
            return why
        self._checked_texts.check(path, None, content)
        self._taken_names.add(path)
        action = CREATED if path == file.path else BESIDE
        edit = FileEdit(path, content, "", self._mtime_ns(file))
        self._files[path] = PlannedFile(file.path, action, edit)
        return ""

    def _update(self, file: ReadFile, content: bytes, live: MemoryFile) -> None:
        """Plan to replace the text of a live memory that an import wrote last."""
        path = live.header.path
        self._checked_texts.check(path, live.content, content)
        edit = FileEdit(path, content, live.hash, self._mtime_ns(file))
        self._files[path] = PlannedFile(file.path, UPDATED, edit)

    def _mtime_ns(self, file: ReadFile) -> int | None:
        """Return a file's mtime, at most a day in the future, or ``None`` if it is unknown."""
        return min(file.mtime_ns, self._incoming.now_ns + _DAY_NS) or None


def _unmarked_own_lines(content: bytes) -> set[bytes]:
    """Return the lines of an index that lead to no memory, without the mark of imported words."""
    return set(index.own_lines(index.with_own_marks(content, marked=False)))

"""A memory directory as a plan sees it, in the memory, and what an import makes of it."""

from collections.abc import Mapping

from memd.base.names import INDEX, INDEXES
from memd.base.text import sha256
from memd.base.values import Header, MemoryFile, MemoryType, newest_first
from memd.portable.plan import ImportPlan
from memd.store.disk import Content
from memd.store.memory import new as new_memory
from memd.store.memory import with_fields
from memd.store.tree import memory_file


class Desk:
    """Files with their times, and which of them an import wrote last."""

    def __init__(self, files: Mapping[str, bytes] | None = None, mtime_ns: int = 5) -> None:
        self.files = dict(files or {})
        self.mtimes = dict.fromkeys(self.files, mtime_ns)
        self.imported: set[tuple[str, str]] = set()

    def was_imported(self, path: str, body_hash: str) -> bool:
        """Say whether an import wrote this text."""
        return (path, body_hash) in self.imported

    def headers(self) -> tuple[Header, ...]:
        """All memories, newest first."""
        results = (self.read(path) for path in self.files if path not in INDEXES)
        return tuple(sorted((each.header for each in results if each), key=newest_first))

    def read(self, path: str) -> MemoryFile | None:
        """One file."""
        content = self.files.get(path)
        if content is None:
            return None
        at = self.mtimes[path]
        return memory_file(path, Content(sha256(content), content, at, 0o600))

    def index(self) -> bytes | None:
        """Return the index."""
        return self.files.get(INDEX)

    def save(self, path: str, content: bytes, mtime_ns: int = 7) -> None:
        """Write a file, as a person does whom memd noticed."""
        self.files[path], self.mtimes[path] = content, mtime_ns
        self.imported.discard((path, sha256(content)))

    def apply(self, plan: ImportPlan) -> None:
        """Make a plan true."""
        for file in plan.files:
            edit = file.edit
            assert (
                edit.base == sha256(self.files[edit.path])
                if edit.path in self.files
                else not edit.base
            )
            assert edit.content is not None
            self.save(edit.path, edit.content, edit.mtime_ns or 9)
            self.imported.add((edit.path, sha256(edit.content)))


def memory(
    body: str,
    *,
    name: str = "a-name",
    description: str = "About it",
    kind: MemoryType = MemoryType.PROJECT,
    origin: str = "",
) -> bytes:
    """Return a memory as memd writes it."""
    content = new_memory(
        name, description, kind, body, session="s", modified="2026-03-02T10:00:00Z"
    )
    return with_fields(content, {"metadata.origin": origin}) if origin else content

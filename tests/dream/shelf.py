"""A memory directory as a mapping of paths to bytes and times, for tests of the fixed pass."""

from collections.abc import Mapping

from memd.core.names import INDEX, NameRefusedError
from memd.core.text import sha256
from memd.core.values import Header, MemoryFile
from memd.documents import document
from memd.dream.judge import judge
from memd.dream.values import Wanted

MONDAY = 1_772_450_000.0  # 2026-03-02, a Monday
NS = 1_000_000_000


class Shelf:
    """A memory directory as a mapping of paths to bytes and mtimes."""

    def __init__(
        self, files: Mapping[str, bytes], times: Mapping[str, float] | None = None
    ) -> None:
        self.files = dict(files)
        self.times = {path: (times or {}).get(path, MONDAY) for path in files}

    @property
    def memories(self) -> dict[str, bytes]:
        return {path: content for path, content in self.files.items() if path != INDEX}

    def headers(self) -> tuple[Header, ...]:
        return tuple(self._file(path).header for path in self.memories)

    def read(self, path: str) -> MemoryFile | None:
        if path.startswith("unreadable"):
            raise NameRefusedError(path, "for the test")
        gone = path.startswith("vanished") or path not in self.files
        return None if gone else self._file(path)

    def index(self) -> bytes | None:
        return self.files.get(INDEX)

    def after(self, wanted: Wanted) -> "Shelf":
        files, times = dict(self.files), dict(self.times)
        for edit in wanted.edits:
            assert edit.base == sha256(files[edit.path])
            if edit.content is None:
                del files[edit.path], times[edit.path]
            else:
                files[edit.path] = edit.content
                times[edit.path] = (edit.mtime_ns or 0) / NS
        return Shelf(files, times)

    def _file(self, path: str) -> MemoryFile:
        content = self.files[path]
        parsed = document.parse(content, path)
        mtime_ns = int(self.times[path]) * NS
        header = Header(
            path,
            parsed.name,
            parsed.description,
            parsed.type,
            mtime_ns,
            len(content),
            parsed.damaged,
            1,
        )
        return MemoryFile(header, content, sha256(content), parsed.body)


def judged(shelf: Shelf, wanted: Wanted) -> tuple[str, ...]:
    """Return what the judge has against a pass."""
    size = sum(map(len, shelf.memories.values()))
    judged = judge(
        shelf.memories,
        wanted,
        index=shelf.index(),
        total=len(shelf.memories),
        total_bytes=size,
    )
    return judged.problems

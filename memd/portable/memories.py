"""What becomes of a source of another tool: proposed memories and what is left out. Pure."""

from collections import defaultdict

from memd.core import limits
from memd.core.text import iso_time, one_line
from memd.core.values import IMPORT, MemoryType
from memd.documents.document import new, slug, with_fields
from memd.portable.values import (
    MEMORIES,
    TEXT_BYTES,
    ChatSession,
    ImportReading,
    ImportSource,
    LeftOutList,
    ProposedMemory,
    ReadProject,
    SourceKind,
)

_NAME_WORDS = 8
_MANY = f"one import brings at most {MEMORIES} memories, {TEXT_BYTES} bytes"
_Folders = defaultdict[str, list[ProposedMemory]]


class ReadingBuilder:
    """Gathers what a reader makes of its ``source``, within the bounds of one import.

    In a project each file has a name of its own, and a text is taken once. Readers may fill the
    public attributes: ``memories`` by project id, ``names`` of projects by id, ``agents`` as an
    ``ImportReading`` has them, where a key with a scope belongs to the project without an id.
    """

    def __init__(self, kind: SourceKind, source: ImportSource) -> None:
        self.kind, self.source = kind, source
        self.names: dict[str, str] = {}
        self.memories, self.agents = _Folders(list), _Folders(list)
        self.sessions: list[ChatSession] = []
        self.left = LeftOutList()
        self.problems: list[str] = []
        self.diff = ""
        self._numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._texts: dict[tuple[str, str], str] = {}
        self._count = self._bytes = 0

    def leave(self, where: str, reason: str) -> None:
        """List something that does not become a memory, or count it where there are very many."""
        self.left.add(where, reason)

    def written(self, name: str) -> float:
        """Return when a file of the source was changed last, in seconds since 1970."""
        return self.source.mtime_ns(name) / 1_000_000_000

    def add(
        self,
        text: str,
        where: str,
        *,
        title: str = "",
        description: str = "",
        kind: MemoryType | None = None,
        at: float = 0.0,
        tags: tuple[str, ...] = (),
        context: str = "",
        project: str = "",
    ) -> None:
        """Propose a memory of a text, or list why not.

        ``where`` it stands in the source is for a person. The first words of the title name the
        file; it and the description are the text's where they are empty. ``at`` is in seconds
        since 1970, 0 where nobody says. ``context`` stands below the text.
        """
        if self._count >= MEMORIES:
            self.leave(where, _MANY)
            return
        body = text.replace("\r\n", "\n").strip()
        same = (project, " ".join(body.casefold().split()))
        if not body:
            self.leave(where, "it is empty")
        elif same in self._texts:
            self.leave(where, f"it says the same as {self._texts[same]}")
        else:
            self._texts[same] = where
            name = self._name(title or body, project)
            line = one_line(description or body, limits.INDEX_LINE_CHARACTERS)
            modified = iso_time(at) if at else ""
            whole = f"{body}\n\n{context}" if context else body
            content = new(name, line, kind, whole, session="", modified=modified, origin=IMPORT)
            if tags:
                content = with_fields(content, {"metadata.tags": ", ".join(tags)})
            # The prefix keeps a name from being that of a device or an index.
            path = f"{kind or self.kind}_{name}.md"
            memory = ProposedMemory(path, content, int(at * 1_000_000_000))
            self.take(memory, where, self.memories[project])

    def take(self, memory: ProposedMemory, where: str, into: list[ProposedMemory]) -> None:
        """Add a memory to a list, or list why not."""
        size = len(memory.content)
        most = limits.READ_BYTES if memory.exact else limits.MEMORY_BYTES
        if size > most:
            self.leave(where, f"it has {size} bytes, the limit is {most}")
        elif self._count >= MEMORIES or self._bytes + size > TEXT_BYTES:
            self.leave(where, _MANY)
        else:
            self._count += 1
            self._bytes += size
            into.append(memory)

    def reading(self) -> ImportReading:
        """Return all of it."""
        agents = {key: tuple(memories) for key, memories in self.agents.items() if memories}
        users = {key: memories for key, memories in agents.items() if "/" not in key}
        scoped = {key: memories for key, memories in agents.items() if "/" in key}
        if scoped:
            self.memories.setdefault("", [])
        projects = tuple(
            ReadProject(key, self.names.get(key, key), tuple(memories), {} if key else scoped)
            for key, memories in self.memories.items()
            if memories or (scoped and not key)
        )
        left, talks = tuple(self.left.files), tuple(self.sessions)
        return ImportReading(
            self.kind,
            projects,
            users,
            left,
            talks,
            self.diff,
            tuple(self.problems),
            self.left.more,
        )

    def _name(self, title: str, project: str) -> str:
        """Return a name that no memory of the project has yet."""
        name = plain = slug(" ".join(title.split(maxsplit=_NAME_WORDS)[:_NAME_WORDS]))
        numbers = self._numbers[project]
        while name in numbers:
            numbers[plain] += 1
            name = f"{plain}-{numbers[plain]}"
        numbers[name] = 1
        return name

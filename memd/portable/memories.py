"""Build memories from the entries of another tool's files, and list what is left out. Pure."""

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

_NAME_WORDS = 8  # of a title, for a file name
_MANY = f"one import brings at most {MEMORIES} memories, {TEXT_BYTES} bytes"
_Folders = defaultdict[str, list[ProposedMemory]]


class ReadingBuilder:
    """Gathers the memories that a reader finds in its ``source``, within the limits of an import.

    In a project each file has a unique name, and equal texts are taken once. Readers may fill the
    public attributes: ``memories`` by project id, ``names`` of projects by id, and ``agents`` by
    agent, or by ``scope/agent`` for sub-agents of the project without an id.
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
        """Leave out a place of the source: list it with the reason (from 1,000 on, count it)."""
        self.left.add(where, reason)

    def written(self, name: str) -> float:
        """Return when a file was last changed, in seconds since 1970; 0 if unknown."""
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
        """Propose a memory with a text, or leave the text out with a reason.

        ``where`` tells a person its place in the source. The first words of the title become the
        file name; an empty title or description is taken from the text. ``at`` is in seconds
        since 1970, 0 if unknown. ``context`` is written below the text.
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
            name = self._unique_name(title or body, project)
            line = one_line(description or body, limits.INDEX_LINE_CHARACTERS)
            modified = iso_time(at) if at else ""
            whole = f"{body}\n\n{context}" if context else body
            content = new(name, line, kind, whole, session="", modified=modified, origin=IMPORT)
            if tags:
                content = with_fields(content, {"metadata.tags": ", ".join(tags)})
            # The prefix prevents names that are reserved for devices or indexes.
            path = f"{kind or self.kind}_{name}.md"
            memory = ProposedMemory(path, content, int(at * 1_000_000_000))
            self.take(memory, where, self.memories[project])

    def take(self, memory: ProposedMemory, where: str, into: list[ProposedMemory]) -> None:
        """Add a memory to the list ``into``, or leave it out if it is above a limit."""
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
        """Return all that was added, by project and agent."""
        agents = {key: tuple(memories) for key, memories in self.agents.items() if memories}
        # A key with a scope, "project/reviewer", is a sub-agent of the project without an id.
        users = {key: memories for key, memories in agents.items() if "/" not in key}
        scoped = {key: memories for key, memories in agents.items() if "/" in key}
        if scoped:
            self.memories.setdefault("", [])  # that project may have no memories of its own
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

    def _unique_name(self, title: str, project: str) -> str:
        """Return a name of a title's first words that no other memory of the project has."""
        name = plain = slug(" ".join(title.split(maxsplit=_NAME_WORDS)[:_NAME_WORDS]))
        numbers = self._numbers[project]
        while name in numbers:
            numbers[plain] += 1
            name = f"{plain}-{numbers[plain]}"
        numbers[name] = 1
        return name

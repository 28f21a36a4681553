"""Build memories from the entries of another tool's files, and list what is left out. Pure."""

from collections import defaultdict

from memd.base import limits
from memd.base.text import iso_time, one_line
from memd.base.values import IMPORT, MemoryType
from memd.portable.values import (
    MEMORIES,
    TEXT_BYTES,
    ImportReading,
    ImportSource,
    LeftOutList,
    ReadFile,
    ReadProject,
    SourceKind,
)
from memd.store.memory import new, slug
from memd.store.secret import blank

_NAMING_CHARACTERS = 2000  # of a text are searched for a credential; a name has far fewer
_WORDS_IN_NAME = 8  # the most words of a text in a file name
_TOO_MANY_MEMORIES = (
    f"one import brings at most {MEMORIES} memories, {TEXT_BYTES} bytes; import the others apart"
)


class ReadingBuilder:
    """Gathers the memories that a reader finds in its ``source``, within the limits of an import.

    Each text gets a name of its own, and equal texts are taken once. Readers may fill ``memories``
    by project id, and ``agents`` (the memories of sub-agents) by agent, or by ``scope/agent`` for
    sub-agents of the project without an id.
    """

    def __init__(self, kind: SourceKind, source: ImportSource) -> None:
        self.kind, self.source = kind, source
        self.memories = defaultdict[str, list[ReadFile]](list)
        self.agents = defaultdict[str, list[ReadFile]](list)
        self.left_out = LeftOutList()
        self._name_numbers: dict[str, int] = {}  # the highest number that was added to each name
        self._place_of_text: dict[str, str] = {}  # by the text in lower case
        self._memory_count = self._text_bytes = 0  # of all projects and agents together

    def leave_out(self, where: str, reason: str) -> None:
        """Leave out a place of the source: list it with the reason (from 1,000 on, count it)."""
        self.left_out.add(where, reason)

    def changed_at(self, name: str) -> float:
        """Return when a file was last changed, in seconds since 1970; 0 if unknown."""
        return self.source.mtime_ns(name) / 1_000_000_000

    def add(
        self,
        text: str,
        where: str,
        *,
        kind: MemoryType | None = None,
        at: float = 0.0,
        context: str = "",
    ) -> None:
        """Add a memory to the project without an id, or leave the text out with a reason.

        ``where`` tells a person its place in the source. The first words of the text become the
        file name. ``at`` is in seconds since 1970, 0 if unknown. ``context`` is written below it.
        """
        if self._memory_count >= MEMORIES:
            self.leave_out(where, _TOO_MANY_MEMORIES)
            return
        body = text.replace("\r\n", "\n").strip()
        comparable = " ".join(body.casefold().split())
        if not body:
            self.leave_out(where, "it is empty")
            return
        if comparable in self._place_of_text:
            self.leave_out(where, f"it says the same as {self._place_of_text[comparable]}")
            return
        self._place_of_text[comparable] = where
        name = self._unique_name(body)
        line = one_line(body, limits.INDEX_LINE_CHARACTERS)
        modified = iso_time(at) if at else ""
        body = f"{body}\n\n{context}" if context else body
        content = new(name, line, kind, body, session="", modified=modified, origin=IMPORT)
        # The prefix prevents names that are reserved for devices or indexes.
        path = f"{kind or self.kind}_{name}.md"
        self.add_file(ReadFile(path, content, int(at * 1_000_000_000)), where, self.memories[""])

    def add_file(self, memory: ReadFile, where: str, into: list[ReadFile]) -> None:
        """Add a memory to the list ``into``, or leave it out if it is above a limit."""
        size = len(memory.content)
        limit = limits.READ_BYTES if memory.exact else limits.MEMORY_BYTES
        if size > limit:
            self.leave_out(where, f"it has {size} bytes, the limit is {limit}")
        elif self._memory_count >= MEMORIES or self._text_bytes + size > TEXT_BYTES:
            self.leave_out(where, _TOO_MANY_MEMORIES)
        else:
            self._memory_count += 1
            self._text_bytes += size
            into.append(memory)

    def reading(self) -> ImportReading:
        """Return all that was added, by project and agent."""
        agents = {key: tuple(memories) for key, memories in self.agents.items() if memories}
        # A key with a scope, "project/reviewer", is a sub-agent of the project without an id.
        user_agents = {key: memories for key, memories in agents.items() if "/" not in key}
        project_agents = {key: memories for key, memories in agents.items() if "/" in key}
        if project_agents:
            self.memories.setdefault("", [])  # that project may have no memories of its own
        projects: list[ReadProject] = []
        for project_id, memories in self.memories.items():
            own_agents = {} if project_id else project_agents
            if memories or own_agents:
                projects.append(ReadProject(project_id, project_id, tuple(memories), own_agents))
        left_out = self.left_out
        return ImportReading(
            self.kind, tuple(projects), user_agents, tuple(left_out.files), left_out.more
        )

    def _unique_name(self, text: str) -> str:
        """Return a name of a text's first words that no other memory has."""
        # The name of a memory that is refused is shown: it must not hold what the refusal is for.
        words = blank(text[:_NAMING_CHARACTERS]).split(maxsplit=_WORDS_IN_NAME)[:_WORDS_IN_NAME]
        name = stem = slug(" ".join(words))
        while name in self._name_numbers:
            self._name_numbers[stem] += 1
            name = f"{stem}-{self._name_numbers[stem]}"
        self._name_numbers[name] = 1
        return name

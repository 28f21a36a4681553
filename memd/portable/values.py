"""What readers of archives return, and what an export takes and an import does with it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from memd.core.imports import PastChange
from memd.core.values import Message
from memd.projects.projects import KnownProject

TEXT_BYTES = 32 * 1024 * 1024  # of the memories of one import together
FILE_BYTES = 32 * 1024 * 1024  # of one file of a source, which is read as a whole
LISTED = 1000  # of what is left out; the rest is counted
MEMORIES = 10_000  # of one import


class ExportPart(StrEnum):
    """What an export takes beside the private memories, as ``--with`` names it."""

    AGENTS = "agents"
    TEAM = "team"
    NOTES = "notes"
    HISTORY = "history"
    LOGS = "logs"
    SETTINGS = "settings"


class SourceKind(StrEnum):
    """What an import can read, as ``--from`` names it."""

    MEMD = "memd"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    BASIC_MEMORY = "basic-memory"
    CLAUDE_MEM = "claude-mem"
    MEM0 = "mem0"
    CLAUDE_AI = "claude-ai"
    TEXT = "text"
    CURSOR = "cursor"
    CHATS = "chats"  # with --learn alone


class ImportSource(Protocol):
    """Files that somebody wants imported, read from a folder, an archive or one file.

    Names are relative with ``/``, checked as ``archive`` says: none is absolute, leads out, is
    twice there or differs from another in case alone. Methods block and raise SourceDamagedError.
    """

    def names(self) -> tuple[str, ...]:
        """All regular files, sorted."""
        ...

    def size(self, name: str) -> int:
        """Bytes of one file."""
        ...

    def mtime_ns(self, name: str) -> int:
        """When it was changed last, in ns since 1970; 0 where nobody says."""
        ...

    def read(self, name: str) -> bytes:
        """One file whole."""
        ...


class LeftOutFile(Struct, frozen=True):
    """Something of a source that does not become a memory: where it stands, and why not."""

    name: str
    reason: str


class LeftOutList:
    """What is left out of a source or an archive: the first by name, and how many ``more``."""

    def __init__(self) -> None:
        self.files: list[LeftOutFile] = []
        self.more = 0

    def add(self, name: str, reason: str) -> None:
        """Note one, or count it where there are very many."""
        if len(self.files) < LISTED:
            self.files.append(LeftOutFile(name, reason))
        else:
            self.more += 1


class ProposedMemory(Struct, frozen=True):
    """One file that a source would bring: its path in the memory directory and its bytes.

    ``exact`` says that it comes back as it was (from an export of memd or a memory folder), so that
    odd names and damaged heads pass. ``origin`` is what the source says of whose words it
    holds, for a later export alone; nobody believes it. ``mtime_ns`` is 0 where nobody says.
    """

    path: str
    content: bytes
    mtime_ns: int = 0
    origin: str = ""
    exact: bool = False


class ReadProject(Struct, frozen=True):
    """What a source brings for one project.

    ``id`` and ``name`` are the source's, "" where it knows no projects. ``memories`` include the
    index where the source has one. ``agents`` are memories of sub-agents by scope and agent
    (``project/reviewer``, ``local/reviewer``), ``notes`` session notes by file name. ``history`` is
    for reading alone, oldest first, and ``bodies`` its texts after their SHA-256, read once.
    ``remote`` says which repository it is, as ``ProjectRecord`` does.
    """

    id: str = ""
    name: str = ""
    memories: tuple[ProposedMemory, ...] = ()
    agents: Mapping[str, tuple[ProposedMemory, ...]] = field(default_factory=dict)
    notes: tuple[ProposedMemory, ...] = ()
    history: tuple[PastChange, ...] = ()
    bodies: Iterable[tuple[str, bytes]] = ()
    remote: str = ""


class ChatSession(Struct, frozen=True):
    """One conversation of a chat archive, for ``--learn``; ``id`` is the archive's."""

    id: str
    title: str
    messages: tuple[Message, ...]


class ImportReading(Struct, frozen=True):
    """What a reader made of a source.

    ``agents`` are memories of the user's own sub-agents, by agent, which belong to no project.
    ``diff`` is a text to print and not to apply (``cursor``). ``problems`` are sentences about the
    source as a whole. ``left_out_more`` counts what is left out and not named.
    """

    kind: SourceKind
    projects: tuple[ReadProject, ...] = ()
    agents: Mapping[str, tuple[ProposedMemory, ...]] = field(default_factory=dict)
    left_out: tuple[LeftOutFile, ...] = ()
    talks: tuple[ChatSession, ...] = ()
    diff: str = ""
    problems: tuple[str, ...] = ()
    left_out_more: int = 0


class ExportRequest(Struct, frozen=True):
    """Which projects go to which absolute path, and which parts of them.

    ``whole`` says that these are all projects: then one without files is no part of the archive.
    """

    destination: str
    projects: tuple[KnownProject, ...]
    parts: frozenset[ExportPart] = frozenset()
    whole: bool = False


class ExportedProject(Struct, frozen=True):
    """A project of an archive: its id there, what its directory is called, and its files."""

    id: str
    name: str
    files: int


class ExportResult(Struct, frozen=True):
    """What was written to ``path``: files and their bytes, the manifest and the sums not counted.

    ``left_out`` names what was not taken and why, at most a thousand; ``left_out_more`` counts what
    is not named. ``problems`` are sentences about the archive as a whole.
    """

    path: str
    files: int
    bytes: int
    projects: tuple[ExportedProject, ...]
    left_out: tuple[LeftOutFile, ...] = ()
    left_out_more: int = 0
    problems: tuple[str, ...] = ()

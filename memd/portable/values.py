"""Values of exports and imports: sources, what readers return, requests and results."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from memd.projects.known import KnownProject

TEXT_BYTES = 32 * 1024 * 1024  # limit for all memories of one import together
FILE_BYTES = 32 * 1024 * 1024  # limit for one file of a source, which is read as a whole
LISTED = 1000  # left-out files that are listed by name; further ones are only counted
MEMORIES = 10_000  # limit for one import


class ExportPart(StrEnum):
    """A part of an export besides the private memories, as ``--with`` names it."""

    AGENTS = "agents"
    TEAM = "team"
    NOTES = "notes"
    LOGS = "logs"


class SourceKind(StrEnum):
    """A tool whose files an import can read, as ``--from`` names it."""

    MEMD = "memd"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    TEXT = "text"


class ImportSource(Protocol):
    """The files to import, read from a folder, an archive or one file.

    Names are relative paths with ``/`` and checked: none is absolute or leads out of the source,
    and no two are equal if case is ignored. Methods block and raise Invalid.
    """

    def names(self) -> tuple[str, ...]:
        """Return the names of all regular files, sorted."""
        ...

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def mtime_ns(self, name: str) -> int:
        """Return when a file was last changed, in ns since 1970; 0 if unknown."""
        ...

    def read(self, name: str) -> bytes:
        """Return the whole content of a file."""
        ...


class LeftOutFile(Struct, frozen=True):
    """A file, or a place in one, that is not exported or imported, and the reason."""

    name: str
    reason: str


class LeftOutList:
    """The files that are left out: the first 1,000 by name, and the count of ``more``."""

    def __init__(self) -> None:
        self.files: list[LeftOutFile] = []
        self.more = 0

    def add(self, name: str, reason: str) -> None:
        """List a file with the reason, or only count it if 1,000 are listed already."""
        if len(self.files) < LISTED:
            self.files.append(LeftOutFile(name, reason))
        else:
            self.more += 1


class ReadFile(Struct, frozen=True):
    """A file that an import brings: its path in the memory directory and its bytes.

    ``exact``: the bytes are those of an earlier memory (from an export of memd or a memory folder),
    so odd names and damaged frontmatter are allowed. ``mtime_ns`` is 0 if unknown.
    """

    path: str
    content: bytes
    mtime_ns: int = 0
    exact: bool = False


class ReadProject(Struct, frozen=True):
    """The files of one project in a source.

    ``id`` and ``name`` are the source's, "" if it has no projects. ``memories`` include the index
    if the source has one. ``agents`` are memories of sub-agents by scope and agent
    (``project/reviewer``, ``local/reviewer``), ``notes`` session notes by file name. ``remote``
    identifies the repository, as in ``ProjectRecord``.
    """

    id: str = ""
    name: str = ""
    memories: tuple[ReadFile, ...] = ()
    agents: Mapping[str, tuple[ReadFile, ...]] = field(default_factory=dict)
    notes: tuple[ReadFile, ...] = ()
    remote: str = ""


class ImportReading(Struct, frozen=True):
    """What a reader found in a source.

    ``agents`` are memories of the user's own sub-agents, by agent, which belong to no project.
    ``left_out_more`` counts the left-out files that are not named.
    """

    kind: SourceKind
    projects: tuple[ReadProject, ...] = ()
    agents: Mapping[str, tuple[ReadFile, ...]] = field(default_factory=dict)
    left_out: tuple[LeftOutFile, ...] = ()
    left_out_more: int = 0


class ExportRequest(Struct, frozen=True):
    """A request to export projects, with these parts, to an absolute path.

    ``whole``: these are all known projects, so those without files are left out of the archive.
    """

    destination: str
    projects: tuple[KnownProject, ...]
    parts: frozenset[ExportPart] = frozenset()
    whole: bool = False


class ExportedProject(Struct, frozen=True):
    """A project of an archive: its id there, the name of its directory, and its number of files."""

    id: str
    name: str
    files: int


class ExportResult(Struct, frozen=True):
    """The archive written to ``path``: number and bytes of its files, except manifest and sums.

    ``left_out`` names files that were not exported and why, at most a thousand; ``left_out_more``
    counts the others. ``problems`` are sentences about the archive as a whole.
    """

    path: str
    files: int
    bytes: int
    projects: tuple[ExportedProject, ...]
    left_out: tuple[LeftOutFile, ...] = ()
    left_out_more: int = 0
    problems: tuple[str, ...] = ()

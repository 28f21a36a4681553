"""The nouns that several rooms share. All are immutable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import msgspec


class MemoryType(StrEnum):
    """The four types of a memory."""

    USER = "user"
    FEEDBACK = "feedback"
    PROJECT = "project"
    REFERENCE = "reference"


# What a person is and wants: no model rewords or writes these on its own.
PERSONAL = (MemoryType.USER, MemoryType.FEEDBACK)

# Whose words a memory holds, the least trusted first. The first four never lose their mark.
OUTSIDE, AGENT, IMPORT, TEAM_MATE, ASSISTANT, PERSON = (
    "outside",
    "agent",  # another agent's, in a message
    "import",
    "team",
    "assistant",
    "user",
)
ORIGINS = (OUTSIDE, AGENT, IMPORT, TEAM_MATE, ASSISTANT, PERSON)
FOREIGN = ORIGINS[:4]


def least_trusted(*origins: str) -> str:
    """Return the least trusted of some origins, "" where none of them is known."""
    return min(filter(ORIGINS.__contains__, origins), key=ORIGINS.index, default="")


class Scope(StrEnum):
    """Who shares a memory."""

    PRIVATE = "private"
    TEAM = "team"


class Actor(StrEnum):
    """Who made a change."""

    CLIENT = "client"
    EXTRACT = "extract"
    DREAM = "dream"
    TEAM = "team"
    ASSISTANT = "assistant"  # with tools of its own, not through memd
    EXTERNAL = "external"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Project:
    """Where a client's working directory keeps its memories, and whether it does.

    ``root`` is the canonical git root or the working directory. ``source`` is the setting that
    chose ``memory_dir``. ``transcripts`` holds one folder of transcripts per working directory.
    ``client_dir`` is the directory that Claude Code loads by itself, "" where it loads none.
    ``readable`` is the folder that a model may look into: the root, unless that is the home.
    ``compacts`` says that Claude Code compacts its conversations there by itself. ``reason`` says
    why memory is not ``enabled``, ``problems`` which paths were refused, in sentences.
    """

    cwd: str
    root: str
    memory_dir: str
    source: str
    transcripts: str
    enabled: bool
    reason: str = ""
    problems: tuple[str, ...] = ()
    client_dir: str = ""
    readable: str = ""
    compacts: bool = True


class Header(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the catalogue knows of one memory, read from its first 30 lines.

    ``path`` is relative to the memory directory with ``/``. ``damaged`` says that its frontmatter
    did not parse. ``origin`` is one of ``ORIGINS``, "" where the file names none. There may be
    100,000 of these, so they are as small as Python objects get.
    """

    path: str
    name: str
    description: str
    type: MemoryType | None
    mtime_ns: int
    size: int
    damaged: bool
    inode: int
    origin: str = ""

    @property
    def fingerprint(self) -> tuple[int, int, int]:
        """What changes whenever the file does: (inode, mtime in ns, size)."""
        return (self.inode, self.mtime_ns, self.size)


def newest_first(header: Header) -> tuple[int, str]:
    """Return what headers are sorted by: the time of the last change, then the path."""
    return (-header.mtime_ns, header.path)


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One memory read whole: ``content`` is the exact bytes, ``hash`` their SHA-256 in hex.

    ``body`` is the text after the frontmatter (the whole text when there is none).
    """

    header: Header
    content: bytes
    hash: str
    body: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A memory directory at one instant: headers newest first, the raw index or ``None``.

    ``problems`` names what could not be read, one sentence each; it never spoils the rest.
    """

    directory: str
    headers: tuple[Header, ...]
    index: bytes | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The changes of a directory's headers since a mark that its reader had been given.

    ``mark`` is the one to name next time. ``whole``: the old mark is unknown; then ``changed`` are
    all headers, in no order, and any other that the reader knows is gone. ``gone`` are paths,
    ``count`` is the number of memories now, ``problems`` is as in ``Snapshot``.
    """

    directory: str
    mark: int
    whole: bool
    changed: tuple[Header, ...]
    gone: tuple[str, ...]
    count: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a change comes from, as the journal keeps it."""

    actor: Actor
    client: str = ""
    session: str = ""
    model: str = ""
    reason: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The title and the one-line hook of a memory's line in the index."""

    title: str
    hook: str


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file of a change set: its new content, or ``None`` to delete it.

    ``base`` is the SHA-256 of what the writer had read ("" when it expects no file, ``None`` when
    it does not say). ``mtime_ns`` is set where the change must not make the memory look newer.
    ``origin`` is whose words it holds where that is not the origin of the whole change.
    """

    path: str
    content: bytes | None
    base: str | None = None
    mtime_ns: int | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class CursorMove:
    """The extraction cursor of a session, moved together with the memories it accounts for.

    ``message`` is the id of the person's last message that was considered; it tells where memories
    come from and is no part of the place itself.
    """

    session: str
    source: str
    position: int
    marker: str
    message: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job, recorded together with the change that it made."""

    job: str
    state: str
    result: str  # JSON text


@dataclass(frozen=True, slots=True)
class LockTaken:
    """The time of a dream's lock, which stands once the dream's change does.

    ``directory`` is the memory directory as the lock's row names it, ``taken_ns`` when the lock
    was taken, in ns since 1970: the time of the last consolidation from then on.
    """

    directory: str
    taken_ns: int


@dataclass(frozen=True, slots=True)
class ProposalDecided:
    """What a person decided of a dream's proposal: edits of these paths are accepted or rejected.

    ``paths`` is a JSON list; ``state`` is accepted or rejected, with the ``reason`` for that.
    """

    proposal: str
    state: str
    paths: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A statement that may be worth remembering; it is filed with the change set, in its directory.

    ``text`` is a quotation where ``origin`` is ``user``, said ``at`` (seconds since 1970) in the
    ``session``; with another origin it is a model's or a stranger's wording, which only a person
    is ever shown. ``type`` is a guess, ``reason`` why it was not saved; both may be "".
    """

    session: str
    text: str
    at: float
    origin: str
    type: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SuggestionDecided:
    """What became of a suggestion: it is ``taken`` (a memory says it) or ``dismissed``."""

    suggestion: str
    state: str


@dataclass(frozen=True, slots=True)
class TeamMoved:
    """What a pull's change set makes true of a team directory: JSON lists, see ``core/team.py``."""

    bases: str = "[]"
    gone: str = "[]"
    held: str = "[]"
    conflicts: str = "[]"


@dataclass(frozen=True, slots=True)
class Imported:
    """The originals of files that an import wrote, a JSON list; see ``core/imports.py``."""

    files: str = "[]"


_Decided = ProposalDecided | SuggestionDecided
Effect = CursorMove | JobEnd | LockTaken | Suggestion | _Decided | TeamMoved | Imported


@dataclass(frozen=True, slots=True)
class Draft:
    """What a plan wants: edits of files, index lines for new files, and effects.

    The store updates the index itself: afterwards every pointer resolves and every topic has one;
    in a very large directory only topics of this draft get one. ``pointers`` are lines for new
    paths.
    """

    edits: tuple[FileEdit, ...] = ()
    pointers: Mapping[str, Pointer] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()


class Tree(Protocol):
    """A memory directory as a plan sees it, at the instant of the commit."""

    def headers(self) -> tuple[Header, ...]:
        """All memories, newest first."""
        ...

    def read(self, path: str) -> MemoryFile | None:
        """One memory, or ``None`` when there is none; raises what the name rule refuses."""
        ...

    def index(self) -> bytes | None:
        """Return the raw index, or ``None`` when there is none."""
        ...


Plan = Callable[[Tree], Draft]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to one file: ``action`` is created, updated or deleted; hashes or ``None``.

    ``purged`` says that one of the two texts was removed from the history for good.
    """

    path: str
    action: str
    before: str | None
    after: str | None
    purged: bool = False


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit. ``change`` is its id, ``None`` if there was nothing to change.

    ``files`` leaves the index out. ``repeated``: this request id was answered before, and nothing
    was done now. ``merged`` are paths whose text was merged with what others wrote meanwhile.
    ``note`` says why the index does not follow, "" if it does. ``conflicts`` are paths that an undo
    left alone.
    """

    change: str | None
    files: tuple[FileChange, ...] = ()
    repeated: bool = False
    merged: tuple[str, ...] = ()
    note: str = ""
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One applied change set in the history; ``at`` in seconds since 1970."""

    id: str
    at: float
    directory: str
    by: Provenance
    files: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One piece of a conversation, as extraction sees it.

    ``role`` is user or assistant. ``origin`` says whose words these are: ``user``, ``assistant``,
    or a tool's output: ``web``, ``mcp`` (a server's tools) or ``tool`` (any other); ``tool`` then
    names the tool where that is known. ``agent``: what messages of other agents said, of which
    nothing is learnt. ``at`` is seconds since 1970 or ``None``. ``writes`` lists file paths that
    tool calls in it wrote, ``calls`` the assistant's tool calls, a line each, the name first.
    """

    id: str
    role: str
    text: str
    origin: str
    at: float | None = None
    writes: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is on the other end of a connection; known once, passed as a value.

    ``environment`` holds only the few variables that a client forwards and memd goes by.
    """

    connection: int
    uid: int
    pid: int
    client: str = ""
    version: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

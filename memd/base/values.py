"""Values that several rooms share. All are immutable."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field


class MemoryType(StrEnum):
    """The four types of a memory."""

    USER = "user"
    FEEDBACK = "feedback"
    PROJECT = "project"
    REFERENCE = "reference"


# Types about the person and their wishes: no model rewords or writes these on its own.
PERSONAL = (MemoryType.USER, MemoryType.FEEDBACK)

# Whose words a memory holds, the least trusted first. The first four stay marked as foreign.
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
    """Return the least trusted of some origins, "" where none of them is in ``ORIGINS``."""
    known = [origin for origin in origins if origin in ORIGINS]
    return min(known, key=ORIGINS.index, default="")


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


class Project(Struct, frozen=True):
    """The project of a client's working directory: where its memories are, and whether it has any.

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
    """The catalogue's facts about one memory, read from its first 30 lines.

    ``path`` is relative to the memory directory with ``/``. ``damaged`` says that its frontmatter
    did not parse. ``hash`` is the SHA-256 of the file in hex. ``origin`` is one of ``ORIGINS``, ""
    where the file names none. There may be many, so they are as small as Python objects get.
    """

    path: str
    name: str
    description: str
    type: MemoryType | None
    mtime_ns: int
    size: int
    damaged: bool
    hash: str
    origin: str = ""


def newest_first(header: Header) -> tuple[int, str]:
    """Return the sort key of a header: the newest change first, then by path."""
    return (-header.mtime_ns, header.path)


class Reasoned(Struct, frozen=True):
    """A file, and why it is removed, stays as it is or needs a person."""

    path: str
    reason: str


class MemoryFile(Struct, frozen=True):
    """One memory read whole: ``content`` is the exact bytes, ``hash`` their SHA-256 in hex.

    ``start`` is where the body begins: after the frontmatter, if there is one.
    """

    header: Header
    content: bytes
    hash: str
    start: int

    @property
    def body(self) -> str:
        """Return the text of the body."""
        return self.content[self.start :].decode("utf-8", errors="replace")


class Snapshot(Struct, frozen=True):
    """A memory directory at one instant: headers newest first, the raw index or ``None``.

    ``problems`` has a sentence for each file that could not be read; the others are there.
    """

    directory: str
    headers: tuple[Header, ...]
    index: bytes | None
    problems: tuple[str, ...] = ()


class IndexFacts(Struct, frozen=True):
    """The size of the index, and the limit that cut it: ``""``, ``lines`` or ``bytes``."""

    lines: int = 0
    bytes: int = 0
    cut: str = ""


class Provenance(Struct, frozen=True):
    """Who made a change and why, as the journal stores it."""

    actor: Actor
    client: str = ""
    session: str = ""
    model: str = ""
    reason: str = ""
    origin: str = ""


class Pointer(Struct, frozen=True):
    """The title and the one-line hook of a memory's line in the index."""

    title: str
    hook: str


class FileEdit(Struct, frozen=True):
    """One file of a change set: its new content, or ``None`` to delete it.

    ``base`` is the SHA-256 of the text that the writer had read ("" if it expects no file, ``None``
    if it does not check). ``mtime_ns`` is set where the change must not make the memory look newer.
    ``origin`` says whose words it holds, if that differs from the origin of the whole change.
    """

    path: str
    content: bytes | None
    base: str | None = None
    mtime_ns: int | None = None
    origin: str = ""


# The reason of a suggested request to remember what the work itself shows.
SHOWN_ELSEWHERE = "shown_elsewhere"


class Suggestion(Struct, frozen=True):
    """A statement that may be worth remembering; it is stored with the change set's directory.

    With the ``origin`` ``user``, ``text`` is a quotation of the person from the ``session``, ``at``
    seconds since 1970. With another origin the wording is a model's or perhaps another's, and only
    a person is shown it. ``type`` is a guess, ``reason`` why it was not saved, ``corrects`` the
    path of the memory whose value it denies; all three may be "".
    """

    session: str
    text: str
    at: float
    origin: str
    type: str = ""
    reason: str = ""
    corrects: str = ""


class Undid(Struct, frozen=True):
    """The numbers of the first and the last change of the directory that an undo takes back."""

    first: int
    last: int

    def __str__(self) -> str:
        """Return the ids of the changes in words: c4, or c2 to c4."""
        return f"c{self.first}" if self.first == self.last else f"c{self.first} to c{self.last}"


# Makes another fact true together with a change, in its transaction. It takes the transaction's
# cursor (``state/database.py``) and the change's id, ``None`` if no file changed.
Effect = Callable[[Any, str | None], None]


class Draft(Struct, frozen=True):
    """The changes that a plan requests: edits of files, index lines for new files, and effects.

    The store updates the index itself: afterwards each line names a file and each memory has a
    line; in a very large directory only memories of this draft get one. ``pointers`` are the lines
    for new paths.
    """

    edits: tuple[FileEdit, ...] = ()
    pointers: Mapping[str, Pointer] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    transcript: str = ""  # the path of the conversation that the memories are from
    message: str = ""  # the id of the person's last message in it
    by_person: bool = False  # the person saves the texts, so they are theirs, whoever wrote them
    # Checks the texts of an import: path, text before, text. Whoever made them wrote their origin
    # into them; names and sizes are those that files of a person may have, and there may be 10,000.
    check_import: Callable[[str, bytes | None, bytes], None] | None = None
    restores: bool = False  # the texts were in this directory before, so they are not checked
    modes: Mapping[str, int | None] = field(default_factory=dict)  # by path: of restored files
    exact_index: bool = False  # the index of the draft is taken byte by byte
    mend_index: bool = False  # the index is checked even if nothing else changes
    drop_dangling: bool = False  # lines to files that never existed go, too
    conflicts: tuple[str, ...] = ()  # paths that the draft leaves alone
    merged: tuple[str, ...] = ()  # paths whose text was merged with newer work
    undid: tuple[Undid, ...] = ()  # the changes that this one takes back


class Tree(Protocol):
    """A memory directory at the time of the commit, which a plan can read."""

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


class FileChange(Struct, frozen=True):
    """What happened to one file: ``action`` is created, updated or deleted.

    ``before`` and ``after`` are the hashes of its texts, ``None`` where there was no file.
    ``purged`` says that one of the two texts was removed from the history for good.
    """

    path: str
    action: str
    before: str | None
    after: str | None
    purged: bool = False


class CommitResult(Struct, frozen=True):
    """The result of a commit. ``change`` is its id, ``None`` if there was nothing to change.

    ``files`` leaves the index out. ``repeated`` says that this request id was answered before, so
    that nothing was done now. ``merged`` are paths whose text was merged with changes that others
    made meanwhile. ``note`` says why the index was not updated, or is "". ``conflicts`` are paths
    that an undo left alone. ``undone`` says which changes an undo takes back, or is "".
    """

    change: str | None
    files: tuple[FileChange, ...] = ()
    repeated: bool = False
    merged: tuple[str, ...] = ()
    note: str = ""
    conflicts: tuple[str, ...] = ()
    undone: str = ""


class Change(Struct, frozen=True):
    """One applied change set in the history; ``at`` in seconds since 1970."""

    id: str
    at: float
    directory: str
    by: Provenance
    files: tuple[FileChange, ...]


class Message(Struct, frozen=True):
    """One message or tool result of a conversation, as extraction reads it.

    ``role`` is user or assistant. ``origin`` says whose words these are: ``user``, ``assistant``,
    ``agent`` (a message of another agent, from which nothing is learnt), or a tool's output:
    ``web``, ``mcp`` (a server's tools) or ``tool`` (any other). ``tool`` is the tool's name, if
    known. ``at`` is seconds since 1970 or ``None``. ``writes`` are file paths that tool calls in it
    wrote, ``calls`` the assistant's tool calls, a line each, the name first.
    """

    id: str
    role: str
    text: str
    origin: str
    at: float | None = None
    writes: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    tool: str = ""


class Caller(Struct, frozen=True):
    """The client and the process at the other end of a connection.

    ``environment`` has only the few variables that a client forwards and memd uses.
    """

    connection: int
    uid: int
    pid: int
    client: str = ""
    version: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

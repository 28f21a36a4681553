"""What a dream wants, and what became of every memory, as values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memd.agent.proposal import SourceText
from memd.core.text import one_line
from memd.core.values import FileEdit
from memd.documents import secrets

QUOTED = 120  # characters of a sentence that a problem names
LISTED = 100  # files in a report that need a person; beyond, that has other worries
SHOWN = 200  # characters of a sentence that a report shows
DAMAGED = "its frontmatter does not parse"


@dataclass(frozen=True, slots=True)
class Merge:
    """A memory that went into another one; in what a dream wants, a claim that it did."""

    into: str
    source: str


@dataclass(frozen=True, slots=True)
class Removal:
    """A memory that is gone, and the reason that was given."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """A file that stays as it is although the dream wanted otherwise, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Question:
    """Two memories of which a person should decide: they contradict, or repeat, each other.

    ``one`` and ``two`` are the statements in which they do.
    """

    paths: tuple[str, str]
    kind: str
    one: str
    two: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it was: its bytes, and when it changed last in seconds since 1970."""

    content: bytes
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a dream wants to do, with what it says of it.

    ``reasons`` maps what would go to why. ``left`` are files that it keeps its hands off since
    somebody changed them meanwhile; ``listed`` are files that it cannot help, such as damaged
    ones, each with a sentence. ``sources`` are the logs and transcripts that the run has read.
    """

    edits: tuple[FileEdit, ...] = ()
    merges: tuple[Merge, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    left: tuple[Left, ...] = ()
    listed: tuple[Left, ...] = ()
    sources: tuple[SourceText, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """What a dream does, and what is kept back for a person.

    ``edits`` are what may stand, ``kept_back`` what may not, for its ``problems``, each a sentence.
    ``created`` and ``changed`` leave the index out; what is neither there nor in ``merged`` or
    ``removed`` is as it was. ``secrets`` are paths whose new text must be kept nowhere. ``lost`` is
    how many telling words each changed memory has lost.
    """

    edits: tuple[FileEdit, ...] = ()
    kept_back: tuple[FileEdit, ...] = ()
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    merged: tuple[Merge, ...] = ()
    removed: tuple[Removal, ...] = ()
    problems: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DirectorySize:
    """How much a memory directory holds: memories, their bytes, the index's lines and bytes."""

    memories: int = 0
    memory_bytes: int = 0
    index_lines: int = 0
    index_bytes: int = 0


def in_the_end(into: Mapping[str, str], path: str) -> str:
    """Return where a memory is by what went ``into`` what: who took it in may have gone as well."""
    passed = {path}
    while path in into and into[path] not in passed:
        path = into[path]
        passed.add(path)
    return path


def quoted(text: str, characters: int = QUOTED) -> str:
    """Return a sentence as it may be shown: on one line, cut, with no credential in it."""
    return one_line(secrets.scrub(text), characters)

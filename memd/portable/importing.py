"""What an import does in worker threads: reading a source, and what the state file keeps of it.

Everything here blocks.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memd.core.errors import MemdError
from memd.core.imports import imported_from
from memd.core.names import printable
from memd.core.text import decode
from memd.core.values import Actor, Header, MemoryFile, Project, Provenance
from memd.documents import secrets
from memd.portable import kinds, memd_archive
from memd.portable.archive import open_source
from memd.portable.errors import KindUnknownError, SourceRefusedError
from memd.portable.plan import ImportPlan, KnownFiles
from memd.portable.values import (
    ImportReading,
    ImportSource,
    LeftOutFile,
    ProposedMemory,
    SourceKind,
)
from memd.state.changes import Journal, Proposal, ProposalTable, fits
from memd.state.tables import ImportTable

_SHOWN = 5
_NO_MEMORIES = "conversations are no memories; with --learn memd learns from them"
_NOTES = ".md"
_HAS_NOTES = "the session has notes here"
_CREDENTIAL = "it looks as if it held a credential"


class ImportRequest(Struct, frozen=True):
    """What is imported: an absolute path, of a ``kind`` that is recognised where it is ``None``.

    Without ``accept`` memories become proposals, and nothing else is taken. ``client`` asks for it.
    """

    source: str
    kind: SourceKind | None = None
    dry_run: bool = False
    accept: bool = False
    learn: bool = False
    client: str = ""


class ImportTarget(Struct, frozen=True):
    """Where a project of a source goes, with what its client forwards of its environment.

    ``joined`` says that it joined a team.
    """

    project: Project
    environment: Mapping[str, str]
    joined: bool = False


class ImportPorts(Struct, frozen=True):
    """What imports are given from outside; all of it is called in worker threads.

    ``staging`` is a folder for what is unpacked. ``restore_notes`` takes a project, a session, the
    bytes of its notes and their time in ns, and says whether the session had none. ``checkpoint``
    lets prompts go first.
    """

    staging: str
    restore_notes: Callable[[Project, str, bytes, int], bool]
    checkpoint: Callable[[], None] = lambda: None


class ImportTables(Struct, frozen=True):
    """What the state file keeps for imports."""

    journal: Journal
    originals: ImportTable
    proposals: ProposalTable


class EmptyTree:
    """A memory directory that is not there yet, as a plan sees it."""

    def headers(self) -> tuple[Header, ...]:
        """No memory."""
        return ()

    def read(self, _: str) -> MemoryFile | None:
        """No file."""
        return None

    def index(self) -> bytes | None:
        """No index."""
        return None


@contextmanager
def read_source(request: ImportRequest, staging: str) -> Iterator[ImportReading]:
    """Hold a source open and yield what its reader makes of it.

    ``staging`` is a folder for what has to be unpacked. Raises what ``open_source`` and the readers
    raise, KindUnknownError, and SourceRefusedError for conversations that nobody is to learn from.
    """
    with open_source(request.source, staging) as source:
        kind = request.kind or kinds.recognised(source)
        if kind is None:
            raise KindUnknownError(request.source, _seen(source))
        if kind is SourceKind.CHATS and not request.learn:
            raise SourceRefusedError(kind, _NO_MEMORIES)
        read = memd_archive.read if kind is SourceKind.MEMD else partial(kinds.read, kind)
        reading = read(source)
        left, more = source.left_out, reading.left_out_more
        left_out = (*left.files, *reading.left_out)
        yield replace(reading, left_out=left_out, left_out_more=more + left.more)


def provenance(request: ImportRequest, kind: SourceKind) -> Provenance:
    """Return where the changes of an import come from."""
    name = printable(request.source.rstrip("/").rpartition("/")[2])
    if secrets.find(name):
        name = "a file"
    reason = f"import of {name} ({kind})"
    return Provenance(Actor.CLIENT, request.client, reason=reason, origin=imported_from(kind))


def remember(table: ImportTable, directory: str, plan: ImportPlan, at: float) -> None:
    """Keep what the state file is to know of a plan's files. Raises StateUnusableError."""
    originals = [file.original for file in plan.files if file.original]
    bodies = {
        original.exported: file.exported
        for file in plan.files
        if (original := file.original) and original.exported != original.live
    }
    if originals:
        table.record(directory, originals, bodies, at)


def propose(
    tables: ImportTables, directory: str, plan: ImportPlan, by: Provenance, at: float
) -> str:
    """Keep a plan as a proposal and return its id, "" where it is too large for one.

    Raises StateUnusableError.
    """
    edits = tuple(file.proposed for file in plan.files)
    if not fits(edits, by.origin):
        return ""
    wanted = Proposal("", directory, at, said=by.reason, edits=edits)
    proposal = tables.proposals.propose(wanted, by)
    remember(tables.originals, directory, plan, at)
    return proposal


def known_files(tables: ImportTables, directory: str) -> KnownFiles:
    """Return what the state file knows of a directory."""
    real, journal = os.path.realpath(directory), tables.journal
    originals = tables.originals.of_directory(real)
    return KnownFiles(originals, partial(journal.versions, real), journal.blob)


def restore_notes(
    notes: Sequence[ProposedMemory], restore: Callable[[str, bytes, int], bool], now_ns: int
) -> tuple[int, tuple[LeftOutFile, ...]]:
    """Put session notes where a session has none; return how many, and what stays out.

    ``restore`` takes a session, the bytes and their time, and says whether it had none.
    A time of the future becomes ``now_ns``.
    """
    count, left = 0, []
    for file in notes:
        place = f"notes/{file.path}"
        session = file.path.removesuffix(_NOTES)
        if secrets.find(decode(file.content)):
            left.append(LeftOutFile(place, _CREDENTIAL))
            continue
        try:
            if restore(session, file.content, min(file.mtime_ns, now_ns)):
                count += 1
            else:
                left.append(LeftOutFile(place, _HAS_NOTES))
        except MemdError as error:
            left.append(LeftOutFile(place, error.sentence))
    return count, tuple(left)


def _seen(source: ImportSource) -> str:
    """Return what stands in a source that nobody knows."""
    names = source.names()
    if not names:
        return "there is no file in it"
    shown = ", ".join(map(printable, names[:_SHOWN]))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"nobody knows what this is: {shown}{more}"

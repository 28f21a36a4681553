"""Read the source of an import, and store proposals and original texts in the state file.

All functions block: call them in worker threads.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memd.core.errors import MemdError
from memd.core.imports import Original, imported_from
from memd.core.names import printable
from memd.core.text import decode
from memd.core.values import Actor, Header, MemoryFile, Project, ProposalDecided, Provenance
from memd.documents import secrets
from memd.portable.errors import KindUnknownError, SourceMissingError, SourceRefusedError
from memd.portable.plan import ImportPlan, KnownFiles
from memd.portable.values import (
    ImportReading,
    ImportSource,
    LeftOutFile,
    ProposedMemory,
    SourceKind,
)
from memd.state.changes import (
    ACCEPTED,
    OPEN,
    Journal,
    Proposal,
    ProposalTable,
    can_store_edits,
)
from memd.state.tables import ImportTable

_SHOWN_NAMES = 5  # that the error for an unknown source lists
_NO_MEMORIES = "conversations are no memories; with --learn memd learns from them"
_IS_EMPTY = "it is empty"
_NO_FILE = "there is no file in it that an import may read"
_NOTES_SUFFIX = ".md"
_HAS_NOTES = "the session has notes here"
_LOOKS_LIKE_CREDENTIAL = "it looks as if it held a credential"


class ImportRequest(Struct, frozen=True):
    """A request to import a source: its absolute path and kind (``None``: recognise it).

    Without ``accept``, memories become proposals and all else is left out. With ``dry_run`` nothing
    is changed. ``learn`` allows conversations, from which memd learns. ``client`` is the name of
    the client that requests the import.
    """

    source: str
    kind: SourceKind | None = None
    dry_run: bool = False
    accept: bool = False
    learn: bool = False
    client: str = ""


class ImportTarget(Struct, frozen=True):
    """The project into which a source's project is imported, with its client's environment.

    ``joined`` says whether the project joined a team.
    """

    project: Project
    environment: Mapping[str, str]
    joined: bool = False


class ImportPorts(Struct, frozen=True):
    """Functions of other rooms that imports call in worker threads.

    ``staging`` is the folder for unpacked archives. ``restore_notes`` writes a session's notes and
    returns ``False`` if it has notes already; it takes a project, a session, the notes' bytes and
    their time in ns. ``checkpoint`` waits while a prompt is answered.
    """

    staging: str
    restore_notes: Callable[[Project, str, bytes, int], bool]
    checkpoint: Callable[[], None] = lambda: None


class ImportTables(Struct, frozen=True):
    """The tables of the state file that imports use."""

    journal: Journal
    originals: ImportTable
    proposals: ProposalTable


class EmptyTree:
    """The tree of a memory directory that does not exist yet."""

    def headers(self) -> tuple[Header, ...]:
        """Return no headers."""
        return ()

    def read(self, _: str) -> MemoryFile | None:
        """Return ``None``: there is no file."""
        return None

    def index(self) -> bytes | None:
        """Return ``None``: there is no index."""
        return None


@contextmanager
def read_source(request: ImportRequest, staging: str) -> Iterator[ImportReading]:
    """Open a source, read it with the reader of its kind, and yield the result.

    ``staging`` is the folder for unpacked archives. The source stays open, since texts of its
    history are read later. Raises the errors of ``open_source`` and the readers, KindUnknownError,
    SourceMissingError, and SourceRefusedError for conversations without ``learn``.
    """
    # The readers of all kinds are 20 modules, which only a daemon that imports needs.
    from memd.portable import kinds, memd_archive  # noqa: PLC0415
    from memd.portable.archive import open_source  # noqa: PLC0415

    with open_source(request.source, staging) as source:
        names = source.names()
        if names and not any(map(source.size, names)):
            raise SourceMissingError(request.source, _IS_EMPTY)
        kind = request.kind or kinds.kind_of(source)
        if kind is None and not names:
            raise SourceMissingError(request.source, _NO_FILE)
        if kind is None:
            raise KindUnknownError(request.source, _describe_unknown(source))
        if kind is SourceKind.CHATS and not request.learn:
            raise SourceRefusedError(kind, _NO_MEMORIES)
        is_export = kind is SourceKind.MEMD
        reading = memd_archive.read(source) if is_export else kinds.read(kind, source)
        left_out = (*source.left_out.files, *reading.left_out)
        more = source.left_out.more + reading.left_out_more
        yield replace(reading, left_out=left_out, left_out_more=more)


def provenance(request: ImportRequest, kind: SourceKind) -> Provenance:
    """Return the provenance that the history records for an import's changes.

    A source's name that looks like a credential is not recorded.
    """
    name = printable(request.source.rstrip("/").rpartition("/")[2])
    if secrets.find(name):
        name = "a file"
    reason = f"import of {name} ({kind})"
    return Provenance(Actor.CLIENT, request.client, reason=reason, origin=imported_from(kind))


def remember_originals(table: ImportTable, directory: str, plan: ImportPlan, at: float) -> None:
    """Store the original texts of a plan's files, so that later imports recognise them.

    Texts that are written unchanged are not stored twice. Raises StateUnusableError.
    """
    originals: list[Original] = []
    bodies: dict[str, bytes] = {}  # by their hash
    for file in plan.files:
        original = file.original
        if original:
            originals.append(original)
            if original.exported != original.live:
                bodies[original.exported] = file.exported
    if originals:
        table.record(directory, originals, bodies, at)


def store_proposal(
    tables: ImportTables, directory: str, plan: ImportPlan, by: Provenance, at: float
) -> str:
    """Store a plan as a proposal and return its id, "" if it is too large for one.

    Raises StateUnusableError.
    """
    edits = tuple(file.proposed for file in plan.files)
    if not can_store_edits(edits, by.origin):
        return ""
    proposal = Proposal("", directory, at, said=by.reason, edits=edits)
    proposal_id = tables.proposals.propose(proposal, by)
    remember_originals(tables.originals, directory, plan, at)
    return proposal_id


def accepted_proposals(
    tables: ImportTables, directory: str, plan: ImportPlan
) -> tuple[ProposalDecided, ...]:
    """Return the decisions that an accepted plan makes about open proposals of imports.

    A file that is proposed as the plan brings it needs no second decision. Raises
    StateUnusableError.
    """
    texts = {file.edit.path: file.edit.content for file in plan.files}
    decided: list[ProposalDecided] = []
    for proposal in tables.proposals.of_directory(directory) if texts else ():
        edits = (proposal.edits or ()) if proposal.imports else ()
        paths = [
            edit.path
            for edit in edits
            if edit.state == OPEN and edit.content == texts.get(edit.path)
        ]
        if paths:
            decided.append(ProposalDecided(proposal.id, ACCEPTED, json.dumps(paths)))
    return tuple(decided)


def known_files(tables: ImportTables, directory: str) -> KnownFiles:
    """Return the history of a directory in the state file: originals and earlier versions."""
    real, journal = os.path.realpath(directory), tables.journal
    originals = tables.originals.of_directory(real)
    return KnownFiles(originals, partial(journal.versions, real), journal.blob)


def restore_notes(
    notes: Sequence[ProposedMemory], restore: Callable[[str, bytes, int], bool], now_ns: int
) -> tuple[int, tuple[LeftOutFile, ...]]:
    """Write notes of sessions that have none; return how many were written, and those left out.

    ``restore`` takes a session, the bytes and their time in ns, and returns ``False`` if the
    session has notes. A time in the future becomes ``now_ns``.
    """
    count, left_out = 0, list[LeftOutFile]()
    for file in notes:
        place = f"notes/{file.path}"
        session = file.path.removesuffix(_NOTES_SUFFIX)
        if secrets.find(decode(file.content)):
            left_out.append(LeftOutFile(place, _LOOKS_LIKE_CREDENTIAL))
            continue
        try:
            if restore(session, file.content, min(file.mtime_ns, now_ns)):
                count += 1
            else:
                left_out.append(LeftOutFile(place, _HAS_NOTES))
        except MemdError as error:
            left_out.append(LeftOutFile(place, error.sentence))
    return count, tuple(left_out)


def _describe_unknown(source: ImportSource) -> str:
    """Return a sentence that names the first files of a source whose kind is unknown."""
    names = source.names()
    shown = ", ".join(map(printable, names[:_SHOWN_NAMES]))
    more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    return f"nobody knows what this is: {shown}{more}"

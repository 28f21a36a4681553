"""Read the source of an import, and write session notes. Blocks."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import MemdError
from memd.base.imports import imported_from
from memd.base.names import printable
from memd.base.text import decode
from memd.base.values import Actor, Header, MemoryFile, Project, Provenance
from memd.portable.errors import kind_unknown, source_missing
from memd.portable.values import (
    ImportReading,
    ImportSource,
    LeftOutFile,
    ReadFile,
    SourceKind,
)
from memd.projects.known import KnownProject
from memd.store import secret

_SHOWN_NAMES = 5  # that the error for an unknown source lists
_IS_EMPTY = "it is empty"
_NO_FILE = "there is no file in it that an import may read"
_NOTES_SUFFIX = ".md"
_HAS_NOTES = "the session has notes here"
_LOOKS_LIKE_CREDENTIAL = "it looks as if it held a credential"


class ImportRequest(Struct, frozen=True):
    """A request to import a source: its absolute path and kind (``None``: recognise it).

    Without ``accept`` nothing is changed. ``client`` is the name of the client that requests the
    import.
    """

    source: str
    kind: SourceKind | None = None
    accept: bool = False
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
    their time in ns. ``checkpoint`` waits while a prompt is answered. ``known`` returns all
    projects, and ``joined`` says whether a memory directory is a team's.
    """

    staging: str
    restore_notes: Callable[[Project, str, bytes, int], bool]
    checkpoint: Callable[[], None] = lambda: None
    known: Callable[[], tuple[KnownProject, ...]] = tuple
    joined: Callable[[str], bool] = lambda _: False


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


def read_source(request: ImportRequest, staging: str) -> ImportReading:
    """Open a source, read it with the reader of its kind, and return the result.

    ``staging`` is the folder for unpacked archives. Raises the errors of ``open_source`` and the
    readers, Invalid and NotFound.
    """
    # Only a daemon that imports needs the readers, and the modules for archives.
    from memd.portable import kinds, memd_archive  # noqa: PLC0415
    from memd.portable.archive import open_source  # noqa: PLC0415

    with open_source(request.source, staging) as source:
        names = source.names()
        if names and not any(map(source.size, names)):
            raise source_missing(request.source, _IS_EMPTY)
        kind = request.kind or kinds.kind_of(source)
        if kind is None and not names:
            raise source_missing(request.source, _NO_FILE)
        if kind is None:
            raise kind_unknown(request.source, _describe_unknown(source))
        is_export = kind is SourceKind.MEMD
        reading = memd_archive.read(source) if is_export else kinds.read(kind, source)
        left_out = (*source.left_out.files, *reading.left_out)
        more = source.left_out.more + reading.left_out_more
        return replace(reading, left_out=left_out, left_out_more=more)


def provenance(request: ImportRequest, kind: SourceKind) -> Provenance:
    """Return the provenance that the history records for an import's changes.

    A source's name that looks like a credential is not recorded.
    """
    name = printable(request.source.rstrip("/").rpartition("/")[2])
    if secret.find(name):
        name = "a file"
    reason = f"import of {name} ({kind})"
    return Provenance(Actor.CLIENT, request.client, reason=reason, origin=imported_from(kind))


def restore_notes(
    notes: Sequence[ReadFile], restore: Callable[[str, bytes, int], bool], now_ns: int
) -> tuple[int, tuple[LeftOutFile, ...]]:
    """Write notes of sessions that have none; return how many were written, and those left out.

    ``restore`` takes a session, the bytes and their time in ns, and returns ``False`` if the
    session has notes. A time in the future becomes ``now_ns``.
    """
    count, left_out = 0, list[LeftOutFile]()
    for file in notes:
        place = f"notes/{file.path}"
        session = file.path.removesuffix(_NOTES_SUFFIX)
        if secret.find(decode(file.content)):
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

"""Check and read an export of memd (docs/export-format.md). Pure.

Rules of this file
- Nothing is used before every file, and the manifest itself, has the size and the SHA-256 that the
  archive names for it. Every mismatch is an error that names the file.
- Claims of an archive are not trusted: what it says of a memory's origin is passed over.
- The history of archives that earlier versions wrote is checked like all files, and passed over.
"""

import io
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from memd.base.agents import AgentScope
from memd.base.errors import Refused
from memd.base.names import LOGS, check_component
from memd.base.text import sha256
from memd.base.yielding import yield_to_requests
from memd.portable.errors import source_damaged
from memd.portable.intake import ENTRIES
from memd.portable.manifest import (
    MANIFEST,
    SUMS,
    FileRecord,
    Manifest,
    ProjectRecord,
    decode,
    sum_line,
)
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

_HISTORY = "history/"  # where archives of earlier versions have it
_COMMAS = 20  # the most in the manifest for each file, which has six members and a name
_MISSING = "it is not there"
_NOT_IN_MANIFEST = "the manifest does not name it"
_NAMED_TWICE = "the manifest names it twice"
_CHANGED = "its bytes are not those that the manifest names"
_BAD_SUMS = "a line of it is not what the files say"
_TOO_MANY_FILES = "it names too many files"
_BAD_ID = "the manifest has an id that no project may have, or one twice"
_NOT_IMPORTED = "an import does not take this"
_IMPORT_TOO_LARGE = f"one import brings at most {MEMORIES:,} files with {TEXT_BYTES // 1024**2} MiB"


def read(source: ImportSource) -> ImportReading:
    """Return the contents of an export. Raises Invalid and Refused."""
    content = source.read(MANIFEST) if MANIFEST in source.names() else b""
    # Before decoding: a manifest of very many small values would fill the memory.
    if content.count(b"{") > 2 * ENTRIES or content.count(b",") > _COMMAS * ENTRIES:
        raise source_damaged(MANIFEST, _TOO_MANY_FILES)
    manifest, digest = decode(content), sha256(content)
    del content  # it may be long
    records: dict[str, FileRecord] = {}
    for name, record in _named_records(manifest):
        if name in records:
            raise source_damaged(name, _NAMED_TWICE)
        records[name] = record
    _check_files(source, records, digest)
    reader = _Reader(source, records)
    projects = tuple(reader.project(each) for each in manifest.projects)
    agents = reader.folders(f"agents/{AgentScope.USER}/")
    reader.leave_out_unread()
    left_out, more = tuple(reader.left_out.files), reader.left_out.more
    return ImportReading(SourceKind.MEMD, projects, agents, left_out, left_out_more=more)


def _named_records(manifest: Manifest) -> Iterator[tuple[str, FileRecord]]:
    """Yield each file of a manifest with its name in the archive. Raises Invalid."""
    ids = [project.id for project in manifest.projects]
    has_equal_ids = len(set(ids)) < len(ids)
    if has_equal_ids or not all(map(_is_component, ids)):
        raise source_damaged(MANIFEST, _BAD_ID)
    for project in manifest.projects:
        for record in project.files:
            yield f"projects/{project.id}/{record.path}", record
    for record in manifest.files:
        yield record.path, record


def _check_files(source: ImportSource, records: Mapping[str, FileRecord], digest: str) -> None:
    """Raise Invalid if the files of an archive are not those of its manifest.

    ``digest`` is the manifest's SHA-256.
    """
    for name in source.names():
        if name not in records and name not in (MANIFEST, SUMS):
            raise source_damaged(name, _NOT_IN_MANIFEST)
    if len(source.names()) < len(records) + 2:  # the manifest and the sums have no record
        for name in sorted({MANIFEST, SUMS, *records}.difference(source.names())):
            raise source_damaged(name, _MISSING)
    lines = io.BytesIO(source.read(SUMS))
    for line, expected_line in zip_longest(lines, _expected_sums(records, digest)):
        if line != expected_line:
            raise source_damaged(SUMS, _BAD_SUMS)
    for name, record in records.items():
        yield_to_requests()
        size = source.size(name)
        if size != record.bytes or sha256(source.read(name)) != record.sha256:
            raise source_damaged(name, _CHANGED)


def _expected_sums(records: Mapping[str, FileRecord], digest: str) -> Iterator[bytes]:
    """Yield the lines that ``SHA256SUMS`` must have; ``digest`` is the manifest's SHA-256."""
    yield sum_line(digest, MANIFEST)
    for name in sorted(records, key=str.encode):
        yield sum_line(records[name].sha256, name)


class _Reader:
    """Reads the files of a checked archive, each once, and lists those that are left out.

    ``records`` are its files by name.
    """

    def __init__(self, source: ImportSource, records: Mapping[str, FileRecord]) -> None:
        self.left_out = LeftOutList()
        self._source = source
        self._records = records
        self._unread = dict.fromkeys(sorted(records))  # the names of the unread files, in order
        self._file_count = self._file_bytes = 0  # of the memories and notes that were read

    def project(self, project: ProjectRecord) -> ReadProject:
        """Return the memories, agents and notes of one project."""
        folder = f"projects/{project.id}"
        agents: dict[str, tuple[ReadFile, ...]] = {}
        for scope in (AgentScope.PROJECT, AgentScope.LOCAL):
            agents_of_scope = self.folders(f"{folder}/agents/{scope}/")
            agents |= {f"{scope}/{agent}": files for agent, files in agents_of_scope.items()}
        memories = tuple(self._files(f"{folder}/memory/"))
        notes = tuple(self._files(f"{folder}/notes/"))
        return ReadProject(project.id, project.name, memories, agents, notes, project.remote)

    def folders(self, place: str) -> dict[str, tuple[ReadFile, ...]]:
        """Return the files of each folder below ``place`` whose name an agent can have."""
        paths = [name.removeprefix(place) for name in self._unread if name.startswith(place)]
        folders = {path.partition("/")[0] for path in paths if "/" in path}
        return {
            folder: tuple(self._files(f"{place}{folder}/"))
            for folder in sorted(folders)
            if _is_component(folder)
        }

    def leave_out_unread(self) -> None:
        """Leave out all files that were not read, except history."""
        for name in self._unread:
            if not name.startswith(_HISTORY):
                self.left_out.add(name, _NOT_IMPORTED)
        self._unread.clear()

    def _files(self, place: str) -> Iterator[ReadFile]:
        """Yield the files below ``place``, with their paths there, but no logs.

        Files above the limits of an import are left out.
        """
        for name in [name for name in self._unread if name.startswith(place)]:
            path = name.removeprefix(place)
            if path.startswith(f"{LOGS}/"):
                continue
            del self._unread[name]
            record = self._records[name]
            self._file_count += 1
            self._file_bytes += record.bytes
            if self._file_count > MEMORIES or self._file_bytes > TEXT_BYTES:
                self.left_out.add(name, _IMPORT_TOO_LARGE)
                continue
            content, mtime_ns = self._source.read(name), max(0, record.mtime_ns)
            yield ReadFile(path, content, mtime_ns, exact=True)


def _is_component(name: str) -> bool:
    """Return whether a text can be the name of one file or folder."""
    try:
        return check_component(name) == name
    except Refused:
        return False

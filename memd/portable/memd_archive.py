"""Check and read an export of memd (docs/export-format.md). Pure.

Rules of this file
- Nothing is used before every file, and the manifest itself, has the size and the SHA-256 that the
  archive names for it. Every mismatch is an error that names the file.
- Claims of an archive are not trusted: the origin of a memory is only kept for a later export, and
  its history is only shown.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

import msgspec
from msgspec.structs import replace

from memd.core import limits
from memd.core.agents import AgentScope
from memd.core.imports import PastChange
from memd.core.names import LOGS, NameRefusedError, check_component, check_odd_name
from memd.core.text import decode as decoded
from memd.core.text import sha256
from memd.core.yielding import yield_to_requests
from memd.documents import secrets
from memd.portable.errors import SourceDamagedError
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
    ProposedMemory,
    ReadProject,
    SourceKind,
)

_HISTORY_BYTES = 16 * 1024 * 1024  # of the changes of one project
_BLOBS = "history/blobs/"
_COMMAS = 20  # the most in the manifest for each file, which has six members and a name
_LATEST = 253_402_214_400.0  # the last day of the year 9999: later times have no ISO form
_MISSING = "it is not there"
_UNNAMED = "the manifest does not name it"
_TWICE = "the manifest names it twice"
_CHANGED = "its bytes are not those that the manifest names"
_SUMS = "a line of it is not what the files say"
_MANY = "it names too many files"
_NO_ID = "the manifest has an id that no project may have, or one twice"
_NO_HISTORY = "it is no list of changes"
_LARGE = f"it has more than {_HISTORY_BYTES // 1024**2} MiB"
_ELSEWHERE = "an import does not take this"
_TOO_MUCH = f"one import brings at most {MEMORIES:,} files with {TEXT_BYTES // 1024**2} MiB"
_CREDENTIAL = "it looks as if it held a credential"
_HASH = re.compile(r"[0-9a-f]{64}")
_change = msgspec.json.Decoder(PastChange)


def read(source: ImportSource) -> ImportReading:
    """Return the contents of an export. Raises SourceDamagedError and VersionTooNewError."""
    content = source.read(MANIFEST) if MANIFEST in source.names() else b""
    # Before decoding: a manifest of very many small values would fill the memory.
    if content.count(b"{") > 2 * ENTRIES or content.count(b",") > _COMMAS * ENTRIES:
        raise SourceDamagedError(MANIFEST, _MANY)
    manifest, digest = decode(content), sha256(content)
    del content  # it may be long
    records: dict[str, FileRecord] = {}
    for name, record in _named_records(manifest):
        if name in records:
            raise SourceDamagedError(name, _TWICE)
        records[name] = record
    _check_files(source, records, digest)
    reader = _Reader(source, records)
    projects = tuple(reader.project(each) for each in manifest.projects)
    agents = reader.folders(f"agents/{AgentScope.USER}/")
    reader.leave_unread()
    left = tuple(reader.left.files)
    return ImportReading(SourceKind.MEMD, projects, agents, left, left_out_more=reader.left.more)


def _named_records(manifest: Manifest) -> Iterator[tuple[str, FileRecord]]:
    """Yield each file of a manifest with its name in the archive. Raises SourceDamagedError."""
    ids = [project.id for project in manifest.projects]
    if len({*ids}) < len(ids) or not all(map(_is_component, ids)):
        raise SourceDamagedError(MANIFEST, _NO_ID)
    for project in manifest.projects:
        for record in project.files:
            yield f"projects/{project.id}/{record.path}", record
    for record in manifest.files:
        yield record.path, record


def _check_files(source: ImportSource, records: Mapping[str, FileRecord], manifest: str) -> None:
    """Raise SourceDamagedError if the files of an archive are not those of its manifest.

    ``manifest`` is the manifest's SHA-256.
    """
    for name in source.names():
        if name not in records and name not in (MANIFEST, SUMS):
            raise SourceDamagedError(name, _UNNAMED)
    if len(source.names()) < len(records) + 2:  # the manifest and the sums have no record
        for name in sorted({MANIFEST, SUMS, *records}.difference(source.names())):
            raise SourceDamagedError(name, _MISSING)
    lines = io.BytesIO(source.read(SUMS))
    if any(a != b for a, b in zip_longest(lines, _expected_sums(records, manifest))):
        raise SourceDamagedError(SUMS, _SUMS)
    for name, record in records.items():
        yield_to_requests()
        size = source.size(name)
        if size != record.bytes or sha256(source.read(name)) != record.sha256:
            raise SourceDamagedError(name, _CHANGED)


def _expected_sums(records: Mapping[str, FileRecord], manifest: str) -> Iterator[bytes]:
    """Yield the lines that the archive's ``SHA256SUMS`` must have."""
    yield sum_line(manifest, MANIFEST)
    for name in sorted(records, key=str.encode):
        yield sum_line(records[name].sha256, name)


class _Reader:
    """Reads the files of a checked archive, each once, and lists those that are left out.

    ``records`` are its files by name.
    """

    def __init__(self, source: ImportSource, records: Mapping[str, FileRecord]) -> None:
        self.left = LeftOutList()
        self._source = source
        self._records = records
        self._unread = dict.fromkeys(sorted(records))  # names, in order
        self._count = self._bytes = 0

    def project(self, project: ProjectRecord) -> ReadProject:
        """Return the memories, agents, notes and history of one project."""
        folder = f"projects/{project.id}"
        agents: dict[str, tuple[ProposedMemory, ...]] = {}
        for scope in (AgentScope.PROJECT, AgentScope.LOCAL):
            inside = self.folders(f"{folder}/agents/{scope}/")
            agents |= {f"{scope}/{agent}": files for agent, files in inside.items()}
        history = tuple(self._history(f"history/{project.id}.jsonl"))
        hashes = {key for change in history for f in change.files for key in (f.before, f.after)}
        return ReadProject(
            project.id,
            project.name,
            tuple(self._files(f"{folder}/memory/")),
            agents,
            tuple(self._files(f"{folder}/notes/")),
            history,
            # The list checks all texts now; the generator reads them one by one when stored.
            ((key, self._source.read(f"{_BLOBS}{key}")) for key in [*self._safe_texts(hashes)]),
            project.remote,
        )

    def folders(self, place: str) -> dict[str, tuple[ProposedMemory, ...]]:
        """Return the files of each folder below ``place`` whose name an agent can have."""
        inside = (name.removeprefix(place) for name in self._unread if name.startswith(place))
        names = {name.partition("/")[0] for name in inside if "/" in name}
        return {
            name: tuple(self._files(f"{place}{name}/"))
            for name in sorted(names)
            if _is_component(name)
        }

    def leave_unread(self) -> None:
        """Leave out all files that were not read."""
        for name in self._unread:
            self.left.add(name, _ELSEWHERE)
        self._unread.clear()

    def _files(self, place: str) -> Iterator[ProposedMemory]:
        """Yield the files below ``place``, with their paths there, but no logs.

        Files above the limits of an import are left out.
        """
        for name in [name for name in self._unread if name.startswith(place)]:
            path = name.removeprefix(place)
            if path.startswith(f"{LOGS}/"):
                continue
            del self._unread[name]
            record = self._records[name]
            self._count, self._bytes = self._count + 1, self._bytes + record.bytes
            if self._count > MEMORIES or self._bytes > TEXT_BYTES:
                self.left.add(name, _TOO_MUCH)
                continue
            content, mtime_ns = self._source.read(name), max(0, record.mtime_ns)
            yield ProposedMemory(path, content, mtime_ns, record.origin, exact=True)

    def _history(self, name: str) -> Iterator[PastChange]:
        """Yield the changes in a file of JSON lines, oldest first. Raises SourceDamagedError.

        Changes whose words look like a credential are left out.
        """
        if name not in self._unread:
            return
        del self._unread[name]
        if self._source.size(name) > _HISTORY_BYTES:
            self.left.add(name, _LARGE)
            return
        for number, line in enumerate(self._source.read(name).splitlines(), 1):
            yield_to_requests()
            try:
                change = _change.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
                raise SourceDamagedError(name, _NO_HISTORY) from error
            if not 0 <= change.at < _LATEST:
                raise SourceDamagedError(name, _NO_HISTORY)
            if secrets.find(change.words):
                self.left.add(f"{name}, line {number}", _CREDENTIAL)
                continue
            files = tuple(file for file in change.files if _is_path(file.path))
            if files:
                yield replace(change, files=files)

    def _safe_texts(self, hashes: Iterable[str | None]) -> Iterator[str]:
        """Yield the hashes whose texts are in the archive, not too large, without credentials.

        Raises SourceDamagedError if a text does not have its hash.
        """
        for key in sorted(key for key in hashes if key and _HASH.fullmatch(key)):
            yield_to_requests()
            name = f"{_BLOBS}{key}"
            if name not in self._records:
                continue
            self._unread.pop(name, None)
            content = self._source.read(name)
            if self._records[name].sha256 != key:
                raise SourceDamagedError(name, _CHANGED)
            if len(content) > limits.READ_BYTES or secrets.find(decoded(content)):
                self.left.add(name, _CREDENTIAL)
            else:
                yield key


def _is_path(path: str) -> bool:
    """Return whether a text is a path that a file in a memory directory can have."""
    try:
        return check_odd_name(path) == path
    except NameRefusedError:
        return False


def _is_component(name: str) -> bool:
    """Return whether a text can be the name of one file or folder."""
    try:
        return check_component(name) == name
    except NameRefusedError:
        return False

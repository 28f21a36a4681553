"""An export of memd, as docs/export-format.md says: checked as a whole, then read. Pure.

Rules of this file
- Nothing is used before every file has the size and the sum that the manifest says, and the
  manifest itself its sum. Whatever does not fit is a fault of the archive, which names the file.
- What an archive says of itself is not believed: whose words a memory holds is carried along for a
  later export, and a history is there to be read.
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
_COMMAS = 20  # in the manifest for each file: it has six members, and a name
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
    """Return what an export brings. Raises SourceDamagedError and VersionTooNewError."""
    content = source.read(MANIFEST) if MANIFEST in source.names() else b""
    if content.count(b"{") > 2 * ENTRIES or content.count(b",") > _COMMAS * ENTRIES:
        raise SourceDamagedError(MANIFEST, _MANY)
    manifest, digest = decode(content), sha256(content)
    del content  # it may be long
    records: dict[str, FileRecord] = {}
    for name, record in _records(manifest):
        if name in records:
            raise SourceDamagedError(name, _TWICE)
        records[name] = record
    _check(source, records, digest)
    taking = _Taking(source, records)
    projects = tuple(taking.project(each) for each in manifest.projects)
    agents = taking.folders(f"agents/{AgentScope.USER}/")
    taking.leave_others()
    left = tuple(taking.left.files)
    return ImportReading(SourceKind.MEMD, projects, agents, left, left_out_more=taking.left.more)


def _records(manifest: Manifest) -> Iterator[tuple[str, FileRecord]]:
    """Yield the files of a manifest by their names in the archive. Raises SourceDamagedError."""
    ids = [project.id for project in manifest.projects]
    if len({*ids}) < len(ids) or not all(map(_is_component, ids)):
        raise SourceDamagedError(MANIFEST, _NO_ID)
    for project in manifest.projects:
        for record in project.files:
            yield f"projects/{project.id}/{record.path}", record
    for record in manifest.files:
        yield record.path, record


def _check(source: ImportSource, records: Mapping[str, FileRecord], manifest: str) -> None:
    """Return where an archive is what its manifest says; raises SourceDamagedError.

    ``manifest`` is the sum of that.
    """
    for name in source.names():
        if name not in records and name not in (MANIFEST, SUMS):
            raise SourceDamagedError(name, _UNNAMED)
    if len(source.names()) < len(records) + 2:  # with the two that no record names
        for name in sorted({MANIFEST, SUMS, *records}.difference(source.names())):
            raise SourceDamagedError(name, _MISSING)
    if any(a != b for a, b in zip_longest(io.BytesIO(source.read(SUMS)), _sums(records, manifest))):
        raise SourceDamagedError(SUMS, _SUMS)
    for name, record in records.items():
        yield_to_requests()
        size = source.size(name)
        if size != record.bytes or sha256(source.read(name)) != record.sha256:
            raise SourceDamagedError(name, _CHANGED)


def _sums(records: Mapping[str, FileRecord], manifest: str) -> Iterator[bytes]:
    """Yield the lines that the list of sums must have."""
    yield sum_line(manifest, MANIFEST)
    for name in sorted(records, key=str.encode):
        yield sum_line(records[name].sha256, name)


class _Taking:
    """What is taken of an archive that was checked, and what is left out.

    ``records`` are its files by name; each goes once.
    """

    def __init__(self, source: ImportSource, records: Mapping[str, FileRecord]) -> None:
        self.left = LeftOutList()
        self._source = source
        self._records = records
        self._open = dict.fromkeys(sorted(records))  # names that nobody has taken
        self._count = self._bytes = 0

    def project(self, project: ProjectRecord) -> ReadProject:
        """Return what an archive has of one project."""
        folder = f"projects/{project.id}"
        agents: dict[str, tuple[ProposedMemory, ...]] = {}
        for scope in (AgentScope.PROJECT, AgentScope.LOCAL):
            inside = self.folders(f"{folder}/agents/{scope}/")
            agents |= {f"{scope}/{agent}": files for agent, files in inside.items()}
        history = tuple(self._history(f"history/{project.id}.jsonl"))
        named = {key for change in history for f in change.files for key in (f.before, f.after)}
        return ReadProject(
            project.id,
            project.name,
            tuple(self._files(f"{folder}/memory/")),
            agents,
            tuple(self._files(f"{folder}/notes/")),
            history,
            # Checked now, and read again one by one when they are kept.
            ((key, self._source.read(f"{_BLOBS}{key}")) for key in [*self._texts(named)]),
            project.remote,
        )

    def folders(self, place: str) -> dict[str, tuple[ProposedMemory, ...]]:
        """Return the files of each folder at a place that is called as an agent may be."""
        inside = (name.removeprefix(place) for name in self._open if name.startswith(place))
        names = {name.partition("/")[0] for name in inside if "/" in name}
        return {
            name: tuple(self._files(f"{place}{name}/"))
            for name in sorted(names)
            if _is_component(name)
        }

    def leave_others(self) -> None:
        """List what nobody has taken."""
        for name in self._open:
            self.left.add(name, _ELSEWHERE)
        self._open.clear()

    def _files(self, place: str) -> Iterator[ProposedMemory]:
        """Yield the files below a place, by their paths there."""
        for name in [name for name in self._open if name.startswith(place)]:
            path = name.removeprefix(place)
            if path.startswith(f"{LOGS}/"):
                continue
            del self._open[name]
            record = self._records[name]
            self._count, self._bytes = self._count + 1, self._bytes + record.bytes
            if self._count > MEMORIES or self._bytes > TEXT_BYTES:
                self.left.add(name, _TOO_MUCH)
                continue
            content, mtime_ns = self._source.read(name), max(0, record.mtime_ns)
            yield ProposedMemory(path, content, mtime_ns, record.origin, exact=True)

    def _history(self, name: str) -> Iterator[PastChange]:
        """Yield the changes of a list that may be kept, oldest first. Raises SourceDamagedError."""
        if name not in self._open:
            return
        del self._open[name]
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

    def _texts(self, named: Iterable[str | None]) -> Iterator[str]:
        """Yield those hashes whose texts may be kept."""
        for key in sorted(key for key in named if key and _HASH.fullmatch(key)):
            yield_to_requests()
            name = f"{_BLOBS}{key}"
            if name not in self._records:
                continue
            self._open.pop(name, None)
            content = self._source.read(name)
            if self._records[name].sha256 != key:
                raise SourceDamagedError(name, _CHANGED)
            if len(content) > limits.READ_BYTES or secrets.find(decoded(content)):
                self.left.add(name, _CREDENTIAL)
            else:
                yield key


def _is_path(path: str) -> bool:
    try:
        return check_odd_name(path) == path
    except NameRefusedError:
        return False


def _is_component(name: str) -> bool:
    try:
        return check_component(name) == name
    except NameRefusedError:
        return False

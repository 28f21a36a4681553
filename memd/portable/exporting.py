"""Write the files of one export into an archive, with its manifest. Blocks."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from memd.base.errors import Refused
from memd.base.names import check_component
from memd.base.text import sha256
from memd.base.yielding import yield_to_requests
from memd.portable import collecting
from memd.portable.collecting import Item
from memd.portable.intake import ENTRIES, UNPACKED_BYTES, reason_against_name
from memd.portable.manifest import FORMAT, VERSION, FileRecord, Manifest, ProjectRecord
from memd.portable.still import StillFile, files_of
from memd.portable.values import (
    ExportedProject,
    ExportPart,
    ExportRequest,
    ExportResult,
    LeftOutFile,
    LeftOutList,
)
from memd.portable.writing import Staging
from memd.projects.known import KnownProject
from memd.projects.remotes import repository_of

_ID_CHARACTERS = 64  # the longest id that is made from a name, before its number
_DOTS = r"\.{2,}"
_NOT_PORTABLE = r"[^A-Za-z0-9._-]+"  # characters that not every file name may have
_SAME_NAME = "another file of the archive has this name"
_SAME_FILE = "this disk takes its name for that of another file of the archive"
_TOO_LARGE = (
    f"the archive has more than {ENTRIES:,} files or {UNPACKED_BYTES // 1024**3} GiB, which"
    " memctl import does not take: export fewer projects or parts at a time"
)


class Export:
    """An export in progress: it writes files and gathers the manifest's records of them.

    ``ids`` are the ids that the requested projects have in the archive, in the request's order.
    ``version`` is memd's. All methods raise Refused.
    """

    def __init__(self, staging: Staging, request: ExportRequest, version: str) -> None:
        self._staging, self._request, self._version = staging, request, version
        self.ids = project_ids(project.name for project in request.projects)
        self._projects = dict(zip(self.ids, map(_project_record, request.projects), strict=True))
        # By project id; the files under "" belong to no project.
        self._files: dict[str, list[FileRecord]] = {key: [] for key in ("", *self.ids)}
        self._names: set[str] = set()  # of all files that came, with their folders
        self._left_out = LeftOutList()

    def add(self, project: str, folder: str, items: Iterable[Item]) -> None:
        """Write files into a folder of the archive, and list those that are left out.

        ``project`` is the id of the project that they belong to, "" for none.
        """
        prefix = f"projects/{project}/" if project else ""  # the paths of records are without it
        for each in items:
            name = f"{folder}{each.name}"
            why = each.reason if isinstance(each, LeftOutFile) else reason_against_name(name)
            if name in self._names:
                why = _SAME_NAME
            self._names.add(name)
            if why or isinstance(each, LeftOutFile):
                self._left_out.add(name, why)
                continue
            record = self._staging.add(name, each.content, each.mtime_ns)
            if record is None:
                self._left_out.add(name, _SAME_FILE)
                continue
            record.type, record.origin = each.type, each.origin
            record.path = name.removeprefix(prefix)
            self._files[project].append(record)

    def finish(self) -> ExportResult:
        """Write the manifest, move the archive to its destination and return the result."""
        for files in self._files.values():
            files.sort(key=lambda file: file.path.encode())
        for key, project in self._projects.items():
            project.id, project.files = key, self._files[key]
        projects = [
            project
            for _, project in sorted(self._projects.items())
            if project.files or not self._request.whole  # a project that was named stays
        ]
        scope = sorted(part.value for part in self._request.parts)
        self._staging.finish(
            Manifest(
                format=FORMAT,
                version=VERSION,
                memd=self._version,
                scope=scope,
                projects=projects,
                files=self._files[""],
            )
        )
        records = [file for files in self._files.values() for file in files]
        count, size = len(records), sum(file.bytes for file in records)
        # The archive also has the manifest and the list of sums.
        is_too_large = count + 2 > ENTRIES or size > UNPACKED_BYTES
        return ExportResult(
            self._request.destination,
            count,
            size,
            tuple(ExportedProject(each.id, each.name, len(each.files)) for each in projects),
            tuple(self._left_out.files),
            self._left_out.more,
            (_TOO_LARGE,) if is_too_large else (),
        )


class DirectoryExport(Struct):
    """The export of one memory ``directory`` into a ``folder`` of the archive.

    ``project`` is the id of the project that its files belong to, "" for none.
    """

    export: Export
    project: str
    folder: str
    directory: str
    parts: frozenset[ExportPart] = frozenset()
    # From the hash of a text to the reason to leave it out, "" for none.
    _known: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Scan all texts for credentials, the slow part, before writers have to wait."""
        for _ in self._memories(files_of(self.directory, self._is_exported)):
            yield_to_requests()

    def export_memories(self, real_path: str) -> None:
        """Export the memories of the directory at its real path; memd changes nothing meanwhile."""
        files = files_of(real_path, self._is_exported)
        self.export.add(self.project, self.folder, self._memories(files))

    def _memories(self, files: Iterable[StillFile]) -> Iterator[Item]:
        """Yield the files of the directory that are exported, or why each is left out."""
        return collecting.memories(files, self._known)

    def _is_exported(self, path: str) -> bool:
        """Return whether the export includes a path of the directory."""
        return collecting.covers(path, parts=self.parts)


def project_ids(names: Iterable[str]) -> list[str]:
    """Return an id for each project, made from its name; equal ids get numbers from 2 on."""
    ids: list[str] = []
    taken: set[str] = set()
    for name in names:
        stem = re.sub(_DOTS, ".", re.sub(_NOT_PORTABLE, "-", name))[:_ID_CHARACTERS].strip("-.")
        try:
            check_component(stem)
        except Refused:  # it is empty now, or a name that is reserved for a device
            stem = f"project-{stem}".strip("-")
        number, project_id = 1, stem
        while project_id.casefold() in taken:
            number += 1
            project_id = f"{stem}-{number}"
        taken.add(project_id.casefold())
        ids.append(project_id)
    return ids


def _project_record(project: KnownProject) -> ProjectRecord:
    """Return the manifest's record of a project, without files and id.

    Its remote is only recorded as a hash.
    """
    remote = repository_of(project.root) if project.root else ""
    name = project.name.encode(errors="replace").decode()
    return ProjectRecord(id="", name=name, remote=sha256(remote.encode()) if remote else "")

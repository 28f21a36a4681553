"""A home with memories of every kind, and exports of it, for the tests of archives."""

import hashlib
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from blockbuster import blockbuster_ctx

from memd.base.text import sha256
from memd.base.values import Actor, Draft, FileEdit, Provenance
from memd.daemon.app import SCHEMAS
from memd.notes.files import contents
from memd.portable.manifest import MANIFEST, SUMS, FileRecord, Manifest, decode
from memd.portable.service import ExportPorts, Exports
from memd.portable.values import ExportPart, ExportRequest, ExportResult
from memd.projects.known import KnownProject, known_project, last_visits
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from memd.store.disk import Disk
from tests.store.bench import topic
from tests.stores import projects_in, store_in
from tests.support.calls import callers_in
from tests.support.clock import FakeClock

ALL = frozenset(ExportPart)
BY = Provenance(Actor.CLIENT, "test", "s1", "", "memory.write", "user")
CONFIG = '[remote "origin"]\n\turl = git@github.com:acme/app.git\n'


class Archives:
    """A store on a home of its own, and exports of it."""

    def __init__(self, home: Path, database: Database, disk: Disk | None = None) -> None:
        self.home, self.database = home, database
        self.clock = FakeClock()
        self.store = store_in(database, self.clock)
        self.projects = projects_in(home, database)
        ports = ExportPorts(
            known=self.known,
            notes=contents,
            own=(f"{home}/state",),
        )
        self.exports = Exports(self.store, ports, callers_in(home, database, self.clock), disk)

    def known(self) -> tuple[KnownProject, ...]:
        """Return the projects that the daemon knows."""
        return self.projects.known(last_visits(Docs(self.database)))

    def project(self, name: str = "app") -> KnownProject:
        """Return a project below ``src``, which is made where it is not there."""
        root = self.home / "src" / name
        if not root.exists():
            (root / ".git").mkdir(parents=True)
            (root / ".git" / "config").write_text(CONFIG)
        return known_project(self.projects.where(str(root), {})[0])

    async def write(self, project: KnownProject, files: Mapping[str, bytes | None]) -> None:
        """Change memories through the store."""
        edits = tuple(FileEdit(path, content) for path, content in files.items())
        self.clock.advance(1.5)
        await self.store.commit(project.directory, lambda _: Draft(edits), BY)

    async def export(
        self,
        destination: Path,
        *projects: KnownProject,
        parts: Iterable[ExportPart] = (),
        whole: bool = False,
    ) -> ExportResult:
        """Export some projects, by default the one called ``app``."""
        chosen = projects or (self.project(),)
        request = ExportRequest(str(destination), chosen, frozenset(parts), whole)
        with blockbuster_ctx("memd"):
            return await self.exports.write(request, _ignore)


async def _ignore(done: int, total: int) -> None:
    """Do nothing with progress."""


@contextmanager
def archives_in(home: Path, disk: Disk | None = None) -> Iterator[Archives]:
    """Open a home's store and its state file, as a start of the daemon does."""
    (home / "state").mkdir(parents=True, exist_ok=True)
    database = open_database(str(home / "state" / "state.db"), SCHEMAS)
    try:
        yield Archives(home, database, disk)
    finally:
        database.close()


def put(path: Path, content: bytes, seconds: float = 1_700_000_000.25) -> None:
    """Write a file with folders above it and a time of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(0, int(seconds * 1e9)))


async def fill(archives: Archives) -> KnownProject:
    """Put something of every part into a home; return the project."""
    project = archives.project()
    memory, root = Path(project.directory), Path(project.root)
    await archives.write(project, {"a.md": topic("a"), "sub/b.md": topic("b")})
    await archives.write(project, {"a.md": topic("a", "changed"), "gone.md": topic("gone")})
    await archives.write(project, {"gone.md": None})
    put(memory / "über uns.md", b"---\r\nname: x\r\nbroken: [\r\n---\r\n\xff\xfe")
    put(memory / "team" / "shared.md", topic("shared"))
    put(memory / "team" / "MEMORY.md", b"- [Shared](shared.md)\n")
    put(memory / "logs" / "2026" / "01" / "2026-01-02.md", b"a day\n")
    put(memory / ".consolidate-lock", b"1\n")
    put(root / ".claude" / "agent-memory" / "reviewer" / "r.md", topic("r"))
    put(root / ".claude" / "agent-memory-local" / "tester" / "t.md", topic("t"))
    put(archives.home / ".claude" / "agent-memory" / "writer" / "w.md", topic("w"))
    put(Path(project.sessions[0]) / "session-1" / "session-memory" / "summary.md", b"# Notes\n")
    return project


def content(destination: Path) -> dict[str, bytes]:
    """Return every file of an archive by name, whatever its shape."""
    if destination.is_dir():
        files = sorted(path for path in destination.rglob("*") if not path.is_dir())
        return {str(path.relative_to(destination)): path.read_bytes() for path in files}
    with tarfile.open(destination) as archive:
        members = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in members.items() if file}


def recorded(manifest: Manifest) -> dict[str, FileRecord]:
    """Return the records of a manifest by name in the archive."""
    result = {file.path: file for file in manifest.files}
    for project in manifest.projects:
        result |= {f"projects/{project.id}/{file.path}": file for file in project.files}
    return result


def checked(destination: Path) -> Manifest:
    """Return the manifest of an archive in which everything fits."""
    files = content(destination)
    manifest = decode(files[MANIFEST])
    records = recorded(manifest)
    assert records.keys() == files.keys() - {MANIFEST, SUMS}
    for name, record in records.items():
        assert (record.sha256, record.bytes) == (sha256(files[name]), len(files[name])), name
    sums = dict(_sum(line) for line in files[SUMS].decode().split("\n")[:-1])
    expected = {n: hashlib.sha256(text).hexdigest() for n, text in files.items() if n != SUMS}
    assert sums == expected
    assert not [name for name in os.listdir(destination.parent) if name.startswith(".memd-")]
    return manifest


def _sum(line: str) -> tuple[str, str]:
    """Return name and sum of a line, read as ``sha256sum -c`` reads it."""
    escaped, line = line.startswith("\\"), line.removeprefix("\\")
    digest, _, name = line.partition("  ")
    if escaped:
        parts = (part.replace("\\n", "\n").replace("\\r", "\r") for part in name.split("\\\\"))
        name = "\\".join(parts)
    return name, digest

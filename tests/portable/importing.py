"""A machine that imports: a real store and state file, projects, and a clock that stands still."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from memd.base.values import Project
from memd.daemon.app import SCHEMAS
from memd.notes import files as notes_files
from memd.portable.service import (
    ImportPorts,
    ImportReading,
    ImportRequest,
    ImportResult,
    Imports,
    ImportTarget,
)
from memd.state.database import Database, open_database
from memd.store.disk import Disk
from tests.portable.sources import written
from tests.stores import projects_in, store_in
from tests.support.calls import callers_in
from tests.support.clock import FakeClock

NOW = 1_772_450_000.0


def restore_notes(project: Project, session: str, content: bytes, mtime_ns: int) -> bool:
    """Put the notes of a session where there are none."""
    return notes_files.restore(notes_files.place(project, session), content, mtime_ns)


class Machine:
    """One user's memd below a folder."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        disk: Disk | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        self.folder, self.database = folder, database
        self.clock = clock or FakeClock(now=NOW)
        self.store = store_in(database, self.clock, disk=disk)
        (folder / "staging").mkdir(exist_ok=True)
        self.joined = False
        self.imports = Imports(
            self.store,
            self.clock,
            ImportPorts(str(folder / "staging"), restore_notes),
            callers_in(folder, database, self.clock),
        )

    def root(self, name: str = "app") -> str:
        """Return the directory of a project."""
        path = self.folder / "work" / name
        path.mkdir(parents=True, exist_ok=True)
        return str(path)

    async def project(self, name: str = "app") -> Project:
        """Return a project."""
        return (await projects_in(self.folder, self.database).find(self.root(name), {}))[0]

    async def memory(self, name: str = "app") -> Path:
        """Return the memory directory of a project."""
        return Path((await self.project(name)).memory_dir)

    async def bring(
        self, source: Path | str, *, projects: Mapping[str, str] | None = None, **more: object
    ) -> ImportResult:
        """Import a source: projects by their names, without any each into ``app``."""
        request = replace(ImportRequest(str(source), accept=True), **more)

        async def find(reading: ImportReading) -> Mapping[str, ImportTarget]:
            names = projects or {each.id: "app" for each in reading.projects}
            return {
                key: ImportTarget(await self.project(name), {}, self.joined)
                for key, name in ({"": "app"} | dict(names)).items()
            }

        return await self.imports.run(request, find, _report)

    def archive(self, files: Mapping[str, bytes], name: str = "export") -> Path:
        """Write the files of an archive into a folder."""
        return written(self.folder / name, files)


async def _report(done: int, total: int) -> None:
    assert 0 <= done <= total


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return all visible files below a folder with their times."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


@contextmanager
def machine(
    folder: Path, disk: Disk | None = None, clock: FakeClock | None = None
) -> Iterator[Machine]:
    """Set up a machine below a folder that is made, and close its state file in the end."""
    os.makedirs(folder, exist_ok=True)
    database = open_database(str(folder / "state.db"), SCHEMAS)
    try:
        yield Machine(folder, database, disk, clock)
    finally:
        database.close()

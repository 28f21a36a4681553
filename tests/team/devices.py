"""A member's device in this process: store, state file, memberships, and the syncs over them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memd.base.settings import Settings
from memd.base.values import Actor, CommitResult, Draft, FileEdit, Project, Provenance, Tree
from memd.daemon.app import SCHEMAS
from memd.rpc.call import Call
from memd.state.database import open_database
from memd.state.teams import TeamTable
from memd.store.log import ChangeLog
from memd.store.store import Store
from memd.team.membership import Memberships
from memd.team.results import Joined, SyncResult, TeamStatus
from memd.team.service import TeamSyncs
from tests.stores import Sink, store_in
from tests.support.calls import call_about, callers_in
from tests.support.clock import FakeClock

ORIGIN = "git@github.com:Acme/App.git"
_BY = Provenance(Actor.CLIENT, client="test")


def memory(name: str, text: str, kind: str = "project") -> str:
    """Return a memory's text."""
    head = f"---\nname: {name}\ndescription: what {name} says\nmetadata:\n  type: {kind}\n---\n\n"
    return f"{head}{text}\n"


@dataclass
class Device:
    """One member's machine; ``faults`` are those that its syncs met."""

    home: Path
    store: Store
    table: TeamTable
    memberships: Memberships
    syncs: TeamSyncs
    clock: FakeClock
    sink: Sink
    project: Project
    faults: list[BaseException]

    @property
    def directory(self) -> str:
        """Where the memories are."""
        return self.project.memory_dir

    @property
    def team(self) -> Path:
        """The folder that is shared."""
        return Path(self.directory) / "team"

    async def join(self, url: str, code: str) -> Joined:
        """Join with a code."""
        joined = (
            await self.syncs.join(self._call(), cwd=self.project.cwd, url=url, code=code)
        ).joined
        assert joined is not None
        return joined

    async def sync(self) -> SyncResult:
        """Sync now, as a person asks for it."""
        return await self.syncs.sync(self._call(), cwd=self.project.cwd)

    async def status(self) -> TeamStatus:
        """Return how far the directory is in step with its team."""
        return await self.syncs.status(self._call(), cwd=self.project.cwd)

    async def remove(self, path: str, reason: str) -> SyncResult:
        """Remove a memory for all members."""
        return await self.syncs.remove(self._call(), cwd=self.project.cwd, path=path, reason=reason)

    async def accept(self) -> SyncResult:
        """Go on with a server that looks wrong."""
        return await self.syncs.resolve(self._call(), cwd=self.project.cwd, how="accept")

    def _call(self) -> Call:
        """Return a call that is about the directory."""
        return call_about(self.directory)

    async def write(self, key: str, text: str | None) -> CommitResult:
        """Write a file below ``team/`` through the store, or delete it."""
        content = None if text is None else text.encode()

        def plan(_: Tree) -> Draft:
            return Draft((FileEdit(f"team/{key}", content),))

        return await self.store.commit(self.directory, plan, _BY)

    def texts(self) -> dict[str, str]:
        """Return what stands below ``team/``, the index aside."""
        return {
            str(path.relative_to(self.team)): path.read_text()
            for path in sorted(self.team.rglob("*.md"))
            if path.name != "MEMORY.md"
        }


@asynccontextmanager
async def device(
    home: Path, *, clock: FakeClock | None = None, **more: Any
) -> AsyncIterator[Device]:
    """Make a device with a home and a clone of its own; what is there already stays."""
    clock = clock or FakeClock()
    root, directory = home / "app", home / "memory"
    (root / ".git").mkdir(parents=True, exist_ok=True)
    (root / ".git/config").write_text(f'[remote "origin"]\n\turl = {ORIGIN}\n')
    database = open_database(str(home / "state.db"), SCHEMAS)
    sink, faults = Sink(), list[BaseException]()

    def unexpected(error: BaseException) -> str:
        faults.append(error)
        return ""

    try:
        store = store_in(database, clock, events=sink)
        memberships = Memberships(str(home / "config"))
        table = TeamTable(database, ChangeLog(database).team_text)
        project = Project(str(root), str(root), str(directory), "test", "", enabled=True)
        settings = Settings()
        syncs = TeamSyncs(
            store,
            table,
            memberships,
            clock,
            sink,
            callers=callers_in(home, database, clock),
            settings=lambda _: settings,
            on_unexpected=unexpected,
            **more,
        )
        yield Device(home, store, table, memberships, syncs, clock, sink, project, faults)
    finally:
        database.close()

"""Direct use of memories: list, read, write and delete."""

from dataclasses import dataclass

from memd.core.clock import Clock
from memd.core.text import iso_time
from memd.core.values import Header, MemoryFile, Outcome, Project, Provenance
from memd.memories.writing import Writing, plan_delete, plan_write
from memd.store.index import LoadedIndex, load
from memd.store.service import Store


@dataclass(frozen=True, slots=True)
class Listing:
    """The memories of a project, newest first, and what a prompt would load of the index."""

    memory_dir: str
    headers: tuple[Header, ...]
    index: LoadedIndex
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """The end of a write: ``status`` is created, updated or unchanged."""

    path: str
    hash: str
    change: str | None
    status: str


class Memories:
    """The room that people and plugins use directly."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list(self, project: Project) -> Listing:
        """Return what the project remembers."""
        snapshot = await self._store.snapshot(project.memory_dir)
        return Listing(
            memory_dir=project.memory_dir,
            headers=snapshot.headers,
            index=load(snapshot.index),
            problems=snapshot.problems,
        )

    async def read(self, project: Project, path: str) -> MemoryFile:
        """Return one memory whole. Raises MemoryNotFoundError and what the name rule refuses."""
        return await self._store.read(project.memory_dir, path)

    async def write(
        self, project: Project, writing: Writing, by: Provenance, *, request_id: str = ""
    ) -> Written:
        """Write one memory and its line in the index as one change.

        Raises what the store refuses at the door (ConflictError where ``base_hash`` is not the
        live file's hash) and IncompleteMemoryError.
        """
        plan = plan_write(writing, session=by.session, modified=iso_time(self._clock.now()))
        outcome = await self._store.commit(project.memory_dir, plan, by, request_id=request_id)
        made = next((file for file in outcome.files if file.path == writing.path), None)
        if made is not None:
            return Written(made.path, made.after or "", outcome.change, made.action)
        live = await self._store.read(project.memory_dir, writing.path)
        return Written(writing.path, live.hash, outcome.change, "unchanged")

    async def delete(
        self,
        project: Project,
        path: str,
        by: Provenance,
        *,
        base_hash: str | None = None,
        request_id: str = "",
    ) -> Outcome:
        """Delete one memory and its line in the index as one change.

        Raises NothingThereError where there is none, and ConflictError.
        """
        plan = plan_delete(path, base_hash)
        return await self._store.commit(project.memory_dir, plan, by, request_id=request_id)

"""Write, delete and share memories, and run the commands of the memory tool."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.base.clock import Clock
from memd.base.errors import Conflict, Invalid, MemdError, NotFound, Refused, Secret, TooLarge
from memd.base.names import INDEX, INDEXES
from memd.base.text import iso_time
from memd.base.values import Actor, CommitResult, FileChange, Project, Provenance
from memd.memories import tool
from memd.memories.sharing import plan_share
from memd.memories.tool import Editing, Stamp, ToolCommand
from memd.memories.writing import Writing, plan_delete, plan_write
from memd.store.store import Store

# Errors that a model can react to: it gets their text as the result.
_ERRORS_FOR_MODELS = (Invalid, Refused, Secret, TooLarge, Conflict, NotFound)


class Written(Struct, frozen=True):
    """The result of a write: ``status`` is created, updated, merged or unchanged.

    A merged file has more text than was sent; read it before the next edit. ``hash`` is that of
    the file now. ``note`` says why the index could not be updated, "" if it was. ``origin`` is the
    author that the text counts as: user or assistant.
    """

    path: str
    hash: str
    change: str | None
    status: str
    note: str = ""
    origin: str = ""


class ToolAnswer(Struct, frozen=True):
    """The result of a command of the memory tool: the text, and the change that was made."""

    text: str
    is_error: bool = False
    change: str | None = None


class Memories:
    """Writes memories for people and plugins."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def write(
        self, project: Project, writing: Writing, by: Provenance, *, request_id: str = ""
    ) -> Written:
        """Write one memory and its line in the index as one change, or the index itself.

        What the person saves is theirs from then on, also where the text stays as another program
        wrote it.
        Raises Invalid and the errors of ``Store.commit``, as Conflict if
        ``base_hash`` is not the live file's hash and the texts cannot be merged.
        """
        modified = iso_time(self._clock.now())

        async def commit(writing: Writing) -> tuple[CommitResult, FileChange | None]:
            """Commit the write; return the result, and what it changed of the memory."""
            plan = plan_write(writing, session=by.session, modified=modified, origin=by.origin)
            paths = (writing.path, *INDEXES)
            result = await self._store.commit(
                project.memory_dir, plan, by, request_id=request_id, paths=paths
            )
            return result, next((file for file in result.files if file.path == writing.path), None)

        result, changed = await commit(writing)
        if changed is None and writing.by_person and writing.path != INDEX:
            last = await self._last_actor(project.memory_dir, writing.path)
            if last in (Actor.EXTERNAL, Actor.ASSISTANT):
                # A new time makes it a change of its own, which says from now on who wrote it.
                result, changed = await commit(replace(writing, new_time=True))
        if changed is not None:
            status = "merged" if changed.path in result.merged else changed.action
            return Written(changed.path, changed.after or "", result.change, status, result.note)
        current = await self._store.read(project.memory_dir, writing.path)
        status = "unchanged"
        if writing.path == INDEX and result.change:
            status = "merged" if INDEX in result.merged else "updated"
        return Written(writing.path, current.hash, result.change, status)

    async def delete(
        self,
        project: Project,
        path: str,
        by: Provenance,
        *,
        joined: bool,
        base_hash: str | None = None,
        request_id: str = "",
    ) -> CommitResult:
        """Delete one memory and its line in the index as one change.

        ``joined`` says whether the project has joined a team, whose memories only the team removes.
        Raises NotFound if it does not exist, Refused and Conflict.
        """
        plan = plan_delete(path, base_hash, joined=joined)
        paths = (path, *INDEXES)
        return await self._store.commit(
            project.memory_dir, plan, by, request_id=request_id, paths=paths
        )

    async def share(
        self, project: Project, path: str, by: Provenance, *, request_id: str = ""
    ) -> CommitResult:
        """Move a private memory below ``team/`` as one change.

        Raises NotFound, Invalid, and Conflict if the
        team has a memory of that name.
        """
        plan = plan_share(path, iso_time(self._clock.now()))
        return await self._store.commit(project.memory_dir, plan, by, request_id=request_id)

    async def tool(
        self, project: Project, raw: Mapping[str, Any], by: Provenance, *, request_id: str = ""
    ) -> ToolAnswer:
        """Run one command of the Messages API's memory tool.

        Errors that the model can react to are a result with ``is_error``. Raises the store's other
        errors, of the disk and the state file.
        """
        try:
            command = tool.parse(raw)
            if command.name == "view":
                return ToolAnswer(await self._view(project, command))
            return await self._edit(project, command, by, request_id)
        except _ERRORS_FOR_MODELS as error:
            return ToolAnswer(_sentence_and_hint(error), is_error=True)

    async def _last_actor(self, directory: str, path: str) -> str:
        """Return who wrote a memory last; without a change of it, another program did."""
        writers = await self._store.consult(lambda past, real: past.writers(real, path), directory)
        return writers.last.actor if writers.last else Actor.EXTERNAL

    async def _view(self, project: Project, command: ToolCommand) -> str:
        """Return the content of a file or the listing of a folder."""
        path = tool.relative(command.path)
        snapshot = await self._store.snapshot(project.memory_dir)
        paths = {header.path for header in snapshot.headers}
        if path == INDEX and snapshot.index is not None:
            return tool.view_file(command, snapshot.index)
        if path not in paths:
            return tool.view_folder(command, snapshot.headers, snapshot.index)
        file = await self._store.read(project.memory_dir, path)
        return tool.view_file(command, file.content)

    async def _edit(
        self, project: Project, command: ToolCommand, by: Provenance, request_id: str
    ) -> ToolAnswer:
        """Commit an edit; a repeated request gets the result without another commit."""
        editing = Editing(command, Stamp(by.session, iso_time(self._clock.now())))
        result = await self._store.commit(project.memory_dir, editing, by, request_id=request_id)
        if not result.repeated:
            return ToolAnswer(editing.answer, change=result.change)
        files = await self._store.read_many(project.memory_dir, (tool.relative(command.path),))
        text = tool.repeated_answer(command, files[0].content if files else None)
        return ToolAnswer(text, change=result.change)


def _sentence_and_hint(error: MemdError) -> str:
    """Return an error's sentence and hint as the result of the memory tool."""
    return f"{error.sentence}. {error.hint}." if error.hint else error.sentence

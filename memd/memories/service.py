"""Direct use of memories: list, read, write and delete."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.names import INDEX, NameRefusedError
from memd.core.text import iso_time
from memd.core.values import CommitResult, Project, Provenance
from memd.documents import index
from memd.files.directory import FileTooLargeError, PathRefusedError
from memd.memories import tool
from memd.memories.adopting import plan_adopt
from memd.memories.gathering import plan_leave, plan_lines, plan_take, plan_without_lines
from memd.memories.sharing import plan_share
from memd.memories.tool import Editing, Stamp, ToolCommand, ToolRefusedError
from memd.memories.writing import Writing, plan_delete, plan_write
from memd.store.drafts import (
    ConflictError,
    NameClashError,
    NotSharedError,
    SecretRefusedError,
    TooLargeError,
    TooManyFilesError,
)
from memd.store.service import DirectoryBusyError, MemoryNotFoundError, Store

# What a model can do something about: these become the text that it reads.
_FOR_THE_MODEL = (
    ToolRefusedError,
    NameRefusedError,
    NameClashError,
    NotSharedError,
    PathRefusedError,
    SecretRefusedError,
    TooLargeError,
    TooManyFilesError,
    FileTooLargeError,
    ConflictError,
    DirectoryBusyError,
    MemoryNotFoundError,
)


@dataclass(frozen=True, slots=True)
class Written:
    """The end of a write: ``status`` is created, updated, merged or unchanged.

    A merged file holds more than was sent, with ``hash``: read it before the next edit. ``note``
    says why the index could not follow, "" when it did. ``origin`` is whose words the write counts
    as: user or assistant.
    """

    path: str
    hash: str
    change: str | None
    status: str
    note: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a program that uses the memory tool gets: the text, and the change that was made."""

    text: str
    is_error: bool = False
    change: str | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What became of memories that were to be taken into another directory.

    ``merged`` are those that are there now; ``left`` says in a sentence why others are not.
    """

    merged: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adopted:
    """Which imported memories are the person's own now, by which change; null where none was."""

    paths: tuple[str, ...]
    change: str | None


class Memories:
    """The room that people and plugins use directly."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def write(
        self, project: Project, writing: Writing, by: Provenance, *, request_id: str = ""
    ) -> Written:
        """Write one memory and its line in the index as one change, or the index itself.

        Raises what the store refuses at the door (ConflictError where ``base_hash`` is not the
        live file's hash and the two cannot be merged) and IncompleteMemoryError.
        """
        plan = plan_write(writing, session=by.session, modified=iso_time(self._clock.now()))
        result = await self._store.commit(project.memory_dir, plan, by, request_id=request_id)
        made = next((file for file in result.files if file.path == writing.path), None)
        if made is not None:
            status = "merged" if made.path in result.merged else made.action
            return Written(made.path, made.after or "", result.change, status, result.note)
        live = await self._store.read(project.memory_dir, writing.path)
        status = "unchanged"
        if writing.path == INDEX and result.change:
            status = "merged" if INDEX in result.merged else "updated"
        return Written(writing.path, live.hash, result.change, status)

    async def delete(
        self,
        project: Project,
        path: str,
        by: Provenance,
        *,
        base_hash: str | None = None,
        request_id: str = "",
    ) -> CommitResult:
        """Delete one memory and its line in the index as one change.

        Raises NothingThereError where there is none, SharedMemoryError and ConflictError.
        """
        plan = plan_delete(path, base_hash)
        return await self._store.commit(project.memory_dir, plan, by, request_id=request_id)

    async def share(
        self, project: Project, path: str, by: Provenance, *, request_id: str = ""
    ) -> CommitResult:
        """Move a private memory below ``team/`` as one change.

        Raises NothingThereError, InvalidMemoryError, NotSharedError, and AlreadySharedError where
        the team has a memory of that name.
        """
        plan = plan_share(path, iso_time(self._clock.now()))
        return await self._store.commit(project.memory_dir, plan, by, request_id=request_id)

    async def adopt(
        self, project: Project, path: str, by: Provenance, *, request_id: str = ""
    ) -> Adopted:
        """Make an imported memory the person's own, or all of them where ``path`` is "".

        Raises NothingThereError, NotImportedError and ConflictError.
        """
        plan = plan_adopt(path)
        result = await self._store.commit(project.memory_dir, plan, by, request_id=request_id)
        return Adopted(tuple(file.path for file in result.files), result.change)

    async def gather(self, source: str, target: str, by: Provenance) -> Gathered:
        """Take the memories of one directory into another, each in a change of its own.

        A memory is removed once it is there. What cannot be taken in stays where it is.
        Raises what a snapshot does.
        """
        snapshot = await self._store.snapshot(source)
        listed, merged, left = snapshot.index or b"", list[str](), list(snapshot.problems)
        for header in snapshot.headers:
            try:
                file = await self._store.read(source, header.path)
                await self._store.commit(target, plan_take(file, listed), by)
                await self._store.commit(source, plan_leave(file), by)
                merged.append(header.path)
            except MemdError as error:
                left.append(error.sentence)
        if lines := index.own_lines(listed):
            try:
                await self._store.commit(target, plan_lines(lines), by)
                await self._store.commit(source, plan_without_lines(lines), by)
                merged.append(INDEX)
            except MemdError as error:
                left.append(error.sentence)
        return Gathered(tuple(merged), tuple(left))

    async def tool(
        self, project: Project, raw: Mapping[str, Any], by: Provenance, *, request_id: str = ""
    ) -> ToolAnswer:
        """Do one command of the Messages API's memory tool.

        What the model that sent it can mend is an answer with ``is_error``; raised is the rest:
        what the store raises for the disk and the state file.
        """
        try:
            command = tool.parse(raw)
            if command.name == "view":
                return ToolAnswer(await self._view(project, command))
            return await self._edit(project, command, by, request_id)
        except _FOR_THE_MODEL as error:
            return ToolAnswer(_words(error), is_error=True)

    async def _view(self, project: Project, command: ToolCommand) -> str:
        path = tool.relative(command.path)
        snapshot = await self._store.snapshot(project.memory_dir)
        known = {header.path for header in snapshot.headers}
        if path == INDEX and snapshot.index is not None:
            return tool.view_file(command, snapshot.index)
        if path not in known:
            return tool.view_folder(command, snapshot.headers, snapshot.index)
        file = await self._store.read(project.memory_dir, path)
        return tool.view_file(command, file.content)

    async def _edit(
        self, project: Project, command: ToolCommand, by: Provenance, request_id: str
    ) -> ToolAnswer:
        editing = Editing(command, Stamp(by.session, iso_time(self._clock.now())))
        result = await self._store.commit(project.memory_dir, editing, by, request_id=request_id)
        if not result.repeated:
            return ToolAnswer(editing.answer, change=result.change)
        files = await self._store.read_many(project.memory_dir, (tool.relative(command.path),))
        text = tool.repeated(command, files[0].content if files else None)
        return ToolAnswer(text, change=result.change)


def _words(error: MemdError) -> str:
    return f"{error.sentence}. {error.hint}." if error.hint else error.sentence

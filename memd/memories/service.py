"""Read, write, list, delete and share memories, and run the commands of the memory tool."""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from memd.base.clock import Clock
from memd.base.errors import Conflict, Invalid, MemdError, NotFound, Refused, Secret, TooLarge
from memd.base.names import INDEX, SUFFIX, TEAM
from memd.base.text import decode, iso_time
from memd.base.threads import in_thread
from memd.base.values import (
    ASSISTANT,
    PERSON,
    Actor,
    Draft,
    Header,
    IndexFacts,
    MemoryType,
    Project,
    Provenance,
    Scope,
    Tree,
    newest_first,
)
from memd.memories import tool
from memd.memories.facts import (
    ChangeMade,
    Listed,
    MemoryRead,
    Shared,
    cursor,
    facts_of,
    filtered,
    first_problems,
    page_of,
    sort_key,
)
from memd.memories.sharing import plan_share
from memd.memories.tool import Editing, Stamp, ToolCommand
from memd.memories.writing import Writing, plan_delete, plan_write
from memd.methods.callers import AgentName, AnyScope, Callers, SubagentScope, by_client
from memd.methods.method import Limit, SessionId, Time, method, moment
from memd.rpc.call import Call
from memd.store.index import load
from memd.store.memory import of_statement
from memd.store.store import Store

Words = Annotated[str, msgspec.Meta(max_length=1000)]
AnyType = Literal["", "user", "feedback", "project", "reference", "none"]
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


class Teams(Protocol):
    """What memories need to know of teams."""

    def joined(self, directory: str) -> bool:
        """Return whether a memory directory joined a team. Blocks."""
        ...

    async def check_used(self, project: Project) -> None:
        """Check that a project uses a team's memories. Raises Off, Refused."""
        ...


def _two_texts(path: str) -> Invalid:
    """Return the error that a write has both a whole file and a body."""
    return Invalid(
        f"the write of {path} has both content and body",
        hint="content is the whole file; name, description, type and body are its parts",
        path=path,
    )


class Memories:
    """Reads and writes memories for people, assistants and plugins.

    ``proven`` returns an assistant's text with what the person said, and its origin
    (``Extractions.proven``). ``likely_type`` returns the type of a memory of a statement and the
    sentence around it (``extract/candidates.py``); it may block.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        callers: Callers,
        teams: Teams,
        *,
        proven: Callable[[Project, str, str], Awaitable[tuple[str, str]]],
        likely_type: Callable[[str, str], MemoryType],
    ) -> None:
        self._store = store
        self._clock = clock
        self._callers = callers
        self._teams = teams
        self._proven = proven
        self._likely_type = likely_type

    @method("memory.read", "read")
    def read(
        self,
        call: Call,
        *,
        cwd: str,
        path: str,
        at: Time | None = None,
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> MemoryRead:
        """One whole memory, as it is now or as it was ``at`` a change or a time.

        ``at`` is a change's id, ISO 8601 or seconds since 1970. With ``agent`` it is a memory of
        that sub-agent, in its ``scope`` (by default user).
        """
        when = moment("at", at)
        directory = self._callers.readable(call, cwd, agent, scope).memory_dir
        if when is None:
            file = self._store.read(directory, path)
        else:
            file = self._store.consult(lambda past, real: past.version(real, path, when), directory)
        facts = asdict(facts_of(file.header, self._clock.now()))
        return MemoryRead(**facts, content=decode(file.content), hash=file.hash)

    @method("memory.write", "write")
    async def write(
        self,
        call: Call,
        *,
        cwd: str,
        path: str | None = None,
        content: str | None = None,
        name: str | None = None,
        description: str | None = None,
        type_: Literal["user", "feedback", "project", "reference"] | None = None,
        body: str | None = None,
        title: str | None = None,
        hook: str | None = None,
        base_hash: str | None = None,
        request_id: str = "",
        scope: AnyScope | None = None,
        session_id: SessionId = "",
        said: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None,
        agent: AgentName = "",
        when: Annotated[str, msgspec.Meta(max_length=1000)] | None = None,
    ) -> Written:
        """Write one memory and its line in the index.

        Give either the whole ``content`` or the parts of a memory. A new memory may have a ``body``
        and no ``path``: name, description, path and, unless it is given, type come from its words.
        It is a conflict if a memory says the same. ``when`` says in some ten words
        when it is needed, by which it is found. The index, ``MEMORY.md``, is
        written with ``content`` and the ``base_hash`` of the text that was read. A client that
        writes for an assistant gives ``said``: the person's statement word for word, or "" where
        the body quotes it or there is none. The memory counts as the person's only if a recent
        conversation of the project has these words. The body then ends with them; words that no
        conversation has are not added. Without ``said`` it is the person who saves, so the memory
        is theirs whoever wrote it before; a program that an assistant started counts as the
        assistant. With ``scope`` team the ``path`` is below ``team/``. With ``agent`` it is a
        memory of that sub-agent, in the ``scope`` user, project or local (by default user).
        """
        if content is not None and body is not None:
            raise _two_texts(path or "a memory")

        def begin() -> tuple[Project, bool]:
            """Return the project, and whether an assistant's program writes by itself. Blocks."""
            project = self._callers.writable(call, cwd, agent, scope)
            return project, said is None and self._callers.started_by_an_assistant(call)

        project, by_assistant = await in_thread(begin)
        origin = ASSISTANT if by_assistant else PERSON
        shared = Scope.TEAM if scope == "team" else Scope.PRIVATE
        if said is not None:
            text, origin = await self._proven(project, body or "", said)
            body = text if body else body  # a statement alone makes no body
        by_person = said is None and origin == PERSON and shared is Scope.PRIVATE
        writing = Writing(
            path or "",
            content,
            name,
            description,
            type_,
            body,
            title,
            hook,
            base_hash,
            shared,
            by_person,
            when=when,
        )
        if path is None:
            writing = await in_thread(self._labelled, project, writing)
        if shared is Scope.TEAM:
            path = f"{TEAM}{writing.path.removeprefix(TEAM)}"
            writing = replace(writing, path=path)
            await self._check_team_path(project, path)
        by = by_client(call, "memory.write", session_id, origin)
        return await self._write(project, writing, by, request_id)

    @method("memory.delete", "write")
    async def delete(
        self,
        call: Call,
        *,
        cwd: str,
        path: str,
        base_hash: str | None = None,
        request_id: str = "",
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> ChangeMade:
        """Delete one memory and its line in the index; with ``agent`` a memory of that sub-agent.

        A memory of a team that the project has joined is refused: ``team.remove`` removes it for
        all.
        """
        project = await in_thread(self._callers.readable, call, cwd, agent, scope)

        def plan(tree: Tree) -> Draft:
            """Return the deletion. Blocks."""
            joined = self._teams.joined(project.memory_dir)
            return plan_delete(path, base_hash, joined=joined)(tree)

        result = await self._store.commit(
            project.memory_dir,
            plan,
            by_client(call, "memory.delete"),
            request_id=request_id,
            listing=True,
        )
        return ChangeMade(change=result.change)

    @method("team.share", "write")
    async def share(self, call: Call, *, cwd: str, path: str, request_id: str = "") -> Shared:
        """Move a private memory below ``team/``, as one change."""
        project = await in_thread(self._callers.writable, call, cwd)
        await self._teams.check_used(project)
        plan, by = plan_share(path, iso_time(self._clock.now())), by_client(call, "team.share")
        result = await self._store.commit(project.memory_dir, plan, by, request_id=request_id)
        return Shared(change=result.change, path=f"{TEAM}{path}")

    @method("memory.tool", "write")
    async def tool(
        self,
        call: Call,
        *,
        cwd: str,
        command: dict[str, Any],
        request_id: str = "",
        session_id: str = "",
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> ToolAnswer:
        """Run one command of the Messages API's memory tool; `/memories` is the memory directory.

        ``command`` is the tool's input as the model sent it. With ``agent`` the directory is that
        sub-agent's, in its ``scope`` (by default user).
        """
        # To look, too: a model asks.
        project = await in_thread(self._callers.writable, call, cwd, agent, scope)
        by = by_client(call, "memory.tool", session_id, "assistant")
        try:
            parsed = tool.parse(command)
            if parsed.name == "view":
                return ToolAnswer(await in_thread(self._view, project, parsed))
            return await self._edit(project, parsed, by, request_id)
        except _ERRORS_FOR_MODELS as error:
            return ToolAnswer(_sentence_and_hint(error), is_error=True)

    def _labelled(self, project: Project, writing: Writing) -> Writing:
        """Return a statement as a new memory with path, name, description and type. Blocks.

        Raises Invalid if there is no statement, and Conflict if a memory has it as description.
        """
        statement = (writing.body or "").strip()
        if not statement:
            raise Invalid("a memory needs a path or a body", hint="give what is to be remembered")
        headers = self._store.reading.snapshot(project.memory_dir).headers
        taken = {header.path.casefold() for header in headers}
        kind = writing.type or self._likely_type(statement, statement).value
        new = of_statement(statement, MemoryType(kind), "", taken, session="", modified="")
        for header in headers:
            if header.description == new.description:
                raise Conflict(f"{header.path} says that already", path=header.path)
        return replace(
            writing,
            path=f"{writing.name}{SUFFIX}" if writing.name else new.path,
            name=writing.name or new.name,
            description=writing.description or new.description,
            type=kind,
            base_hash="",
        )

    async def _check_team_path(self, project: Project, path: str) -> None:
        """Check that a team's memory may be written. Raises Off, Refused.

        One that stayed when the project left its team may be changed without a team.
        """

        def is_new() -> bool:
            """Return whether no memory has the path, or the project has a team. Blocks."""
            directory = project.memory_dir
            has_team = self._teams.joined(directory)
            return has_team or not self._store.reading.read_many(directory, (path,))

        if await in_thread(is_new):
            await self._teams.check_used(project)

    async def _write(
        self, project: Project, writing: Writing, by: Provenance, request_id: str
    ) -> Written:
        """Write one memory and its line in the index as one change, or the index itself.

        What the person saves is theirs from then on, also where the text stays as another program
        wrote it. Raises Invalid and the errors of ``Store.commit``, as Conflict if ``base_hash`` is
        not the live file's hash and the texts cannot be merged.
        """
        directory, path = project.memory_dir, writing.path
        modified = iso_time(self._clock.now())
        plan = partial(plan_write, session=by.session, modified=modified, origin=by.origin)
        commit = partial(self._store.commit, directory, by=by, request_id=request_id, listing=True)
        result = await commit(plan(writing))
        changed = next((file for file in result.files if file.path == path), None)
        if changed is None and writing.by_person and path != INDEX:
            last = await in_thread(self._last_actor, directory, path)
            if last in (Actor.EXTERNAL, Actor.ASSISTANT):
                # A new time makes it a change of its own, which says from now on who wrote it.
                result = await commit(plan(replace(writing, new_time=True)))
                changed = next((file for file in result.files if file.path == path), None)
        if changed is not None:
            status = "merged" if path in result.merged else changed.action
            return Written(path, changed.after or "", result.change, status, result.note, by.origin)
        current = await in_thread(self._store.read, directory, path)
        status = "unchanged"
        if path == INDEX and result.change:
            status = "merged" if INDEX in result.merged else "updated"
        return Written(path, current.hash, result.change, status, origin=by.origin)

    def _last_actor(self, directory: str, path: str) -> str:
        """Return who wrote a memory last; without a change of it, another program did. Blocks."""
        writers = self._store.consult(lambda past, real: past.writers(real, path), directory)
        return writers.last.actor if writers.last else Actor.EXTERNAL

    def _view(self, project: Project, command: ToolCommand) -> str:
        """Return the content of a file or the listing of a folder. Blocks."""
        path = tool.relative(command.path)
        snapshot = self._store.reading.snapshot(project.memory_dir)
        paths = {header.path for header in snapshot.headers}
        if path == INDEX and snapshot.index is not None:
            return tool.view_file(command, snapshot.index)
        if path not in paths:
            return tool.view_folder(command, snapshot.headers, snapshot.index)
        file = self._store.read(project.memory_dir, path)
        return tool.view_file(command, file.content)

    async def _edit(
        self, project: Project, command: ToolCommand, by: Provenance, request_id: str
    ) -> ToolAnswer:
        """Commit an edit; a repeated request gets the result without another commit."""
        editing = Editing(command, Stamp(by.session, iso_time(self._clock.now())))
        result = await self._store.commit(project.memory_dir, editing, by, request_id=request_id)
        if not result.repeated:
            return ToolAnswer(editing.answer, change=result.change)
        read, paths = self._store.reading.read_many, (tool.relative(command.path),)
        files = await in_thread(read, project.memory_dir, paths)
        text = tool.repeated_answer(command, files[0].content if files else None)
        return ToolAnswer(text, change=result.change)

    @method("memory.list", "read")
    def list(
        self,
        call: Call,
        *,
        cwd: str,
        scope: AnyScope | None = None,
        limit: Limit | None = None,
        after: str | None = None,
        agent: AgentName = "",
        contains: Words = "",
        type_: AnyType = "",
    ) -> Listed:
        """The memories of a project, newest first, a page at a time.

        ``after`` is the ``next`` of the previous page. With ``agent`` the memories of that
        sub-agent are listed, in the ``scope`` user, project or local (by default user).
        ``contains`` selects memories with each of its words in their path, name or description,
        without regard to case. ``type`` selects those of a type, and ``none`` those without one.
        """
        start = sort_key(after) if after else None
        project = self._callers.readable(call, cwd, agent, scope)
        snapshot = self._store.reading.snapshot(project.memory_dir)
        headers: Sequence[Header] = snapshot.headers
        if scope is not None and not agent:
            wants_team = scope == "team"
            headers = [h for h in headers if h.path.startswith(TEAM) == wants_team]
        if contains or type_:
            headers = filtered(headers, contains, type_)
        count = len(headers)
        if start is not None:
            first = bisect_right(headers, start, key=newest_first)
            headers = headers[first:]
        page = page_of(headers, limit, self._clock.now())
        has_more = len(page) < len(headers)
        following = cursor(headers[len(page) - 1]) if has_more else None
        loaded = load(snapshot.index)
        return Listed(
            memory_dir=project.memory_dir,
            memories=page,
            count=count,
            next=following,
            index=IndexFacts(loaded.lines, loaded.bytes, loaded.cut),
            problems=first_problems(snapshot.problems),
        )


def _sentence_and_hint(error: MemdError) -> str:
    """Return an error's sentence and hint as the result of the memory tool."""
    return f"{error.sentence}. {error.hint}." if error.hint else error.sentence

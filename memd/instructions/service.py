"""Answer the daemon's requests about instruction files; the only file of this room that awaits."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, TypeVar

import anyio
import msgspec
from anyio import CapacityLimiter, from_thread, to_thread
from msgspec import Struct

from memd.base.covered import Covered, in_no_file
from memd.base.errors import Busy, Refused
from memd.base.instruction_files import InstructionFile, InstructionText
from memd.base.names import printable
from memd.base.settings import Settings
from memd.base.values import Project
from memd.base.yielding import yielding
from memd.instructions.compose import etag
from memd.instructions.disk import RealDisk
from memd.instructions.reading import Approval, InstructionReader
from memd.instructions.reading import InstructionRequest as InstructionRequest
from memd.methods.callers import Callers
from memd.methods.method import method
from memd.projects.projects import ClientFolders
from memd.rpc.call import Call
from memd.state.docs import Docs

_THREADS = 2  # so that a disk that hangs does not block all threads of the daemon
_SECONDS = 5.0  # for one request; 200 files take a hundredth of that

# Files that a conversation read or changed.
Touched = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=4096)], ...], msgspec.Meta(max_length=1000)
]
T = TypeVar("T")


class InstructionList(Struct, frozen=True):
    """The files of a project, loaded or not, and the text that a client puts into a prompt.

    ``external`` are the includes from outside that the user has not allowed. ``allowed`` is the
    user's decision about them, ``None`` if there is none. ``etag`` changes with the text.
    """

    files: tuple[InstructionFile, ...]
    problems: tuple[str, ...]
    external: tuple[str, ...]
    allowed: bool | None
    text: str
    etag: str


class Instructions:
    """The instruction files of all projects.

    ``folders`` returns the folders in which Claude Code looks for a project's files; it blocks.
    ``seconds`` is the time limit of one request.
    """

    def __init__(
        self,
        table: Docs,
        folders: Callable[[Project, Mapping[str, str]], ClientFolders],
        callers: Callers,
        seconds: float = _SECONDS,
    ) -> None:
        self._table = table
        self._callers = callers
        self._seconds = seconds
        self._reader = InstructionReader(table, folders, RealDisk())
        self._threads = CapacityLimiter(_THREADS)

    @method("instructions", "read")
    async def instructions(
        self,
        call: Call,
        *,
        cwd: str,
        touched: Touched = (),
        allow: bool | None = None,
    ) -> InstructionList:
        """The instruction files of a working directory, and the loaded ones as one text for a
        prompt.

        The files come in the order of loading; a later one overrides an earlier one. A file that is
        not loaded has the reason. ``touched`` are files that the conversation read or changed:
        rules for such files are loaded too. The text has at most 100,000 characters, and unchanged
        files give the same bytes. ``allow`` decides whether files from outside of the project may
        be included, for this project alone and until the next decision; a program that an assistant
        started may deny but not allow.
        """

        def begin() -> Project:
            """Return the project once the caller may do what it wants. Blocks."""
            project = self._callers.place(call, cwd)
            if allow and self._callers.started_by_an_assistant(call):
                raise _approval_refused(project.root)
            return project

        project = await to_thread.run_sync(begin)
        request = InstructionRequest(project, call.caller.environment, touched)
        return await self.list(request, allow=allow)

    async def list(
        self, request: InstructionRequest, *, allow: bool | None = None
    ) -> InstructionList:
        """Return the files of a project; ``allow`` is stored as the user's decision first.

        A permission is stored only if the files could be read. Raises Busy, and
        StateUnusableError for a decision that cannot be stored.
        """
        root = request.project.root
        if allow is False:
            await to_thread.run_sync(self._table.put, Approval(allowed=False), root)
        reading = await self._in_thread(partial(self._reader.read, request, external=allow))
        if allow:
            await to_thread.run_sync(self._table.put, Approval(allowed=True), root)
        allowed = await to_thread.run_sync(self._reader.decision, request.project)
        text, external = reading.text, reading.resolution.external
        return InstructionList(text.files, text.problems, external, allowed, text.text, text.etag)

    async def text(self, project: Project, environment: Mapping[str, str]) -> InstructionText:
        """Return the text for a prompt; after a timeout, no text and a problem.

        ``environment`` has the variables of the caller.
        """
        request = InstructionRequest(project, environment)
        try:
            return await self._in_thread(lambda: self._reader.read(request).text)
        except Busy as error:
            return InstructionText("", etag(""), (), (error.sentence,))

    async def covered(self, project: Project, _: Settings) -> Covered:
        """Return a function that names the file of a project in which a text stands.

        It names no file if the files cannot be read in time.
        """
        request = InstructionRequest(project, {})
        with suppress(Busy):
            return await self._in_thread(lambda: self._reader.read(request).covered)
        return in_no_file

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run work in one of this room's threads, and return its result.

        Raises Busy after some seconds; the work then ends at its next yield.
        """
        with anyio.move_on_after(self._seconds), yielding(from_thread.check_cancelled):
            return await to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=True)
        raise Busy(
            f"the instruction files could not be read within {self._seconds:g} s",
            hint="a disk hangs, or the machine is very busy; memory works without them",
        )


def _approval_refused(root: str) -> Refused:
    """Return the error that a program that an assistant started tried to approve includes."""
    shown = printable(root)
    return Refused(
        f"whether {shown} may include files from outside is for the person to say",
        hint="run memctl instructions --allow in a terminal of your own",
        root=shown,
    )

"""Answer the daemon's requests about instruction files; the only file of this room that awaits."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, from_thread, to_thread
from msgspec import Struct

from memd.base.covered import Covered, in_no_file
from memd.base.errors import Busy
from memd.base.settings import Settings
from memd.base.values import Project
from memd.base.yielding import yielding
from memd.instructions.compose import InstructionText as InstructionText
from memd.instructions.compose import etag
from memd.instructions.disk import RealDisk
from memd.instructions.reading import Approval, InstructionReader
from memd.instructions.reading import InstructionRequest as InstructionRequest
from memd.instructions.values import InstructionFile
from memd.projects.projects import ClientFolders
from memd.state.docs import Docs

_THREADS = 2  # so that a disk that hangs does not block all threads of the daemon
_SECONDS = 5.0  # for one request; 200 files take a hundredth of that

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
        seconds: float = _SECONDS,
    ) -> None:
        self._table = table
        self._seconds = seconds
        self._reader = InstructionReader(table, folders, RealDisk())
        self._threads = CapacityLimiter(_THREADS)

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

    async def text(self, request: InstructionRequest) -> InstructionText:
        """Return the text for a prompt; after a timeout, no text and a problem."""
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

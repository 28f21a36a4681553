"""Answer the daemon's requests about instruction files; the only file of this room that awaits."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import CapacityLimiter, from_thread, to_thread
from msgspec import Struct

from memd.core.covered import Covered, in_no_file
from memd.core.errors import MemdError
from memd.core.settings import Settings
from memd.core.values import Project
from memd.core.yielding import yielding
from memd.instructions.check import InstructionIssue
from memd.instructions.compose import InstructionText as InstructionText
from memd.instructions.compose import etag
from memd.instructions.disk import RealDisk
from memd.instructions.reading import Checked as Checked
from memd.instructions.reading import InstructionReader, InstructionReading, Memories
from memd.instructions.reading import InstructionRequest as InstructionRequest
from memd.instructions.values import InstructionFile, View
from memd.instructions.views import VIEWS
from memd.projects.projects import ClientFolders
from memd.state.tables import Approvals

_THREADS = 2  # so that a disk that hangs does not block all threads of the daemon
_SECONDS = 5.0  # for one view; one of 200 files takes a hundredth of that
_CHECK_SECONDS = 20.0  # for all views, with the project's files

T = TypeVar("T")


class InstructionsTimeoutError(MemdError):
    """The instruction files of a project could not be read in time."""

    code = 1084
    kind = "instructions_timeout"
    retryable = True
    hint = "a disk hangs, or the machine is very busy; memory works without them"
    exit_status = 75

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the instruction files could not be read within {seconds:g} s")


class InstructionList(Struct, frozen=True):
    """The files of a view of a project, loaded or not, and the problems.

    ``external`` are the includes from outside that the user has not allowed. ``allowed`` is the
    user's decision about them, ``None`` if there is none.
    """

    view: View
    files: tuple[InstructionFile, ...]
    problems: tuple[str, ...]
    external: tuple[str, ...]
    allowed: bool | None


class InstructionTextList(InstructionList, frozen=True):
    """The files of a view, and the text that a client puts into a prompt."""

    text: str
    etag: str


class Approved(Struct, frozen=True):
    """The user's decision for the project at ``root``, and the includes that it concerns now."""

    root: str
    allowed: bool
    external: tuple[str, ...]


class Instructions:
    """The instruction files of all projects.

    ``folders`` returns the folders in which a project's clients look for files; it blocks.
    ``seconds`` is the time limit of one view. Methods raise InstructionsTimeoutError.
    """

    def __init__(
        self,
        approvals: Approvals,
        folders: Callable[[Project, Mapping[str, str]], ClientFolders],
        seconds: float = _SECONDS,
    ) -> None:
        self._approvals = approvals
        self._seconds = seconds
        self._reader = InstructionReader(approvals, folders, RealDisk(), VIEWS)
        self._threads = CapacityLimiter(_THREADS)
        self._check_threads = CapacityLimiter(1)  # separate: checks take long, prompts must not

    async def list(self, request: InstructionRequest) -> InstructionList:
        """Return the files of a view of a project, loaded or not."""
        return await self._in_thread(partial(self._list, request))

    async def read(self, request: InstructionRequest) -> InstructionTextList:
        """Return the files of a view, and one text of all loaded files."""
        return await self._in_thread(partial(self._read, request))

    async def text(self, request: InstructionRequest) -> InstructionText:
        """Return the text for a prompt; after a timeout, no text and a problem."""
        try:
            return await self._in_thread(lambda: self._reader.read(request).text)
        except InstructionsTimeoutError as error:
            return InstructionText("", etag(""), (), (error.sentence,))

    async def faults(self, request: InstructionRequest) -> tuple[InstructionIssue, ...]:
        """Return the issues of single files, which are quick to find."""
        return await self._in_thread(partial(self._reader.faults, request))

    async def check(self, request: InstructionRequest, memories: Memories = ()) -> Checked:
        """Return all issues for a person: see ``InstructionReader.check``."""
        work = partial(self._reader.check, request, memories)
        return await _in_thread(work, self._check_threads, _CHECK_SECONDS)

    async def covered(self, project: Project, settings: Settings) -> Covered:
        """Return a function that names the file of a project that already says a text.

        It names no file if the settings switch that off or the files cannot be read in time.
        """
        if not settings.instructions.already_said:
            return in_no_file
        request = InstructionRequest(project, settings, {})
        with suppress(InstructionsTimeoutError):
            return await self._in_thread(lambda: self._reader.read(request).covered)
        return in_no_file

    async def approve(self, request: InstructionRequest, *, allowed: bool) -> Approved:
        """Store whether a project may include files from outside.

        An error never leaves a permission that was not there before. Raises StateUnusableError.
        """
        root = request.project.root
        store_decision = partial(self._approvals.decide, root, allowed=allowed)
        # A prohibition is stored before the files are read, a permission only after that.
        if not allowed:
            await to_thread.run_sync(store_decision)
        reading = await self._in_thread(partial(self._reader.read, request, external=False))
        if allowed:
            await to_thread.run_sync(store_decision)
        return Approved(root, allowed, reading.resolution.external)

    def _list(self, request: InstructionRequest) -> InstructionList:
        """Return the files of a view. Blocks."""
        return InstructionList(**self._facts(request, self._reader.read(request)))

    def _read(self, request: InstructionRequest) -> InstructionTextList:
        """Return the text of a view. Blocks."""
        reading = self._reader.read(request)
        text = reading.text
        return InstructionTextList(**self._facts(request, reading), text=text.text, etag=text.etag)

    def _facts(self, request: InstructionRequest, reading: InstructionReading) -> dict[str, Any]:
        """Return the members of an ``InstructionList``."""
        return {
            "view": request.view,
            "files": reading.text.files,
            "problems": reading.text.problems,
            "external": reading.resolution.external,
            "allowed": self._reader.decision(request.project),
        }

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run work in one of this room's threads, for a limited time."""
        return await _in_thread(work, self._threads, self._seconds)


async def _in_thread(work: Callable[[], T], threads: CapacityLimiter, seconds: float) -> T:
    """Run a function that blocks in a thread, and return its result.

    Raises InstructionsTimeoutError after ``seconds``; the function then ends at its next yield.
    """
    with anyio.move_on_after(seconds), yielding(from_thread.check_cancelled):
        return await to_thread.run_sync(work, limiter=threads, abandon_on_cancel=True)
    raise InstructionsTimeoutError(seconds)

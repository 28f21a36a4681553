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

_THREADS = 2  # a disk that hangs must not take all that the daemon has
_SECONDS = 5.0  # for one view; of 200 files it takes a hundredth of that
_CHECK_SECONDS = 20.0  # for all of them, with the project's files

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
    """What a view loads of a project, what it does not, and why.

    ``external`` are the includes from outside that wait for the user; ``allowed`` is what they
    decided, ``None`` where they did not.
    """

    view: View
    files: tuple[InstructionFile, ...]
    problems: tuple[str, ...]
    external: tuple[str, ...]
    allowed: bool | None


class InstructionTextList(InstructionList, frozen=True):
    """The same, and what a client puts into a prompt."""

    text: str
    etag: str


class Approved(Struct, frozen=True):
    """What the user decided for the project at ``root``, and which includes it is about now."""

    root: str
    allowed: bool
    external: tuple[str, ...]


class Instructions:
    """The instruction files of all projects.

    ``folders`` says where a project's clients look; it blocks. A view has so many
    ``seconds``. Methods raise InstructionsTimeoutError.
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
        self.cache = self._reader.cache
        self._threads = CapacityLimiter(_THREADS)
        self._checks = CapacityLimiter(1)  # they take long, and no prompt waits for one

    async def list(self, request: InstructionRequest) -> InstructionList:
        """Return what a view loads of a project and what it does not."""
        return await self._in_thread(partial(self._list, request))

    async def read(self, request: InstructionRequest) -> InstructionTextList:
        """Return the same with one text of all that is loaded."""
        return await self._in_thread(partial(self._read, request))

    async def text(self, request: InstructionRequest) -> InstructionText:
        """Return what goes beside a prompt; where that fails, no text and the problem."""
        try:
            return await self._in_thread(lambda: self._reader.read(request).text)
        except InstructionsTimeoutError as error:
            return InstructionText("", etag(""), (), (error.sentence,))

    async def faults(self, request: InstructionRequest) -> tuple[InstructionIssue, ...]:
        """Return what is to be mended in the files themselves, which is quick to tell."""
        return await self._in_thread(partial(self._reader.faults, request))

    async def check(self, request: InstructionRequest, memories: Memories = ()) -> Checked:
        """Return what a person may want to mend: see ``InstructionReader.check``."""
        work = partial(self._reader.check, request, memories)
        return await _in_thread(work, self._checks, _CHECK_SECONDS)

    async def covered(self, project: Project, settings: Settings) -> Covered:
        """Return what tells which file of a project says a text already.

        None does where the settings do not want that, or where the files cannot be read in time.
        """
        if not settings.instructions.already_said:
            return in_no_file
        request = InstructionRequest(project, settings, {})
        with suppress(InstructionsTimeoutError):
            return await self._in_thread(lambda: self._reader.read(request).covered)
        return in_no_file

    async def approve(self, request: InstructionRequest, *, allowed: bool) -> Approved:
        """Write down whether a project may include files from outside.

        After an error nothing is allowed that was not. Raises StateUnusableError.
        """
        root = request.project.root
        decide = partial(self._approvals.decide, root, allowed=allowed)
        if not allowed:
            await to_thread.run_sync(decide)
        reading = await self._in_thread(partial(self._reader.read, request, external=False))
        if allowed:
            await to_thread.run_sync(decide)
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
    """Return what a function that blocks does, in time; later it ends at its next yield.

    Raises InstructionsTimeoutError.
    """
    with anyio.move_on_after(seconds), yielding(from_thread.check_cancelled):
        return await to_thread.run_sync(work, limiter=threads, abandon_on_cancel=True)
    raise InstructionsTimeoutError(seconds)

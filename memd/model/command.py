"""Use a program that the user names as a model. This is the only file that starts a process.

Rules of this file
- Each request starts one process; two never run at once. The request is its standard input, the
  reply its standard output; both are bounded.
- The process starts in an empty directory and a process group of its own, with a mark in its
  environment, and is recorded in the state file before that.
- When it ends, exceeds its time, prints too much or is cancelled, all processes that it left are
  killed first. Processes that a killed daemon left are killed at the next start.
"""

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from subprocess import PIPE

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from memd.model import plain, presets, processes
from memd.model.errors import (
    ModelError,
    ModelNotConfiguredError,
    ModelReplyError,
    ModelUnavailableError,
    ProgramFailedError,
    ProgramMissingError,
)
from memd.model.patient import overdue
from memd.model.port import Ask, Reply, Usage
from memd.model.presets import Program
from memd.model.processes import StartedProgram
from memd.state.database import StateUnusableError
from memd.state.docs import Docs

SECONDS = 120.0  # the longest time of one run
_OUTPUT_BYTES = 4 * 1024 * 1024  # a longer output is no reply
_ERROR_BYTES = 4_096  # of the end of its error output
_CHUNK_BYTES = 65_536  # read or written at once
_FOLDER = "model"  # below the state directory; contains the program's working directory
# Folders where programs are searched besides PATH; the first ones are below a person's home.
_HOME_FOLDERS = (".local/bin", ".claude/local", ".npm-global/bin", ".bun/bin")
_SYSTEM_FOLDERS = ("/usr/local/bin", "/opt/homebrew/bin")
_NOT_FOUND = "it is not there"


class ProgramRuns:
    """Runs programs. Whoever calls ``run`` holds ``turn``, so that only one runs at a time.

    ``table`` records the running program; its working directory is below ``state_dir``.
    """

    def __init__(self, environ: Mapping[str, str], state_dir: str, table: Docs) -> None:
        self.environ = environ  # the daemon's variables
        self.turn = anyio.Lock()
        self._folder = f"{state_dir}/{_FOLDER}"  # of the running program; removed afterwards
        self._table = table
        self._running: StartedProgram | None = None  # the program that runs now

    def path(self, name: str) -> str:
        """Return the path of a program, "" if it is not found. Blocks."""
        home = self.environ.get("HOME", "")
        home_folders = [f"{home}/{folder}" for folder in _HOME_FOLDERS]
        folders = (self.environ.get("PATH", ""), *home_folders, *_SYSTEM_FOLDERS)
        search_path = ":".join(folder for folder in folders if folder)
        return shutil.which(name, path=search_path) or ""

    async def recover(self) -> tuple[str, ...]:
        """Kill the programs that an earlier daemon left; return a sentence about it, or nothing."""
        return await to_thread.run_sync(self._recover)

    async def runs_below(self, pid: int) -> bool:
        """Return whether a process or one of its ancestors belongs to the running program."""
        running = self._running
        if running is None:
            return False
        return await to_thread.run_sync(processes.descends, pid, running)

    async def run(self, program: Program, model: str, text: str, seconds: float) -> str:
        """Run a program with ``text`` as its input and return its output. Raises ModelError."""
        started = StartedProgram(uuid.uuid4().hex)
        try:
            path, environ = await to_thread.run_sync(self._prepare, program, started)
        except StateUnusableError as error:
            raise ModelUnavailableError(error.sentence) from error
        self._running = started
        try:
            with anyio.fail_after(seconds):
                command = program.command(path, model)
                async with await anyio.open_process(
                    command,
                    stderr=PIPE,
                    cwd=f"{self._folder}/empty",
                    env=environ,
                    start_new_session=True,
                ) as process:
                    return await self._communicate(process, started, text)
        except TimeoutError:
            raise overdue(seconds) from None
        except OSError as error:
            raise ProgramMissingError(path, str(error.strerror)) from None
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._end, self._running)
            self._running = None

    async def _communicate(self, process: Process, started: StartedProgram, text: str) -> str:
        """Write ``text`` to a process, return its output and kill all processes that it left.

        Raises ModelReplyError, ProgramFailedError and ModelUnavailableError.
        """
        started = StartedProgram(started.mark, process.pid)
        self._running = started
        output, errors = _Pipe(_OUTPUT_BYTES), _Pipe(_ERROR_BYTES, latest=True)
        try:
            began = await to_thread.run_sync(processes.began, process.pid)
            self._running = started = StartedProgram(started.mark, process.pid, began)
            await to_thread.run_sync(self._record, started)
            async with anyio.create_task_group() as group:
                group.start_soon(_feed, process.stdin, text.encode(errors="replace"))
                group.start_soon(output.fill, process.stdout, group.cancel_scope.cancel)
                group.start_soon(errors.fill, process.stderr)
                await process.wait()
                # Child processes that it left keep the pipes open, so that reading would not end.
                await to_thread.run_sync(processes.end, started)
        except StateUnusableError as error:
            raise ModelUnavailableError(error.sentence) from error
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(processes.end, self._running)
        if output.full:
            raise ModelReplyError(cause="it is longer than any reply")
        if process.returncode:
            words = presets.complaint(output.text, errors.text)
            raise ProgramFailedError(process.returncode, words)
        return output.text

    def _prepare(self, program: Program, started: StartedProgram) -> tuple[str, dict[str, str]]:
        """Record a program and create its directory; return its path and environment.

        Blocks. Raises ProgramMissingError and StateUnusableError.
        """
        path = self.path(program.argv[0])
        if not path:
            raise ProgramMissingError(program.argv[0], _NOT_FOUND)
        environ = program.environment(self.environ) | {processes.MARK: started.mark}
        # A program may be a script that starts with ``env node``, and node lies beside it.
        environ["PATH"] = f"{environ.get('PATH', '')}:{os.path.dirname(path)}".lstrip(":")
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(f"{self._folder}/empty", 0o700, exist_ok=True)
        if program.settings:
            file = f"{self._folder}/{presets.SETTINGS}"
            with open(file, "w", encoding="utf-8", opener=_open_private) as opened:
                opened.write(program.settings)
            environ[program.settings_variable] = file
        self._record(started)
        return path, environ

    def _record(self, program: StartedProgram) -> None:
        """Store a program that is about to start, or what became known of it."""
        # Not synced: after a power cut no program is left, and a killed process loses no write.
        self._table.put(program, key=program.mark, synced=False)

    def _end(self, program: StartedProgram) -> None:
        """Kill all processes of a program, and remove its record and its directory. Blocks.

        The directory belongs to the one program that runs at a time.
        """
        # A program with a process that survives stays recorded: the next daemon ends it.
        if processes.end(program):
            with suppress(StateUnusableError):
                self._table.delete(StartedProgram, key=program.mark, synced=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _recover(self) -> tuple[str, ...]:
        """Kill the programs that are still recorded, and return a sentence about it. Blocks."""
        recorded = self._table.list_all(StartedProgram).values()
        for program in recorded:
            self._end(program)
        count = len(recorded)
        return (f"ended what was left of {count} programs of models",) if count else ()


class ProgramModel:
    """A program as a Model: it handles one request at a time and replies with text.

    ``problem`` is the sentence why the last request failed for good, "" if it did not.
    """

    calls_tools = False

    def __init__(self, program: Program, runs: ProgramRuns) -> None:
        self.problem = ""
        self._program = program
        self._runs = runs

    @property
    def host(self) -> str:
        """The program's path, or its name if it is not found."""
        return self._runs.path(self._program.argv[0]) or self._program.argv[0]

    @property
    def source(self) -> str:
        """The setting that names the program."""
        setting = "argv" if self._program.name.startswith("command:") else "preset"
        return f"model.{setting} of memd.toml"

    async def warm(self) -> None:
        """Do nothing, since a program is started for each request."""

    async def reach(self, _seconds: float) -> ModelError | None:
        """Return the error if the program is not found; it is not run, as each run counts."""
        name = self._program.argv[0]
        if await to_thread.run_sync(self._runs.path, name):
            return None
        return ProgramMissingError(name, _NOT_FOUND)

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply of one run of the program. Raises ModelError."""
        seconds = min(ask.seconds, SECONDS)
        try:
            printed = await self._runs.run(self._program, ask.model, plain.prompt(ask), seconds)
            text, usage = self._program.answer(printed)
        except ModelNotConfiguredError as error:
            self.problem = error.sentence
            raise
        self.problem = ""
        if on_usage is not None and usage != Usage():
            on_usage(usage)
        content = ({"type": "text", "text": text},)
        return Reply(text, (), "end_turn", content, usage, ask.model)


class _Pipe:
    """A buffer of the first ``most`` bytes of a stream, or with ``latest`` of its last ones.

    ``full`` says that the stream has more than its first ``most`` bytes.
    """

    def __init__(self, most: int, *, latest: bool = False) -> None:
        self.full = False
        self._most = most  # bytes
        self._latest = latest  # whether the last bytes are wanted
        self._data = bytearray()  # read so far

    @property
    def text(self) -> str:
        """The text read so far."""
        return self._data.decode(errors="replace")

    async def fill(
        self, stream: ByteReceiveStream | None, on_full: Callable[[], None] | None = None
    ) -> None:
        """Read a stream to its end; call ``on_full``, if given, when the limit is passed."""
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while stream is not None:
                self._data += await stream.receive(_CHUNK_BYTES)
                if self._latest:
                    del self._data[: -self._most]
                elif len(self._data) > self._most and on_full is not None:
                    self.full = True
                    on_full()


async def _feed(stream: ByteSendStream | None, data: bytes) -> None:
    """Write a request to a program, which may reply or end without reading all of it."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        if stream is not None:
            for start in range(0, len(data), _CHUNK_BYTES):
                await stream.send(data[start : start + _CHUNK_BYTES])
            await stream.aclose()


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read; for ``open(opener=…)``."""
    return os.open(path, flags, 0o600)

"""One run of memctl: its options, its surroundings and, once needed, its connection."""

import argparse
import os
import shlex
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import Struct

from memd import __version__
from memd.base import limits, places
from memd.base.errors import MemdError
from memd.base.names import SUFFIX
from memd.cli.output import Screen
from memd.client.errors import DaemonUnavailableError, RemoteError, RequestUndeliveredError

if TYPE_CHECKING:
    from memd.client.launch import Client

ANSWER_SECONDS = 30.0
JOB_SECONDS = 24 * 60 * 60.0  # a job has its own time limit; a person has Ctrl-C
START_SECONDS = 10.0  # for a daemon to start
STOP_SECONDS = limits.DRAIN_SECONDS + 15
_LAST_WORDS_SECONDS = 0.5  # to wait until an ending daemon has logged why it ends
# Calling these twice does no harm: a daemon that restarts costs them nothing.
_REPEATABLE_METHODS = (
    "doctor",
    "hello",
    "job.list",
    "job.wait",
    "memory.diff",
    "memory.history",
    "memory.list",
    "memory.read",
    "memory.search",
    "memory.why",
    "message.receive",
    "report",
    "rpc.discover",
    "status",
)
_UNKNOWN_CODES = (-32601, -32602)  # for a method, or parameters, that the daemon does not know
_NOT_UTF8 = "it is not UTF-8"
CANNOT_READ = "{} cannot be read: {}"
_DIRECTORY_GONE = "the current directory does not exist any more"
_DIRECTORY_NOT_UTF8 = "the name of the current directory is not UTF-8"
_OTHER_DIRECTORY = "change into another directory, or name one with --cwd"
_AMBIGUOUS = "{} may be {}"
_ALL_LISTED = "memctl list shows them all"
TAKE_OVER = "memctl restart lets what is installed take over"


class CommandError(MemdError):
    """A command cannot be carried out; ``sentence`` is a format string for ``words``."""

    def __init__(self, sentence: str, *words: object, hint: str = "") -> None:
        super().__init__(sentence.format(*words))
        self.hint = hint  # of this instance alone


class CommandLineError(CommandError):
    """The command line lacks something, or its parts contradict each other."""

    exit_status = 2


class StillStoppingError(MemdError):
    """The daemon was asked to end but has not finished its work yet."""

    retryable = True
    hint = "wait a little; it ends by itself"
    exit_status = 75

    def __init__(self, seconds: float) -> None:
        super().__init__(f"memd was asked to end and is still at work after {seconds:g} s")


class OutputClosedError(MemdError):
    """Standard output is closed, so nobody would see what is acknowledged as read."""

    def __init__(self) -> None:
        super().__init__("standard output is closed; no message is read")


def has_surrogates(text: str) -> bool:
    """Return whether a text from the operating system was not valid UTF-8."""
    return any("\ud800" <= char <= "\udfff" for char in text)


class Surroundings(Struct, frozen=True):
    """A process's environment variables, home directory and standard streams.

    ``unread`` says whether the process was started with its standard output closed.
    """

    environ: Mapping[str, str]
    home: str
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    unread: bool = False


class Invocation:
    """One run of a command: options, output and connection. Close it at the end.

    ``progress`` is called with the daemon's progress reports during a long call.
    """

    progress: Callable[[dict[str, Any]], None] | None = None

    def __init__(self, options: argparse.Namespace, surroundings: Surroundings) -> None:
        self.options = options
        self.surroundings = surroundings
        self.screen = Screen(
            surroundings.stdout,
            surroundings.stderr,
            surroundings.environ,
            as_json=options.json,
            quiet=options.quiet,
            color=options.color or "auto",
        )
        self._client: Client | None = None  # the connection, once a call needed it

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The environment variables, with the socket that ``--socket`` names."""
        if not self.options.socket:
            return self.surroundings.environ
        return {**self.surroundings.environ, places.SOCKET: os.path.abspath(self.options.socket)}

    @cached_property
    def places(self) -> places.Places:
        """The paths of memd's files and socket. Raises Refused."""
        return places.find(self.environ, self.surroundings.home)

    @cached_property
    def cwd(self) -> str:
        """The absolute path of ``--cwd``, or else of the current directory. Raises CommandError."""
        try:
            path: str = os.path.abspath(self.options.cwd or ".")
        except FileNotFoundError as error:
            raise CommandError(_DIRECTORY_GONE, hint=_OTHER_DIRECTORY) from error
        if has_surrogates(path):
            raise CommandError(_DIRECTORY_NOT_UTF8, hint=_OTHER_DIRECTORY)
        return path

    def client(self, *, start: bool = True) -> "Client":
        """Return the connection, opened at the first call. Raises DaemonUnavailableError."""
        if self._client is None:
            from memd.client.launch import connect  # noqa: PLC0415 - not every command asks a daemon

            self._client = connect(
                self.places,
                self.environ,
                name="memctl",
                version=__version__,
                start=start and not self.options.no_start,
                deadline=START_SECONDS,
            )
        return self._client

    def call(self, method: str, *, seconds: float = ANSWER_SECONDS, **params: object) -> Any:
        """Call a method and return its result; parameters that are ``None`` are left out.

        ``--timeout`` wins over ``seconds``. Raises AnswerTimeoutError, DaemonUnavailableError
        and RemoteError. The hint of a RemoteError names the remedy if a daemon of another version
        does not know the method or its parameters.
        """
        set_params = {name: value for name, value in params.items() if value is not None}
        timeout = self.options.timeout or seconds
        try:
            return self._call_twice(method, set_params, timeout)
        except RemoteError as error:
            versions = self.other_version() if error.code in _UNKNOWN_CODES else ""
            if versions:
                error.hint = f"{versions}: {TAKE_OVER}"
            raise
        except DaemonUnavailableError as error:  # the daemon's log may say why it went away
            from memd.client.launch import last_words  # noqa: PLC0415 - not every command asks

            path = self._client.socket_path if self._client else self.places.socket
            words = last_words(self.places, _LAST_WORDS_SECONDS)
            cause = f"{error.facts['cause']}; {words}" if words else str(error.facts["cause"])
            raise DaemonUnavailableError(path, cause, self.places.log) from error

    def _call_twice(self, method: str, params: dict[str, object], seconds: float) -> Any:
        """Call a method; if the connection breaks, call it once more where that is safe."""
        try:
            return self.client().call(method, params, seconds, progress=self.progress)
        except RequestUndeliveredError:
            pass  # the daemon did not get the request, so any method may be called again
        except DaemonUnavailableError:
            # The daemon answers a repeated request id with its stored result.
            is_repeatable = "request_id" in params or method in _REPEATABLE_METHODS
            was_connected = self._client is not None
            if not was_connected or not is_repeatable:
                raise
        self.close()
        return self.client().call(method, params, seconds, progress=self.progress)

    def other_version(self) -> str:
        """Return a sentence that names both versions, or "" if the daemon has memctl's."""
        running = self.client().server.get("version", __version__)
        differs = running != __version__
        return f"memd {running} runs, and this is memctl {__version__}" if differs else ""

    def ask(self, method: str, *, seconds: float = ANSWER_SECONDS, **params: object) -> Any:
        """Call a method for the project of ``cwd``, or for the sub-agent that ``--agent`` names."""
        agent = getattr(self.options, "agent", None)
        if agent:
            params = {"agent": agent, "scope": self.options.scope, **params}
        return self.call(method, seconds=seconds, cwd=self.cwd, **params)

    def command(self, *words: str, directory: str = "") -> str:
        """Return a command line for the same memories, to be printed.

        It names the project of ``directory``, or of ``--cwd`` if it was given, and the sub-agent.
        """
        options = self.options
        project = directory or (self.cwd if options.cwd else "")
        line = ["memctl", *(("--cwd", project) if project else ()), *words]
        if agent := getattr(options, "agent", None):
            line += ["--agent", agent, *(("--scope", options.scope) if options.scope else ())]
        return shlex.join(line)

    def request(self, *, seconds: float = ANSWER_SECONDS, **overrides: object) -> Any:
        """Call the command's method with its operands and options; ``overrides`` replace them.

        Pass ``cwd=None`` to a method that is about no project. Raises what ``call`` raises.
        """
        command = self.options.run
        params: dict[str, object] = {} if "cwd" in overrides else {"cwd": self.cwd}
        for argument in (*command.operands, *command.options):
            value = getattr(self.options, argument.attribute)
            is_absent = value is False or value == []  # ``None`` is left out by ``call``
            if argument.parameter and not is_absent:
                params[argument.parameter] = value
        return self.call(command.api_method, seconds=seconds, **{**params, **overrides})

    def memory(self, name: str) -> str:
        """Return the path of the memory that has this path, file name or name.

        A name that no memory has is returned as a path, since the memory may have been deleted.
        Raises CommandError if several have it, and what ``call`` raises.
        """
        if name.endswith(SUFFIX):
            return name
        paths = [path for path, names in self._names_by_memory() if name in names]
        if len(paths) > 1:
            raise CommandError(_AMBIGUOUS, name, " or ".join(sorted(paths)), hint="name its path")
        return paths[0] if paths else f"{name}{SUFFIX}"

    def no_memory(self, name: str) -> CommandError:
        """Return the error for a missing memory, with the nearest ones. Raises as ``call``."""
        from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name needs it

        path_by_name = {alias: path for path, names in self._names_by_memory() for alias in names}
        nearest_names = get_close_matches(name.removesuffix(SUFFIX), path_by_name, 3)
        paths = dict.fromkeys(path_by_name[near] for near in nearest_names)  # each path once
        nearest = f"; the nearest: {', '.join(paths)}" if paths else ""
        return CommandError("there is no memory {}{}", name, nearest, hint=_ALL_LISTED)

    def _names_by_memory(self) -> list[tuple[str, set[str]]]:
        """Return the path of each memory of the project, with the names that mean it."""
        result, cursor = [], None
        while True:
            page = self.ask("memory.list", after=cursor)
            for memory in page["memories"]:
                stem = memory["path"].removesuffix(SUFFIX)
                names = {stem, stem.rpartition("/")[2], memory["name"]} - {""}
                result.append((memory["path"], names))
            cursor = page.get("next")
            if not cursor:
                return result

    def stop(self) -> dict[str, Any] | None:
        """End the daemon, wait for that and return its answer, or ``None`` if none is running.

        Raises what ``call`` raises, and StillStoppingError when it takes too long.
        """
        from memd.client.launch import wait_until_gone  # noqa: PLC0415 - not every command waits

        try:
            self.client(start=False)
        except DaemonUnavailableError:
            return None
        answer: dict[str, Any] = self.call("shutdown")
        seconds = self.options.timeout or STOP_SECONDS
        try:
            # The daemon closes the connection when it ends, which raises DaemonUnavailableError.
            for _ in self.client().notifications(seconds):
                pass
        except DaemonUnavailableError:
            pid = self.client().server.get("pid", 0)
            self.close()
            wait_until_gone(self.places, pid)
            return answer
        raise StillStoppingError(seconds)

    def read(self, path: str) -> str:
        """Return a file's text; the path ``-`` is standard input. Raises CommandError."""
        try:
            if path == "-":
                return self.surroundings.stdin.read()
            with open(path, encoding="utf-8", newline="") as file:
                return file.read()
        except OSError as error:
            raise CommandError(CANNOT_READ, path, error.strerror or str(error)) from error
        except UnicodeDecodeError as error:
            raise CommandError(CANNOT_READ, path, _NOT_UTF8) from error

    def close(self) -> None:
        """Close the connection if there is one; the next call opens another."""
        if self._client is not None:
            self._client.close()
        self._client = None

"""One run of memctl: its options, its surroundings and, once needed, its connection."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from memd import __version__
from memd.cli.output import Screen
from memd.client.errors import DaemonUnavailableError, RemoteError, RequestUndeliveredError
from memd.core import limits, places
from memd.core.errors import MemdError
from memd.core.names import SUFFIX

if TYPE_CHECKING:
    from memd.client.launch import Client

ANSWER_SECONDS = 30.0
JOB_SECONDS = 24 * 60 * 60.0  # a job has its own bounds; a person has Ctrl-C
START_SECONDS = 10.0
STOP_SECONDS = limits.DRAIN_SECONDS + 15
_LAST_WORDS_SECONDS = 0.5  # a daemon that hung up writes why it ends
_ONLY_WAIT = ("hello", "job.wait", "message.receive")  # asking again does nothing twice
_UNKNOWN = (-32601, -32602)  # a method, or parameters, that the daemon does not know
_NOT_UTF8 = "it is not UTF-8"
TAKE_OVER = "memctl restart lets what is installed take over"


class DirectoryGoneError(MemdError):
    """The current directory was removed under the program."""

    hint = "change into a directory that exists, or name one with --cwd"

    def __init__(self) -> None:
        super().__init__("the current directory does not exist any more")


class DirectoryNameError(MemdError):
    """A directory's name is no UTF-8, so JSON cannot carry it."""

    hint = "rename the directory, or name another one with --cwd"

    def __init__(self) -> None:
        super().__init__("the name of the current directory is not UTF-8")


class StillStoppingError(MemdError):
    """The daemon was asked to end and is still finishing what it is at."""

    retryable = True
    hint = "wait a little; it ends by itself"
    exit_status = 75

    def __init__(self, seconds: float) -> None:
        super().__init__(f"memd was asked to end and is still at work after {seconds:g} s")


class CommandLineError(MemdError):
    """What the command line says is not enough, or does not go together.

    ``sentence`` has places for ``words``.
    """

    exit_status = 2

    def __init__(self, sentence: str, *words: object, hint: str = "") -> None:
        super().__init__(sentence.format(*words))
        self.hint = hint  # type: ignore[misc]  # of this one


class NoSuchMemoryError(MemdError):
    """No memory is called what the command line says."""

    hint = "memctl list shows them all"

    def __init__(self, name: str, near: Sequence[str]) -> None:
        shown = f"; the nearest: {', '.join(near)}" if near else ""
        super().__init__(f"there is no memory {name}{shown}", path=name)


class AmbiguousMemoryError(MemdError):
    """More than one memory is called what the command line says."""

    hint = "name its path"

    def __init__(self, name: str, paths: Sequence[str]) -> None:
        super().__init__(f"{name} may be {' or '.join(paths)}", path=name)


class InputUnreadableError(MemdError):
    """A file that the command line names cannot be read as text."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} cannot be read: {cause}", path=path, cause=cause)


def surrogate(text: str) -> bool:
    """Whether a text from the system was no UTF-8."""
    return any("\ud800" <= char <= "\udfff" for char in text)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a process has around it."""

    environ: Mapping[str, str]
    home: str
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO


class Invocation:
    """What a command gets. Close it at the end: it may hold a connection.

    ``progress`` is called with what the daemon tells while a call takes its time.
    """

    progress: Callable[[dict[str, Any]], None] | None = None

    def __init__(self, options: argparse.Namespace, around: Surroundings) -> None:
        self.options = options
        self.around = around
        self.screen = Screen(
            around.stdout,
            around.stderr,
            around.environ,
            as_json=options.json,
            quiet=options.quiet,
            color=options.color or "auto",
        )
        self._client: Client | None = None

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The environment, with the socket that the command line names."""
        if not self.options.socket:
            return self.around.environ
        return {**self.around.environ, places.SOCKET: os.path.abspath(self.options.socket)}

    @cached_property
    def places(self) -> places.Places:
        """Where things lie. Raises SocketPathTooLongError."""
        return places.find(self.environ, self.around.home)

    @cached_property
    def cwd(self) -> str:
        """The directory whose project is meant, absolute.

        Raises DirectoryGoneError and DirectoryNameError.
        """
        try:
            path: str = os.path.abspath(self.options.cwd or ".")
        except FileNotFoundError as error:
            raise DirectoryGoneError from error
        if surrogate(path):
            raise DirectoryNameError
        return path

    def client(self, *, start: bool = True) -> "Client":
        """Return the connection. Raises DaemonUnavailableError."""
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
        """Call a method without the parameters that are ``None``.

        ``--timeout`` wins over ``seconds``. Raises RemoteError, which names the remedy where the
        daemon is another version's and does not know what it is asked, AnswerLateError and
        DaemonUnavailableError.
        """
        given = {name: value for name, value in params.items() if value is not None}
        most = self.options.timeout or seconds
        try:
            return self._call_twice(method, given, most)
        except RemoteError as error:
            if error.code in _UNKNOWN and (other := self.other_version()):
                error.hint = f"{other}: {TAKE_OVER}"
            raise
        except DaemonUnavailableError as error:  # it was there, and went: its log knows why
            from memd.client.launch import last_words  # noqa: PLC0415 - not every command asks

            path = self._client.socket_path if self._client else self.places.socket
            words = last_words(self.places, _LAST_WORDS_SECONDS)
            cause = f"{error.facts['cause']}; {words}" if words else str(error.facts["cause"])
            raise DaemonUnavailableError(path, cause, self.places.log) from error

    def _call_twice(self, method: str, params: dict[str, object], seconds: float) -> Any:
        """Ask the daemon; where it went away meanwhile, the next one once more if that is safe."""
        try:
            return self.client().call(method, params, seconds, progress=self.progress)
        except RequestUndeliveredError:
            pass
        except DaemonUnavailableError:
            safe = "request_id" in params or method in _ONLY_WAIT
            if self._client is None or not safe:  # none could be reached, or it may have been done
                raise
        self.close()
        return self.client().call(method, params, seconds, progress=self.progress)

    def other_version(self) -> str:
        """Return in words that the daemon is another version's, "" where it is this one's."""
        running = self.client().server.get("version", __version__)
        differs = running != __version__
        return f"memd {running} runs, and this is memctl {__version__}" if differs else ""

    def ask(self, method: str, *, seconds: float = ANSWER_SECONDS, **params: object) -> Any:
        """Call a method about the project of ``cwd``, or about the sub-agent that was named."""
        if agent := getattr(self.options, "agent", None):
            params = {"agent": agent, "scope": self.options.scope, **params}
        return self.call(method, seconds=seconds, cwd=self.cwd, **params)

    def request(self, *, seconds: float = ANSWER_SECONDS, **more: object) -> Any:
        """Call the command's method with what the command line says; ``more`` wins over that.

        A method that is about no project takes ``cwd=None``. Raises what ``call`` raises.
        """
        command = self.options.run
        params: dict[str, object] = {} if "cwd" in more else {"cwd": self.cwd}
        for argument in (*command.operands, *command.options):
            value = getattr(self.options, argument.attribute)
            if argument.parameter and value is not False and value != []:
                params[argument.parameter] = value
        return self.call(command.called, seconds=seconds, **{**params, **more})

    def memory(self, name: str) -> str:
        """Return the path of the memory that a person means by its path, file or name.

        What nothing is called stays a path, for it may have been deleted. Raises
        AmbiguousMemoryError and what ``call`` raises.
        """
        if name.endswith(SUFFIX):
            return name
        called = [path for path, names in self._memories() if name in names]
        if len(called) > 1:
            raise AmbiguousMemoryError(name, sorted(called))
        return called[0] if called else f"{name}{SUFFIX}"

    def no_memory(self, name: str) -> NoSuchMemoryError:
        """Return what to say of a memory that is not there. Raises what ``call`` raises."""
        from difflib import get_close_matches  # noqa: PLC0415 - a name that is right needs none

        names = {one: path for path, called in self._memories() for one in called}
        near = get_close_matches(name.removesuffix(SUFFIX), names, 3)
        return NoSuchMemoryError(name, list(dict.fromkeys(names[one] for one in near)))

    def _memories(self) -> list[tuple[str, set[str]]]:
        """Return the memories of the project: path, and what each is called."""
        result, after = [], None
        while True:
            page = self.ask("memory.list", after=after)
            for memory in page["memories"]:
                stem = memory["path"].removesuffix(SUFFIX)
                names = {stem, stem.rpartition("/")[2], memory["name"]} - {""}
                result.append((memory["path"], names))
            after = page.get("next")
            if not after:
                return result

    def stop(self, method: str = "shutdown") -> dict[str, Any] | None:
        """Ask the daemon to end and wait until it has; ``None`` where none is running.

        ``method`` may be ``restart``: then the next call is the next version's. Raises what
        ``call`` raises, and StillStoppingError when it takes too long.
        """
        from memd.client.launch import wait_until_gone  # noqa: PLC0415 - not every command waits

        try:
            self.client(start=False)
        except DaemonUnavailableError:
            return None
        answer: dict[str, Any] = self.call(method)
        seconds = self.options.timeout or STOP_SECONDS
        try:
            for _ in self.client().notifications(seconds):
                pass
        except DaemonUnavailableError:
            pid = self.client().server.get("pid", 0)
            self.close()
            if method == "shutdown":
                wait_until_gone(self.places, pid)
            return answer
        raise StillStoppingError(seconds)

    def read(self, path: str) -> str:
        """Return a file as text, ``-`` is standard input. Raises InputUnreadableError."""
        try:
            if path == "-":
                return self.around.stdin.read()
            with open(path, encoding="utf-8", newline="") as file:
                return file.read()
        except OSError as error:
            raise InputUnreadableError(path, error.strerror or str(error)) from error
        except UnicodeDecodeError as error:
            raise InputUnreadableError(path, _NOT_UTF8) from error

    def close(self) -> None:
        """Hang up, where there is a connection; the next call makes another."""
        if self._client is not None:
            self._client.close()
        self._client = None

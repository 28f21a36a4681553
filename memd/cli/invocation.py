"""One run of memctl: its options, its surroundings and, once needed, its connection."""

import argparse
import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from memd import __version__
from memd.base import limits, places
from memd.base.errors import Busy, Invalid, MemdError, NotFound, Refused
from memd.base.names import INDEX, SUFFIX
from memd.cli.grammar import CHANGE_ID
from memd.cli.output import Screen, table
from memd.client.errors import DaemonUnavailableError

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
    "review.list",
    "rpc.discover",
    "status",
)
_REPEATS = 2  # of a call whose connection broke
_UNKNOWN_CODES = (-32601, -32602)  # for a method, or parameters, that the daemon does not know
_NOT_UTF8 = "it is not UTF-8"
CANNOT_READ = "{} cannot be read: {}"
_DIRECTORY_GONE = "the current directory does not exist any more"
_DIRECTORY_NOT_UTF8 = "the name of the current directory is not UTF-8"
_OTHER_DIRECTORY = "change into another directory, or name one with --cwd"
_PLAIN_WORD = r"[A-Za-z0-9_@%+=:,./-]+"  # that no shell changes
_LINE_COLUMNS = 76  # of a memory in the list of an error
_MOST_LISTED = 8  # memories that have a part of a name in common
_CHANGES_SEARCHED = 200  # for the name of a memory that was deleted
_ALL_LISTED = "memctl list shows them all"
_WRONG_NUMBER = r"^(\w+): expected (?:int|float) ([<>]=) (\S+)$"
TAKE_OVER = "memctl restart lets what is installed take over"


def _bound_in_words(match: re.Match[str]) -> str:
    """Return a method's sentence about a number that is too large or too small, for a person."""
    bound = "most" if match[2] == "<=" else "least"
    return f"{match[1]} may be at {bound} {match[3]}"


def _names(memory: Mapping[str, Any]) -> set[str]:
    """Return the names that mean a listed memory: its path without the suffix, and its name."""
    stem = memory["path"].removesuffix(SUFFIX)
    return {stem, stem.rpartition("/")[2], memory["name"]} - {""}


def _text(memory: Mapping[str, Any]) -> str:
    """Return path, name and description of a listed memory in folded case."""
    return f"{memory['path']}\n{memory['name']}\n{memory['description']}".casefold()


def has_surrogates(text: str) -> bool:
    """Return whether a text from the operating system was not valid UTF-8."""
    return any("\ud800" <= char <= "\udfff" for char in text)


class Surroundings(NamedTuple):
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
        """The absolute path of ``--cwd``, or else of the current directory. Raises Refused."""
        try:
            path: str = os.path.abspath(self.options.cwd or ".")
        except FileNotFoundError as error:
            raise Refused(_DIRECTORY_GONE, hint=_OTHER_DIRECTORY) from error
        if has_surrogates(path):
            raise Refused(_DIRECTORY_NOT_UTF8, hint=_OTHER_DIRECTORY)
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
        and what the daemon answers. The hint names the remedy if a daemon of another version does
        not know the method or its parameters.
        """
        set_params = {name: value for name, value in params.items() if value is not None}
        timeout = self.options.timeout or seconds
        try:
            return self._call_again(method, set_params, timeout)
        except DaemonUnavailableError as error:  # the daemon's log may say why it went away
            from memd.client.launch import last_words  # noqa: PLC0415 - not every command asks

            path = self._client.socket_path if self._client else self.places.socket
            words = last_words(self.places, _LAST_WORDS_SECONDS)
            cause = f"{error.facts['cause']}; {words}" if words else str(error.facts["cause"])
            raise DaemonUnavailableError(path, cause, self.places.log) from error
        except MemdError as error:
            versions = self.other_version() if error.code in _UNKNOWN_CODES else ""
            if versions:
                error.hint = f"{versions}: {TAKE_OVER}"
            elif isinstance(error, Invalid):  # a person gave words of a command line, no parameters
                sentence = error.sentence.removeprefix(f"{method}: ")
                sentence = re.sub(_WRONG_NUMBER, _bound_in_words, sentence)
                raise Invalid(
                    sentence, hint=f"see memctl {self.options.run.name} --help"
                ) from error
            raise

    def _call_again(self, method: str, params: dict[str, object], seconds: float) -> Any:
        """Call a method; if the connection breaks, call it again where that is safe.

        Twice at most: a daemon that is ending may take a connection before the next one serves.
        """
        for _ in range(_REPEATS):
            try:
                return self.client().call(method, params, seconds, progress=self.progress)
            except DaemonUnavailableError as error:
                # Any method may be called again that the daemon did not get; and it answers a
                # repeated request id with its stored result.
                is_repeatable = "request_id" in params or method in _REPEATABLE_METHODS
                may_repeat = not error.begun or (is_repeatable and self._client is not None)
                if not may_repeat:
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
        if all(re.fullmatch(_PLAIN_WORD, word) for word in line):
            return " ".join(line)
        import shlex  # noqa: PLC0415 - seldom needed

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
        """Return the path of the memory that has this path, file name or name, or a part of it.

        A part counts where only one memory has it in its path, name or description. The id of a
        change is returned as it is, and what no memory has as the path of one that was deleted.
        Raises Refused if several have it, and what ``call`` raises.
        """
        if name.endswith(SUFFIX) or CHANGE_ID.fullmatch(name):
            return name
        memories = self.memories()
        wanted = name.casefold().rstrip("…")
        matches = [each for each in memories if name in _names(each)]
        if not matches and wanted.strip():
            matches = [each for each in memories if wanted in _text(each)]
            if len(matches) == 1:
                self.screen.note(f"{name}: {matches[0]['path']}")
        if len(matches) > 1:
            rows = [(each["description"], each["path"]) for each in matches[:_MOST_LISTED]]
            shown = table(rows, _LINE_COLUMNS, cut_column=0).splitlines()
            more = (
                [f"and {len(matches) - _MOST_LISTED} more"] if len(matches) > _MOST_LISTED else []
            )
            hint = "\n  ".join(["say more of one of them:", *shown, *more])
            raise Refused(f"{len(matches)} memories have {name}", hint=hint)
        return str(matches[0]["path"]) if matches else self._former_memory(name)

    def _former_memory(self, name: str) -> str:
        """Return the path of the only memory of the newest changes that has ``name`` in its path.

        Without one, or with several, it is the name as a path. Raises what ``call`` raises.
        """
        path = f"{name}{SUFFIX}"
        wanted = re.sub(r"[\s_]+", "-", name.casefold().rstrip("…").strip())
        changes = self.ask("memory.history", limit=_CHANGES_SEARCHED)["changes"] if wanted else []
        paths = {each["path"] for change in changes for each in change["files"]}
        matches = [each for each in paths if wanted in each.replace("_", "-") and each != INDEX]
        if path in paths or len(matches) != 1:
            return path
        self.screen.note(f"{name}: {matches[0]}")
        return str(matches[0])

    def no_memory(self, name: str, error: NotFound) -> NotFound:
        """Return the error for a missing memory, with the nearest ones. Raises as ``call``.

        If the memory is there, and a version of it missing, that is ``error``.
        """
        from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name needs it

        path_by_name = {alias: each["path"] for each in self.memories() for alias in _names(each)}
        if name in path_by_name.values():
            error.hint = f"{self.command('log', name)} lists its changes"
            return error
        nearest_names = get_close_matches(name.removesuffix(SUFFIX), path_by_name, 3)
        paths = dict.fromkeys(path_by_name[near] for near in nearest_names)  # each path once
        nearest = f"; the nearest: {', '.join(paths)}" if paths else ""
        return NotFound(f"there is no memory {name}{nearest}", hint=_ALL_LISTED)

    def memories(self) -> list[dict[str, Any]]:
        """Return the listed facts of each memory of the project."""
        result: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = self.ask("memory.list", after=cursor)
            result += page["memories"]
            cursor = page.get("next")
            if not cursor:
                return result

    def stop(self) -> dict[str, Any] | None:
        """End the daemon, wait for that and return its answer, or ``None`` if none is running.

        Raises what ``call`` raises, and Busy when it takes too long.
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
        raise Busy(
            f"memd was asked to end and is still at work after {seconds:g} s",
            hint="wait a little; it ends by itself",
        )

    def read(self, path: str) -> str:
        """Return a file's text; the path ``-`` is standard input. Raises Refused."""
        try:
            if path == "-":
                return self.surroundings.stdin.read()
            with open(path, encoding="utf-8", newline="") as file:
                return file.read()
        except OSError as error:
            raise Refused(CANNOT_READ.format(path, error.strerror or str(error))) from error
        except UnicodeDecodeError as error:
            raise Refused(CANNOT_READ.format(path, _NOT_UTF8)) from error

    def close(self) -> None:
        """Close the connection if there is one; the next call opens another."""
        if self._client is not None:
            self._client.close()
        self._client = None

"""Conformance checks for clients of memd, which are run on the client's own program.

    python -m memd.testing.conformance COMMAND…    (memctl conformance -- COMMAND…)

The program is run as ``COMMAND lantern`` with ``MEMD_SOCKET`` in its environment. It has to search
the memories of its working directory for that word, print the path of each hit and end with status
0; where that fails it has to say why and end with another status. The daemon is a scripted one.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memd.core.places import CONFIG, SOCKET, STATE_DIR
from memd.core.text import one_line
from memd.testing.scripted_daemon import (
    HangUp,
    ScriptedDaemon,
    ScriptedRefusal,
    SentProgress,
    Silence,
)

WORD = "lantern"
_SEARCH = "memory.search"
_PATH = "notes/zürich-記憶.md"
_SENTENCE = "the lantern is out of oil"
_SECONDS = 10.0  # for one run of the program
_PAUSE_SECONDS = 0.02
_SHOWN_CHARACTERS = 200  # of the program's output
_PIECE_BYTES = 5  # of an answer that comes in pieces
_HIT = {"path": _PATH, "name": "n", "description": "d", "score": 1.0, "snippet": "s"}
_HITS: dict[str, Any] = {"hits": [{**_HIT, "origin": "user"}]}
_UNKNOWN = (
    {"jsonrpc": "2.0", "method": "$/of-a-later-version", "params": {"a": [1]}},
    {"jsonrpc": "2.0", "method": "memory.changed", "params": {"files": []}},
    {"jsonrpc": "2.0", "id": "nobody", "result": {"hits": []}},
)
_REFUSAL = ScriptedRefusal(1009, _SENTENCE, {"kind": "no_project", "retryable": False})


class CaseResult(Struct, frozen=True):
    """The result of one check; ``fault`` says what the client did wrong, or is ""."""

    case: str
    fault: str


class _Rehearsal:
    """Runs a client's program once for each check, with a scripted daemon, for ``seconds`` at most.

    ``reconnects``: the program sent its request again after the daemon closed the connection.
    """

    def __init__(
        self, command: Sequence[str], folder: str, environ: Mapping[str, str], seconds: float
    ) -> None:
        self._command = [*command, WORD]
        self._folder = folder
        self._seconds = seconds
        self.path = f"{folder}/socket/memd.sock"
        self._environ = {**environ, CONFIG: f"{folder}/memd.toml"}
        self._set_socket(self.path)
        self.reconnects = False

    def results(self) -> Iterator[CaseResult]:
        """Run each check and yield its result."""
        yield CaseResult("asks as JSON-RPC 2.0, in one of the framings", self._check_request())
        pieces = SentProgress(_HITS, piece=_PIECE_BYTES)
        fault = self._check_answer(pieces)
        yield CaseResult("puts an answer together that comes in pieces", fault)
        large = {**_HITS, "of_a_later_version": ["x" * 1024] * 2048}
        fault = self._check_answer(large)
        yield CaseResult("takes two megabytes, with members it does not know", fault)
        among_others = SentProgress(_HITS, before=_UNKNOWN)
        fault = self._check_answer(among_others)
        yield CaseResult("passes over unknown notifications and foreign ids", fault)
        yield CaseResult("shows an error's sentence and fails", self._check_refusal(_REFUSAL))
        yield CaseResult("asks again or fails where the daemon goes away", self._check_hang_up())
        yield CaseResult("ends when it is interrupted", self._check_interrupt())
        yield CaseResult("says that there is no daemon, and ends", self._check_no_daemon())

    def _set_socket(self, path: str) -> None:
        """Set the variables for the socket, and for a daemon that the client might start itself."""
        self._environ |= {SOCKET: path, STATE_DIR: f"{os.path.dirname(path)}/state"}

    def _check_request(self) -> str:
        """Return what is wrong with the program's request, or "".

        The request is answered, and the program has to print the hit.
        """
        with ScriptedDaemon(self.path, {_SEARCH: _HITS}) as daemon:
            ended = self._run()
        request = next((each for each in daemon.requested if each.method == _SEARCH), None)
        if request is None:
            received = ", ".join([*daemon.faults, *(each.method for each in daemon.requested)])
            return f"no {_SEARCH} came, but: {received or 'nothing'}; {ended.stderr}"
        has_id = isinstance(request.whole.get("id"), str | int)
        has_query = request.params.get("query") == WORD
        has_cwd = os.path.isabs(str(request.params.get("cwd")))
        if request.whole.get("jsonrpc") != "2.0" or not (has_id and has_query and has_cwd):
            return f'it needs "jsonrpc", an id, "query" and an absolute "cwd": {request.whole}'
        return _success(ended)

    def _check_answer(self, answer: object) -> str:
        """Return what is wrong with a client that got this answer, "" if it succeeds."""
        with ScriptedDaemon(self.path, {_SEARCH: answer}):
            return _success(self._run())

    def _check_refusal(self, answer: object) -> str:
        """Return what is wrong with a client that got this error, "" if it reports that."""
        with ScriptedDaemon(self.path, {_SEARCH: answer}):
            return _failure(self._run(), _SENTENCE)

    def _check_no_daemon(self) -> str:
        """Return what is wrong with the program's end without a daemon, or ""."""
        file = f"{self._folder}/file"
        with open(file, "x", encoding="utf-8"):
            self._set_socket(f"{file}/memd.sock")  # below a file no daemon can make a socket
        return _failure(self._run(), "")

    def _check_hang_up(self) -> str:
        """Return what is wrong after the daemon closes the connection once, or ""."""
        answers = iter((HangUp(), _HITS))
        with ScriptedDaemon(self.path, {_SEARCH: lambda _: next(answers, HangUp())}) as daemon:
            ended = self._run()
        self.reconnects = daemon.methods.count(_SEARCH) > 1
        return _success(ended) if self.reconnects else _failure(ended, "")

    def _check_interrupt(self) -> str:
        """Return "" if SIGINT ends the program while it waits for an answer, else what is wrong."""
        request_came = threading.Event()

        def silence(_: object) -> Silence:
            """Note that the request came, and send no answer."""
            request_came.set()
            return Silence()

        with ScriptedDaemon(self.path, {_SEARCH: silence}), self._start() as process:
            until = time.monotonic() + _SECONDS
            while not request_came.wait(_PAUSE_SECONDS) and time.monotonic() < until:
                if process.poll() is not None:  # it ended without asking anything
                    break
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            _, _, ended = self._communicate(process)
        return "" if ended else f"it goes on for {self._seconds:g} s"

    def _start(self) -> "subprocess.Popen[str]":
        """Start the client's program in a session of its own."""
        # A shell's background job ignores SIGINT, and so would the program that it starts.
        own_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(
                self._command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # what it starts ends with it
            )
        finally:
            signal.signal(signal.SIGINT, own_handler)

    def _run(self) -> "subprocess.CompletedProcess[str]":
        """Run the client's program to its end, or end it when its time is over."""
        with self._start() as process:
            out, err, ended = self._communicate(process)
        if not ended:
            err += f"it does not end within {self._seconds:g} s"
        return subprocess.CompletedProcess(self._command, process.returncode, out, err)

    def _communicate(self, process: "subprocess.Popen[str]") -> tuple[str, str, bool]:
        """Return a program's output, its errors, and whether it ended in time; else kill it."""
        try:
            return *process.communicate(timeout=self._seconds), True
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return *process.communicate(), False


def _success(ended: "subprocess.CompletedProcess[str]") -> str:
    """Return "" if a program printed the hit and ended with status 0, else what is wrong."""
    words = one_line(ended.stdout + ended.stderr, _SHOWN_CHARACTERS)
    if ended.returncode != 0:
        return f"it ends with status {ended.returncode}: {words}"
    return "" if _PATH in ended.stdout else f"it does not print {_PATH}: {words}"


def _failure(ended: "subprocess.CompletedProcess[str]", words: str) -> str:
    """Return "" if a program failed and printed a text with ``words``, else what is wrong."""
    output = ended.stdout + ended.stderr
    if ended.returncode == 0:
        return "it ends with status 0 although nobody answered"
    if ended.returncode < 0:
        shown = one_line(output, _SHOWN_CHARACTERS)
        return f"it is ended by signal {-ended.returncode}: {shown}"
    return "" if output.strip() and words in output else "it does not say what is wrong"


def main(arguments: Sequence[str] | None = None, seconds: float = _SECONDS) -> int:
    """Check a client's program, print the result of each check, and return 1 where one failed.

    One run of the program may take ``seconds``.
    """
    parser = argparse.ArgumentParser(prog="memctl conformance")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    parsed = parser.parse_args(arguments)
    command = parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command
    results: list[CaseResult] = []
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:
        rehearsal = _Rehearsal(command, folder, os.environ, seconds)
        try:
            for result in rehearsal.results():
                results.append(result)
                if not parsed.json:
                    _print_result(result)
        except OSError as error:
            print(f"memctl conformance: {error}", file=sys.stderr)
            return 1
    if parsed.json:
        cases = [asdict(result) for result in results]
        print(json.dumps({"cases": cases, "reconnects": rehearsal.reconnects}))
    elif not rehearsal.reconnects:
        print("     A client that lives long should ask again when the daemon went away.")
    return int(any(result.fault for result in results))


def _print_result(result: CaseResult) -> None:
    """Print a line for a check, and a second one with what the client did wrong."""
    word = "NO" if result.fault else "ok"
    fault = f"\n     {result.fault}" if result.fault else ""
    print(f"{word:<4} it {result.case}{fault}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

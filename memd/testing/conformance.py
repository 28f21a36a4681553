"""What a client of memd has to get right, tried on the client's own program.

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
from dataclasses import asdict, dataclass
from typing import Any

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
_SECONDS = 10.0
_PAUSE_SECONDS = 0.02
_SHOWN = 200
_PIECE = 5
_HIT = {"path": _PATH, "name": "n", "description": "d", "score": 1.0, "snippet": "s"}
_HITS: dict[str, Any] = {"hits": [{**_HIT, "origin": "user"}]}
_UNKNOWN = (
    {"jsonrpc": "2.0", "method": "$/of-a-later-version", "params": {"a": [1]}},
    {"jsonrpc": "2.0", "method": "memory.changed", "params": {"files": []}},
    {"jsonrpc": "2.0", "id": "nobody", "result": {"hits": []}},
)
_REFUSAL = ScriptedRefusal(1009, _SENTENCE, {"kind": "no_project", "retryable": False})


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One thing that a client needs; ``fault`` says what is wrong, "" for nothing."""

    case: str
    fault: str


class _Rehearsal:
    """Runs a client's program for at most ``seconds``, each time beside another scripted daemon."""

    def __init__(
        self, command: Sequence[str], folder: str, environ: Mapping[str, str], seconds: float
    ) -> None:
        self._command = [*command, WORD]
        self._folder = folder
        self._seconds = seconds
        self.path = f"{folder}/socket/memd.sock"
        self._environ = {**environ, CONFIG: f"{folder}/memd.toml"}
        self._place(self.path)
        self.reconnects = False

    def results(self) -> Iterator[CaseResult]:
        """Yield what came of each case."""
        yield CaseResult("asks as JSON-RPC 2.0, in one of the framings", self._request())
        pieces = SentProgress(_HITS, piece=_PIECE)
        yield CaseResult("puts an answer together that comes in pieces", self._good(pieces))
        much = {**_HITS, "of_a_later_version": ["x" * 1024] * 2048}
        yield CaseResult("takes two megabytes, with members it does not know", self._good(much))
        others = SentProgress(_HITS, before=_UNKNOWN)
        yield CaseResult("passes over unknown notifications and foreign ids", self._good(others))
        yield CaseResult("shows an error's sentence and fails", self._bad(_REFUSAL))
        yield CaseResult("asks again or fails where the daemon goes away", self._hang_up())
        yield CaseResult("ends when it is interrupted", self._interrupted())
        yield CaseResult("says that there is no daemon, and ends", self._absent())

    def _place(self, path: str) -> None:
        """Say where the socket is; a client that starts a daemon starts it there."""
        self._environ |= {SOCKET: path, STATE_DIR: f"{os.path.dirname(path)}/state"}

    def _request(self) -> str:
        with ScriptedDaemon(self.path, {_SEARCH: _HITS}) as daemon:
            ended = self._run()
        request = next((each for each in daemon.requested if each.method == _SEARCH), None)
        if request is None:
            heard = ", ".join([*daemon.faults, *(each.method for each in daemon.requested)])
            return f"no {_SEARCH} came, but: {heard or 'nothing'}; {ended.stderr}"
        known = request.whole.get("jsonrpc") == "2.0", request.params.get("query") == WORD
        absolute = os.path.isabs(str(request.params.get("cwd")))
        if not (all(known) and absolute and isinstance(request.whole.get("id"), str | int)):
            return f'it needs "jsonrpc", an id, "query" and an absolute "cwd": {request.whole}'
        return _success(ended)

    def _good(self, answer: object) -> str:
        with ScriptedDaemon(self.path, {_SEARCH: answer}):
            return _success(self._run())

    def _bad(self, answer: object) -> str:
        with ScriptedDaemon(self.path, {_SEARCH: answer}):
            return _failure(self._run(), _SENTENCE)

    def _absent(self) -> str:
        file = f"{self._folder}/file"
        with open(file, "x", encoding="utf-8"):
            self._place(f"{file}/memd.sock")  # below a file nothing can be started either
        return _failure(self._run(), "")

    def _hang_up(self) -> str:
        answers = iter((HangUp(), _HITS))
        with ScriptedDaemon(self.path, {_SEARCH: lambda _: next(answers, HangUp())}) as daemon:
            ended = self._run()
        self.reconnects = daemon.methods.count(_SEARCH) > 1
        return _success(ended) if self.reconnects else _failure(ended, "")

    def _interrupted(self) -> str:
        came = threading.Event()

        def silence(_: object) -> Silence:
            came.set()
            return Silence()

        with ScriptedDaemon(self.path, {_SEARCH: silence}), self._start() as process:
            until = time.monotonic() + _SECONDS
            while not came.wait(_PAUSE_SECONDS) and time.monotonic() < until:
                if process.poll() is not None:  # it ended without asking anything
                    break
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            _, _, ended = self._communicate(process)
        return "" if ended else f"it goes on for {self._seconds:g} s"

    def _start(self) -> "subprocess.Popen[str]":
        # A shell's background job ignores SIGINT, and so would the program that it starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
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
            signal.signal(signal.SIGINT, before)

    def _run(self) -> "subprocess.CompletedProcess[str]":
        with self._start() as process:
            out, err, ended = self._communicate(process)
        if not ended:
            err += f"it does not end within {self._seconds:g} s"
        return subprocess.CompletedProcess(self._command, process.returncode, out, err)

    def _communicate(self, process: "subprocess.Popen[str]") -> tuple[str, str, bool]:
        """Return what a program says, and whether it ended in time; otherwise it is ended."""
        try:
            return *process.communicate(timeout=self._seconds), True
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return *process.communicate(), False


def _success(ended: "subprocess.CompletedProcess[str]") -> str:
    words = one_line(ended.stdout + ended.stderr, _SHOWN)
    if ended.returncode != 0:
        return f"it ends with status {ended.returncode}: {words}"
    return "" if _PATH in ended.stdout else f"it does not print {_PATH}: {words}"


def _failure(ended: "subprocess.CompletedProcess[str]", words: str) -> str:
    said = ended.stdout + ended.stderr
    if ended.returncode == 0:
        return "it ends with status 0 although nobody answered"
    if ended.returncode < 0:
        return f"it is ended by signal {-ended.returncode}: {one_line(said, _SHOWN)}"
    return "" if said.strip() and words in said else "it does not say what is wrong"


def main(arguments: Sequence[str] | None = None, seconds: float = _SECONDS) -> int:
    """Try a program, print what came of each case, and return 1 where something is wrong.

    One run of the program may take so many seconds.
    """
    parser = argparse.ArgumentParser(prog="memctl conformance")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    results: list[CaseResult] = []
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:
        rehearsal = _Rehearsal(command, folder, os.environ, seconds)
        try:
            for result in rehearsal.results():
                results.append(result)
                if not given.json:
                    fault = f"\n     {result.fault}" if result.fault else ""
                    print(
                        f"{'NO' if result.fault else 'ok':<4} it {result.case}{fault}", flush=True
                    )
        except OSError as error:
            print(f"memctl conformance: {error}", file=sys.stderr)
            return 1
    if given.json:
        cases = [asdict(result) for result in results]
        print(json.dumps({"cases": cases, "reconnects": rehearsal.reconnects}))
    elif not rehearsal.reconnects:
        print("     A client that lives long should ask again when the daemon went away.")
    return int(any(result.fault for result in results))


if __name__ == "__main__":
    sys.exit(main())

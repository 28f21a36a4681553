"""The real Claude Code in one conversation of several turns, and what its hooks did meanwhile."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import psutil

from tests.e2e.hooks import CLAUDE
from tests.e2e.programs import environ, program, run
from tests.support.daemon import Home
from tests.support.messages import MessagesServer
from tests.support.steps import ReceivedMessage

_STREAM = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")


@dataclass(frozen=True)
class Turn:
    """One turn: the events that the client printed, the model's requests, and its seconds.

    ``hooks`` has for each hook's event how many seconds it took, from the client's own words.
    """

    events: Sequence[Mapping[str, Any]]
    requests: Sequence[ReceivedMessage]
    hooks: Mapping[str, float]
    seconds: float


class Conversation:
    """A running Claude Code; ``conversation`` makes one."""

    def __init__(self, process: "subprocess.Popen[str]", server: MessagesServer) -> None:
        self._process = process
        self._server = server

    def say(self, prompt: str) -> Turn:
        """Return the turn that a prompt makes, once it has ended."""
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        before = len(self._server.messages)
        begun = time.monotonic()
        stream = _open(self._process.stdin)
        stream.write(json.dumps(message) + "\n")
        stream.flush()
        events: list[Mapping[str, Any]] = []
        started: dict[str, float] = {}
        hooks: dict[str, float] = {}
        for line in _open(self._process.stdout):
            event = json.loads(line)
            events.append(event)
            if event.get("subtype") == "hook_started":
                started[event["hook_id"]] = time.monotonic()
            elif event.get("subtype") == "hook_response":
                took = time.monotonic() - started[event["hook_id"]]
                hooks[event["hook_event"]] = took
            elif event.get("type") == "result":
                break
        took = time.monotonic() - begun
        return Turn(events, self._server.messages[before:], hooks, took)


@contextmanager
def conversation(
    home: Home, server: MessagesServer, cwd: str, *arguments: str
) -> Iterator[Conversation]:
    """Run Claude Code until the end of the block, when its input ends and it has left."""
    command = [program("claude"), "-p", *_STREAM, "--include-hook-events", *arguments]
    with subprocess.Popen(
        command,
        env=environ(home, environment(server)),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield Conversation(process, server)
            _open(process.stdin).close()
            for _ in _open(process.stdout):
                pass
            assert process.wait(30) == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def once(home: Home, server: MessagesServer, cwd: str, prompt: str, *arguments: str) -> str:
    """Return what a conversation of one prompt printed; Claude Code leaves right after it."""
    command = [program("claude"), "-p", prompt, *arguments]
    return run(command, home, environment(server), cwd=cwd)


def stop(home: Home) -> None:
    """End every process that has this home, such as a daemon that a hook started or is starting."""
    while left := [process for process in psutil.process_iter() if _home(process) == home.path]:
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        psutil.wait_procs(left, 30)


def _home(process: psutil.Process) -> str:
    try:
        return process.environ().get("HOME", "")
    except psutil.Error:
        return ""


def environment(server: MessagesServer) -> dict[str, str]:
    """Return what lets Claude Code talk to a scripted server and to nobody else."""
    return {**CLAUDE, "ANTHROPIC_BASE_URL": server.url}


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream

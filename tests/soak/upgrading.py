"""Clients that go on while memd is replaced, and what they must find at the end.

Each repeats a request that was lost by the rules of the program that it stands for and no others:
a program with a client of its own, the command line and the hook.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from memd.client import hook_file
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import Client, connect
from tests.support.daemon import Home, memctl_ended

WRITERS, SENDERS, READERS = 3, 2, 2
LINES = 60  # of a memory; then the next one is written
_MESSAGES = 80  # of each sender: what the mailbox of one agent holds unread
_JOBS = 900  # what a daemon still knows of at the end: it keeps 1,000 that ended
_COMMANDS = (("list",), ("status",), ("log",))
_PAUSE = 0.004
_SENDER_PAUSE = 1.1  # at most 60 messages a minute
_LEARNER_PAUSE = 2.0
_SLOW_PAUSE = 0.05
_SECONDS = 60.0


class Repeating:
    """A client that connects again and repeats a request that was lost, up to twice."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._client: Client | None = None

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result of a method; a message gets a request id, so that it is sent once."""
        if method == "message.send":
            params = {**params, "request_id": os.urandom(16).hex()}
        for _ in range(2):
            try:
                return self._connected().call(method, params, _SECONDS)
            except DaemonUnavailableError:
                self.close()
        return self._connected().call(method, params, _SECONDS)

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
        self._client = None

    def _connected(self) -> Client:
        if self._client is None:
            self._client = connect(self._home.places, self._home.environ, name="program")
        return self._client


class Load:
    """Writers, readers, senders of messages, commands and hooks of one daemon.

    ``failed`` is what was refused or not answered after a program's own retries, ``longest`` how
    many seconds a request took at most, ``silent`` how many prompts came back without a word.
    """

    def __init__(self, home: Home, cwd: str) -> None:
        self.home = home
        self.cwd = cwd
        self.failed: list[str] = []
        self.written: dict[str, list[str]] = {}
        self.sent: dict[str, list[str]] = {}
        self.accepted: list[str] = []
        self.requests = self.prompts = self.silent = self.commands = 0
        self.longest = 0.0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._keys: dict[str, str] = {}
        self._links: list[Repeating] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have all of them work until the end of the block."""
        hook_file.write(self.home.places)
        with connect(self.home.places, self.home.environ, name="inbox") as client:
            for name in ("inbox", *(f"s{number}" for number in range(SENDERS))):
                who = {"cwd": self.cwd, "name": name, "session_id": name}
                self._keys[name] = client.call("agent.register", who)["key"]
        workers: list[Callable[[], None]] = [
            *(self._looping(self._writer(number)) for number in range(WRITERS)),
            *(self._looping(self._sender(number), _SENDER_PAUSE) for number in range(SENDERS)),
            *(self._looping(self._reader(number)) for number in range(READERS)),
            self._looping(self._learner(), _LEARNER_PAUSE),
            self._looping(self._command, _SLOW_PAUSE),
            self._looping(self._prompt, _SLOW_PAUSE),
        ]
        threads = [threading.Thread(target=worker) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
            for link in self._links:
                link.close()

    def wait(self, seconds: float) -> None:
        """Let them work for a while."""
        self._stop.wait(seconds)

    def figures(self) -> str:
        """Return in words what was done."""
        writes, messages = (sum(map(len, done.values())) for done in (self.written, self.sent))
        return (
            f"{self.requests} requests, of which {writes} writes, {messages} messages,"
            f" {len(self.accepted)} jobs and {self.commands} commands; 0 lost, 0 twice; the longest"
            f" took {self.longest:.2f} s; {self.silent} of {self.prompts} prompts were answered"
            " without a word"
        )

    def lost(self) -> list[str]:
        """Return what was acknowledged and is not there, or there twice, or in another order."""
        wrong = list(self.failed)
        with connect(self.home.places, self.home.environ, name="check") as client:
            for path, lines in self.written.items():
                read = client.call("memory.read", {"cwd": self.cwd, "path": path})
                there = [line for line in read["content"].splitlines() if line.startswith("line ")]
                if there != lines:
                    wrong.append(f"{path}: {len(lines)} written, {len(there)} there")
            arrived: dict[str, list[str]] = {}
            for row in self._received(client):
                sender, _, number = row["body"].partition(" ")
                arrived.setdefault(sender, []).append(number)
            wrong += [
                f"messages of {each}" for each in self.sent if arrived.get(each) != self.sent[each]
            ]
            for job in self.accepted:
                state = client.call("job.wait", {"job": job})["state"]
                wrong += [f"job {job} is {state}"] if state != "completed" else []
        return wrong

    def _received(self, client: Any) -> list[dict[str, Any]]:
        """Take what is in the mailbox of all senders' messages that nobody took yet."""
        rows, key = list[dict[str, Any]](), self._keys["inbox"]
        while page := client.call("message.receive", {"key": key})["messages"]:
            client.call("message.ack", {"key": key, "ids": [row["id"] for row in page]})
            rows += page
        return rows

    def _looping(self, step: Callable[[], None], pause: float = _PAUSE) -> Callable[[], None]:
        def loop() -> None:
            while not self._stop.is_set() and len(self.failed) < WRITERS:
                begun = time.monotonic()
                try:
                    step()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a lost request
                    self.failed.append(f"{step}: {error!r}")
                with self._lock:
                    self.requests += 1
                    self.longest = max(self.longest, time.monotonic() - begun)
                self._stop.wait(pause)

        return loop

    def _link(self) -> Repeating:
        self._links.append(Repeating(self.home))
        return self._links[-1]

    def _writer(self, writer: int) -> Callable[[], None]:
        """Append lines to memories: one that was done twice, or not at all, would be seen."""
        link, numbers = self._link(), count()

        def write() -> None:
            number = next(numbers)
            path, line = f"w{writer}_{number // LINES}.md", f"line {number}"
            lines = self.written.get(path, [])
            command = {"command": "create", "path": f"/memories/{path}", "file_text": f"{line}\n"}
            if lines:
                last = f"{lines[-1]}\n"
                change = {"old_str": last, "new_str": f"{last}{line}\n"}
                command = {"command": "str_replace", "path": f"/memories/{path}", **change}
            params = {"command": command, "request_id": f"{writer}:{number}", "cwd": self.cwd}
            answer = link.call("memory.tool", params)
            if answer["is_error"]:
                self.failed.append(f"{line} of {path}: {answer['text']}")
            self.written.setdefault(path, []).append(line)

        return write

    def _sender(self, sender: int) -> Callable[[], None]:
        """Send numbered messages; now and again the mailbox is read, for it has its bounds."""
        link, numbers, name = self._link(), count(), f"s{sender}"

        def send() -> None:
            number = f"{next(numbers)}"
            if int(number) < _MESSAGES:
                body = f"{name} {number}"
                link.call("message.send", {"key": self._keys[name], "to": "inbox", "body": body})
                self.sent.setdefault(name, []).append(number)

        return send

    def _reader(self, reader: int) -> Callable[[], None]:
        link, numbers = self._link(), count(reader)

        def read() -> None:
            method = ("memory.list", "load_prompt", "status")[next(numbers) % 3]
            params = {} if method == "status" else {"cwd": self.cwd}
            link.call(method, params)

        return read

    def _learner(self) -> Callable[[], None]:
        """Have something learnt: an accepted job is kept and run once."""
        link, numbers = self._link(), count()

        def learn() -> None:
            if len(self.accepted) == _JOBS:
                return
            words = f"Remember: always run suite number {next(numbers)} on a real database."
            said = [{"role": "user", "content": words}]
            params = {"cwd": self.cwd, "session_id": words, "messages": said}
            self.accepted.append(link.call("extract", params)["job"])

        return learn

    def _command(self) -> None:
        """Run memctl, which has to succeed whenever it comes."""
        done = memctl_ended(self.home, self.cwd, *_COMMANDS[self.commands % len(_COMMANDS)])
        self.commands += 1
        if done.returncode:
            self.failed.append(f"memctl {done.args}: {done.returncode} {done.stderr}")

    def _prompt(self) -> None:
        """Send a prompt through the hook, which may be silent but neither fail nor wait."""
        hook, session = hook_file.hook_path(self.home.places), f"session {self.prompts}"
        event = {"session_id": session, "cwd": self.cwd, "prompt": "which line of which suite?"}
        self.prompts += 1
        done = subprocess.run(
            [sys.executable, "-I", "-S", hook, "claude-code", "UserPromptSubmit"],
            input=json.dumps(event).encode(),
            env=self.home.environ,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        self.silent += not done.stdout
        if done.returncode or done.stderr:
            self.failed.append(f"hook: {done.returncode} {done.stderr!r}")

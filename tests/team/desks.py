"""A member's machine in a test: a HOME, a clone, a daemon in this process, a relay to the server.

The daemon's clock moves only when it is told to, so nothing is sent or fetched unless a test asks.
"""

import os
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal

from memd.base.names import INDEX, is_temporary
from memd.base.text import sha256
from memd.base.values import Scope
from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.daemon.app import Log, Ports, daemon
from memd.rpc.listener import make_listener
from tests.support.clock import FakeClock
from tests.support.daemon import Home, throw_away_home
from tests.team.relay import Answer, Relay, Sent, relay

REMOTE = "https://github.com/acme/app.git"
_CONFIG = f'[remote "origin"]\n\turl = {REMOTE}\n'
_SECONDS = 60.0
_ANYIO = os.path.dirname(anyio.__file__)


class DeskClock(FakeClock):
    """A clock that tests advance, and a sync that waits between two messages."""

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced so far; for a thread it is advanced at once."""
        caller = sys._getframe(1).f_code
        if caller.co_filename.startswith(_ANYIO):  # a thread's call into the event loop
            self.advance(seconds)
            seconds = 0.0
        await super().sleep(seconds)


class Desk:
    """What one member works with; ``knows`` is the newest revision that the daemon may know."""

    def __init__(self, name: str, home: Home, between: Relay, portal: BlockingPortal) -> None:
        self.name = name
        self.home = home
        self.relay = between
        self.clock = DeskClock()
        self.cwd = home.project("app")
        share_clone(self.cwd)
        self.knows = 0
        self.team = Path()
        between.after = self._learnt
        self._portal = portal
        self._client: Client | None = None
        self._task: Future[None] | None = None
        self._stop = anyio.Event()

    def start(self) -> None:
        """Start the daemon and connect to it."""
        self._task, self._stop = self._portal.start_task(self._serve)
        places, environ = self.home.places, self.home.environ
        self._client = Client(places.socket, name="person", environment=environ, timeout=_SECONDS)
        listed = self.call("memory.list")
        self.team = Path(listed["memory_dir"], "team")

    def stop(self, *, crash: bool = False) -> None:
        """End the daemon, in order or in the middle of whatever it waits for."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._task is not None:
            if crash:
                self._task.cancel()
            else:
                self._portal.call(self._stop.set)
            with suppress(CancelledError):
                self._task.result(_SECONDS)
            self._task = None

    def restart(self, *, crash: bool = False) -> None:
        """End the daemon and start it again."""
        self.stop(crash=crash)
        self.start()

    def call(self, method: str, **params: Any) -> Any:
        """Call a method about the clone. Raises MemdError and DaemonUnavailableError."""
        if self._client is None:
            raise DaemonUnavailableError(self.home.places.socket, "it was ended")
        return self._client.call(method, {"cwd": self.cwd, **params})

    def write(self, key: str, text: bytes) -> None:
        """Write a team memory through the daemon."""
        self.call("memory.write", path=key, content=text.decode(), scope=Scope.TEAM)

    def save(self, key: str, text: bytes) -> None:
        """Save a team memory as an editor does that knows nothing of memd."""
        path = self.team / key
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = Path(self.home.path, "editor")
        temp.write_bytes(text)
        temp.replace(path)

    def texts(self) -> dict[str, bytes]:
        """Return each team memory by its key."""
        results: dict[str, bytes] = {}
        for folder, _, names in os.walk(self.team):
            for name in names:
                if name != INDEX and not is_temporary(name):
                    path = Path(folder, name)
                    results[str(path.relative_to(self.team))] = path.read_bytes()
        return results

    def hashes(self) -> dict[str, str]:
        """Return the hash of each team memory by its key."""
        return {key: sha256(text) for key, text in self.texts().items()}

    def stored(self) -> set[str]:
        """Return the hashes of all texts that the journal has."""
        uri = f"file:{self.home.places.database}?mode=ro"
        with sqlite3.connect(uri, uri=True) as database:
            query = "SELECT lower(hex(hash)) FROM body WHERE text IS NOT NULL"
            rows = database.execute(query).fetchall()
        database.close()
        return {row[0] for row in rows}

    def _learnt(self, request: Sent, answer: Answer) -> None:
        if request.method in {"GET", "DELETE"} and answer.status == HTTPStatus.OK:
            self.knows = max(self.knows, int(answer.json.get("revision", 0)))

    async def _serve(self, *, task_status: TaskStatus[anyio.Event]) -> None:
        places = self.home.places
        os.makedirs(places.state_dir, mode=0o700, exist_ok=True)
        with (
            open(places.log, "a", encoding="utf-8") as stream,
            make_listener(places.socket) as listener,
        ):
            ports = Ports(places, self.home.environ, self.clock, Log(stream), listener)
            async with daemon(ports) as stop:
                task_status.started(stop)
                await stop.wait()


def share_clone(root: str) -> None:
    """Make a project a clone of the team's repository."""
    Path(root, ".git", "config").write_text(_CONFIG, encoding="utf-8")


@contextmanager
def desk(name: str, upstream: str, portal: BlockingPortal) -> Iterator[Desk]:
    """Set up a member's machine with its daemon running, joined to nothing yet."""
    with ExitStack() as stack:
        home = stack.enter_context(throw_away_home())
        made = Desk(name, home, stack.enter_context(relay(upstream)), portal)
        stack.callback(made.stop)
        made.start()
        yield made

"""A daemon in this process with agents that send messages; its socket and state file are real.

Its clock moves only when it is told to. The daemon may end in order or die, and begin anew.
"""

import os
import sys
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal

from memd.base.places import find
from memd.client.blocking import Client
from memd.daemon.app import Log, Ports, daemon
from memd.rpc.listener import make_listener
from tests.support.clock import FakeClock
from tests.support.daemon import Home, home_environ

_SECONDS = 60.0
_ROUNDS = 400
_ANYIO = os.path.dirname(anyio.__file__)


class OfficeClock(FakeClock):
    """A clock that tests advance; a thread's call that sleeps moves it on."""

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced so far; for a thread it is advanced at once."""
        if sys._getframe(1).f_code.co_filename.startswith(_ANYIO):
            self.advance(seconds)
            seconds = 0.0
        await super().sleep(seconds)


class Office:
    """Agents with one connection each; ``keys`` has the newest key of each."""

    def __init__(self, home: Home, portal: BlockingPortal) -> None:
        self.home = home
        self.clock = OfficeClock()
        self.keys: dict[str, str] = {}
        self._portal = portal
        self._clients: dict[str, Client] = {}
        self._task: Future[None] | None = None
        self._stop = anyio.Event()

    def start(self) -> None:
        """Start the daemon."""
        self._task, self._stop = self._portal.start_task(self._serve)

    def stop(self, *, crash: bool = False) -> None:
        """End the daemon, in order or in the middle of whatever it waits for."""
        for name in list(self._clients):
            self.hang_up(name)
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

    def hang_up(self, name: str) -> None:
        """Close an agent's connection."""
        if client := self._clients.pop(name, None):
            client.close()

    def advance(self, seconds: float) -> None:
        """Let time go by."""
        self._portal.call(self.clock.advance, seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock alone."""
        self._portal.call(self.clock.jump, seconds)

    def call(self, name: str, method: str, /, **params: Any) -> Any:
        """Call a method on an agent's connection. Raises MemdError."""
        if name not in self._clients:
            self._clients[name] = Client(
                self.home.places.socket, name="office", environment={}, timeout=_SECONDS
            )
        return self._clients[name].call(method, params)

    def register(self, name: str, project: str = "project", **more: Any) -> str:
        """Register an agent of a project; return its address there."""
        cwd = self.home.project(project)
        answer = self.call(name, "agent.register", cwd=cwd, name=name, **more)
        self.keys[name] = answer["key"]
        return str(answer["address"])

    def send(self, sender: str, to: str, body: str, **more: Any) -> Any:
        """Send a message; one to whom no key is known sends as nobody who is registered."""
        who = {"key": self.keys[sender]} if sender in self.keys else {"cwd": self.project}
        return self.call(sender, "message.send", to=to, body=body, **who, **more)

    def address(self, name: str) -> str:
        """Return an agent's address as it is from the project that agents are in."""
        rows = self.call("status", "agent.list", cwd=self.project, all=True)["agents"]
        return next(str(row["address"]) for row in rows if row["agent"] == name)

    @property
    def project(self) -> str:
        """The project that agents are in unless they say otherwise."""
        return self.home.project()

    def receive(self, name: str, **more: Any) -> Any:
        """Lease what an agent has next; return the messages."""
        return self.call(name, "message.receive", key=self.keys[name], **more)["messages"]

    def ack(self, name: str, *ids: str) -> int:
        """Acknowledge messages."""
        return int(self.call(name, "message.ack", key=self.keys[name], ids=list(ids))["acked"])

    def states(self, message: str) -> dict[str, str]:
        """Return the state of each copy of a message by its receiver's address."""
        (sent,) = self.call("status", "message.log", cwd=self.project, id=message)["messages"]
        rows = sent["recipients"]
        return {row["address"]: row["state"] for row in rows}

    def reaches(self, message: str, *states: str) -> bool:
        """Return whether all copies are soon in one of some states."""
        return any(set(self.states(message).values()) <= set(states) for _ in range(_ROUNDS))

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


def home_in(path: str) -> Home:
    """Return a home below a folder that stays."""
    os.makedirs(f"{path}/run", mode=0o700, exist_ok=True)
    environ = home_environ(path)
    return Home(path, environ, find(environ, path))

"""Many agents write to a few, connections are cut, the daemon is killed: no message is lost."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from anyio import to_thread

from memd.base.errors import MemdError
from memd.client.aio import AsyncClient
from memd.client.errors import DaemonUnavailableError
from tests.soak.figures import FIGURE
from tests.support.daemon import Home, throw_away_home
from tests.support.waiting import wait_until_up

pytestmark = pytest.mark.anyio
Record = Callable[[str, object], None]
Row = dict[str, Any]
FULL = (100, 55, 8, 20)  # senders, messages of each, receivers, kills
_PAUSE = 0.02
_WAIT = 0.2
_CUT = 0.05  # of the answers are followed by the end of the connection, and nothing more


class _Run:
    """Senders and receivers of one daemon, which is killed now and again."""

    def __init__(self, home: Home, senders: int, each: int, receivers: int) -> None:
        self.home = home
        self.senders = [f"sender-{number}" for number in range(senders)]
        self.receivers = [f"receiver-{number}" for number in range(receivers)]
        self.each = each
        self.keys: dict[str, str] = {}
        self.sent: dict[str, tuple[str, str, int]] = {}  # by id: from, to, number
        self.read: dict[str, list[str]] = defaultdict(list)  # ids by receiver, as acknowledged
        self.again: list[str] = []  # ids that came after they were acknowledged
        self.writing = senders

    async def register(self) -> None:
        """Register all agents."""
        cwd = self.home.project()
        async with AsyncClient(self.home.places.socket, name="soak") as client:
            for name in (*self.senders, *self.receivers):
                params = {"cwd": cwd, "name": name, "session_id": name}
                self.keys[name] = (await client.call("agent.register", params))["key"]

    async def write(self, name: str) -> None:
        """Send messages, each again until it is answered."""
        chance = random.Random(name)  # noqa: S311 - repeatable
        targets = [chance.choice(self.receivers) for _ in range(self.each)]
        number = 0
        while number < self.each:
            with _lost_connection():
                async with AsyncClient(self.home.places.socket, name="soak") as client:
                    while number < self.each and chance.random() > _CUT:
                        to, id_ = targets[number], f"{name} {number}"
                        params = {"key": self.keys[name], "to": to, "body": id_, "request_id": id_}
                        sent = await client.call("message.send", params)
                        self.sent[sent["id"]] = (name, to, number)
                        number += 1
            await anyio.sleep(_PAUSE)
        self.writing -= 1

    async def receive(self, name: str) -> None:
        """Read until all have written and everything is read."""
        chance, pending = random.Random(name), list[str]()  # noqa: S311 - repeatable
        while self.writing or pending or len(self.read[name]) < self._count(name):
            with _lost_connection():
                async with AsyncClient(self.home.places.socket, name="soak") as client:
                    await self._acknowledge(client, name, pending)
                    while chance.random() > _CUT:
                        params = {"key": self.keys[name], "wait": _WAIT}
                        rows: list[Row] = (await client.call("message.receive", params))["messages"]
                        self.again += [r["id"] for r in rows if r["id"] in self.read[name]]
                        if chance.random() < _CUT:
                            break  # with the lease and no acknowledgement
                        pending += [row["id"] for row in rows if row["id"] not in self.read[name]]
                        await self._acknowledge(client, name, pending)
                        if not (self.writing or len(self.read[name]) < self._count(name)):
                            break
            await anyio.sleep(_PAUSE)

    async def _acknowledge(self, client: AsyncClient, name: str, pending: list[str]) -> None:
        if pending:
            params = {"key": self.keys[name], "ids": pending}
            await client.call("message.ack", params)
            self.read[name] += pending
            pending.clear()

    def _count(self, name: str) -> int:
        return sum(to == name for _, to, _ in self.sent.values())

    async def kill(self, daemon: "_Daemon", times: int) -> None:
        """Kill the daemon whenever another part of all was sent."""
        everything = len(self.senders) * self.each
        for number in range(1, times + 1):
            enough = number * everything / (times + 1)
            while self.writing and len(self.sent) < enough:  # noqa: ASYNC110 - a number has no event
                await anyio.sleep(_PAUSE)
            await to_thread.run_sync(daemon.kill)

    def out_of_order(self) -> int:
        """Return how many messages of a pair were acknowledged before an earlier one."""
        wrong = 0
        for ids in self.read.values():
            newest: dict[str, int] = {}
            for sender, _, number in (self.sent[each] for each in ids):
                wrong += number < newest.get(sender, -1)
                newest[sender] = max(number, newest.get(sender, -1))
        return wrong


class _Daemon:
    """A daemon process that is killed and started again."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.kills = 0
        self.start()

    def start(self) -> None:
        """Start it and wait until it serves."""
        os.makedirs(self._home.places.state_dir, mode=0o700, exist_ok=True)
        with open(self._home.places.log, "ab") as log:
            command = (sys.executable, "-m", "memd", "serve")
            environ = dict(self._home.environ)
            nothing = subprocess.DEVNULL
            self.process = subprocess.Popen(
                command, env=environ, stdin=nothing, stdout=log, stderr=log
            )
        wait_until_up(self._home.places, 30.0)

    def kill(self) -> None:
        """Kill it at once and start another."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1
        self.start()

    def end(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


@contextmanager
def _lost_connection() -> Iterator[None]:
    """Go on where the daemon is away or a mailbox is full for the moment."""
    try:
        yield
    except* (DaemonUnavailableError, OSError):
        pass
    except* MemdError as errors:
        rest = errors.split(lambda error: getattr(error, "kind", "") == "mailbox_full")[1]
        if rest is not None:
            raise rest from errors


@pytest.mark.parametrize("size", [(4, 15, 2, 1), pytest.param(FULL, marks=pytest.mark.soak)])
async def test_no_message_is_lost(record_property: Record, size: tuple[int, int, int, int]) -> None:
    """Each message is read once and in its sender's order, whatever dies."""
    senders, each, receivers, kills = size
    with throw_away_home() as home:
        daemon = await to_thread.run_sync(_Daemon, home)
        try:
            run = _Run(home, senders, each, receivers)
            await run.register()
            async with anyio.create_task_group() as group:
                for name in run.senders:
                    group.start_soon(run.write, name)
                for name in run.receivers:
                    group.start_soon(run.receive, name)
                group.start_soon(run.kill, daemon, kills)
        finally:
            await to_thread.run_sync(daemon.end)
    times = Counter(id_ for ids in run.read.values() for id_ in ids)
    lost = senders * each - len(times)
    doubled = sum(count > 1 for count in times.values())
    record_property(
        FIGURE,
        f"messages: {senders} senders, {len(run.sent):,} messages, {daemon.kills} kills: {lost} "
        f"lost, {doubled} acknowledged twice, {len(run.again)} came again after it, "
        f"{run.out_of_order()} out of order",
    )
    assert (len(run.sent), lost, doubled, run.again) == (senders * each, 0, 0, [])
    assert (run.out_of_order(), daemon.kills) == (0, kills)

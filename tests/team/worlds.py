"""A server of a team and the machines of its two members, in one process."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

from anyio.from_thread import BlockingPortal

from memd.server.storage import open_storage
from memd.server.values import Role
from tests.server.clusters import database
from tests.server.servers import TeamServer, copy_database, team_server
from tests.team.desks import Desk, desk
from tests.team.proof import Version

NAMES = ("anna", "bert")
_HOURS = 5 * 3600.0
_BEGINNING = 1_900_000_000.0  # years after the clocks of the desks


class ServerClock:
    """The server's clock: each look at it takes a second."""

    def __init__(self) -> None:
        self.now = _BEGINNING

    def __call__(self) -> float:
        """Return seconds since 1970."""
        self.now += 1
        return self.now


class World:
    """The server, which can be ended, begun again and replaced, and the desks by name.

    Its storage is in a folder, or in schemas of its own at the address of a PostgreSQL.
    """

    def __init__(self, folder: str, postgres: str, stack: ExitStack) -> None:
        self.desks: dict[str, Desk] = {}
        self.clock = ServerClock()
        self._folder = folder
        self._postgres = postgres
        self._stack = stack
        self._numbers = count()
        self._running = ExitStack()
        self._database = self._empty()
        self.server: TeamServer = self.begin()

    def begin(self) -> TeamServer:
        """Begin to serve what there is, and let the relays know where."""
        self._running = ExitStack()
        self.server = self._running.enter_context(team_server(self._database, clock=self.clock))
        for each in self.desks.values():
            each.relay.upstream = self.address
        return self.server

    def end(self) -> None:
        """End the server."""
        self._running.close()

    def restart(self) -> None:
        """End the server and begin again."""
        self.end()
        self.begin()

    @property
    def address(self) -> str:
        """The server's host and port."""
        return self.server.url.removeprefix("http://")

    def join(self, who: str, role: Role = Role.MAINTAINER) -> None:
        """Let a member join through its relay."""
        each = self.desks[who]
        each.call("team.join", url=each.relay.url, code=self.server.invite(who, role))

    def join_all(self) -> None:
        """Let all members join."""
        for who in self.desks:
            self.join(who)

    def backup(self) -> str:
        """Copy the database while the server runs; return the copy's path, "" for PostgreSQL."""
        if self._postgres:
            return ""
        path = f"{self._folder}/backup{next(self._numbers)}"
        copy_database(self._database, path)
        return path

    def restore(self, path: str) -> None:
        """Put a copy in the place of what the server has."""
        self.end()
        self._database = self._empty()
        copy_database(path, self._database)
        storage = open_storage(self._database)
        storage.renew()
        storage.close()
        self.begin()

    def tick(self) -> None:
        """Let hours go by at the server, so that it takes the next removals too."""
        self.clock.now += _HOURS

    def _empty(self) -> str:
        if self._postgres:
            return self._stack.enter_context(database(self._postgres))
        return f"{self._folder}/team{next(self._numbers)}.db"

    def versions(self) -> list[Version]:
        """Return all that the server's history has of all keys."""
        storage, repository = self.server.storage, self.server.repository
        page = storage.page(repository, hashes=True)
        keys = [each.key for each in (*page.entries, *page.removed)]
        return [
            Version(each.key, each.revision, each.hash, each.member)
            for key in keys
            for each in storage.history(repository, key, maintainer=True)
        ]


@contextmanager
def world(portal: BlockingPortal, postgres: str = "") -> Iterator[World]:
    """Set up a server and its two members, who have not joined yet."""
    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="memd-team-")
        stack.callback(shutil.rmtree, folder)
        made = World(folder, postgres, stack)
        stack.callback(made.end)
        for name in NAMES:
            made.desks[name] = stack.enter_context(desk(name, made.address, portal))
        yield made

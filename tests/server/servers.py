"""A server of team memory in this process, on a free port of this machine."""

import io
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from memd.server.app import application
from memd.server.log import ServingLog
from memd.server.serving import ListenAddress, configured, listen
from memd.server.storage import Storage, open_storage
from memd.server.values import Role

REMOTE = "github.com/acme/app"


@dataclass
class TeamServer:
    """A server that runs: its address, its storage, its log, and one repository."""

    url: str
    storage: Storage
    repository: str
    clock: Callable[[], float]
    log: io.StringIO
    clients: ExitStack

    def invite(self, member: str, role: Role = Role.MEMBER, remote: str = REMOTE) -> str:
        """Return a code with which a member joins, with a role in a repository."""
        repository = self.storage.add_repository(remote)
        return self.storage.invite(member, {repository.id: role}, now=self.clock())

    def client(self, member: str = "", **roles: Any) -> httpx2.Client:
        """Return a client, with the token of a new device where a member is named."""
        token = self.token(member, **roles) if member else ""
        headers = {"Authorization": f"Bearer {token}"} if member else {}
        return self.clients.enter_context(httpx2.Client(base_url=self.url, headers=headers))

    def token(self, member: str, role: Role = Role.MEMBER, device: str = "laptop") -> str:
        """Return the token of a new device of a member."""
        return self.storage.join(self.invite(member, role), device, now=self.clock())[0]


def copy_database(database: object, path: object) -> None:
    """Copy a database while a server uses it, as ``sqlite3 FILE .backup`` does."""
    with closing(sqlite3.connect(str(database))) as old, closing(sqlite3.connect(str(path))) as new:
        old.backup(new)


@contextmanager
def team_server(
    database: object, *, clock: Callable[[], float] = time.time
) -> Iterator[TeamServer]:
    """Serve a database, a path or an address of PostgreSQL, until the block ends."""
    storage = open_storage(str(database))
    log = io.StringIO()
    listener, url = listen(ListenAddress(port=0))
    server = configured(application(storage, clock, ServingLog(log)))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        repository = storage.add_repository(REMOTE).id
        with ExitStack() as clients:
            yield TeamServer(url, storage, repository, clock, log, clients)
    finally:
        server.should_exit = True
        thread.join()
        storage.close()


@contextmanager
def server_process(data: Path | str, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a server as a process of its own until the block ends; its status is 0 then.

    ``data`` is its folder, or the address of a database.
    """
    program = "import sys; from memd.server.command import main; sys.exit(main())"
    where_data = ("--data", str(data)) if isinstance(data, Path) else ("--database", data)
    command = [sys.executable, "-c", program, "serve", *where_data]
    where = options or ("--listen", "127.0.0.1:0")
    with subprocess.Popen(
        [*command, *where], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0

"""Two hundred clients of one memd-team that edit and pull for a minute: what ``bench-team`` loads.

Each has a token and an entry of its own. Every ten seconds it pulls what is new and writes its
entry on top of the revision that it knows, as a daemon's sync does.
"""

import json
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import anyio

from benchmarks.measures import Series, size
from memd.core.text import sha256
from memd.remote.link import HttpRequest, Link
from memd.server.storage import Storage, open_storage
from memd.server.values import Role
from tests.support.team import REMOTE, team_server

CLIENTS = 200
SECONDS = 60.0
EVERY_SECONDS = 10.0
_ENTRY = "---\nname: {0}\ndescription: what client {0} learnt\nmetadata:\n  type: project\n---\n\n"
_ACCEPTED = 200


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load showed: times of PUT, writes that are gone, seconds until all were equal."""

    writes: Series
    lost: int
    refused: int
    equal_seconds: float
    server_mib: float


@dataclass
class LoadClient:
    """A member's device: what it knows of the repository, and what was acknowledged to it."""

    link: Link
    path: str
    key: str
    mark: str = ""
    known: dict[str, tuple[int, str]] = field(default_factory=dict)
    written: list[tuple[int, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    refused: int = 0

    async def pull(self) -> None:
        """Take what is new, all pages of it."""
        cursor: str | None = ""
        while cursor is not None:
            query = "".join(
                f"&{name}={text}"
                for name, text in (("since", self.mark), ("cursor", cursor))
                if text
            )
            answer = await self.link.send(HttpRequest("GET", f"{self.path}?limit=500{query}"))
            page = json.loads(answer.body)
            for entry in page["entries"]:
                self.known[entry["key"]] = (entry["revision"], entry["hash"])
            cursor = page["next"]
        self.mark = f"{page['epoch']}.{page['revision']}"

    async def write(self, number: int) -> None:
        """Write the client's entry anew."""
        content = (
            f"{_ENTRY.format(self.key.removesuffix('.md'))}Edit {number}. "
            + "All of us go by it. " * 45
            + "\n"
        )
        base, digest = self.known.get(self.key, (None, ""))[0], sha256(content.encode())
        entry = {"key": self.key, "content": content, "hash": digest, "base": base}
        headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        body = json.dumps({"entries": [entry]}).encode()
        begin = time.perf_counter()
        answer = await self.link.send(HttpRequest("PUT", self.path, headers, body))
        self.times.append((time.perf_counter() - begin) * 1000)
        if answer.status == _ACCEPTED:
            revision = json.loads(answer.body)["revision"]
            self.known[self.key] = (revision, digest)
            self.written.append(self.known[self.key])
        else:
            self.refused += 1


def run(database: str, *options: str) -> LoadResult:
    """Load a server that has a storage and return what that showed."""
    storage = open_storage(database)
    try:
        repository = storage.add_repository(REMOTE, now=time.time()).id
        tokens = [token(storage, repository, f"member-{number}") for number in range(CLIENTS)]
        with team_server(*options) as server:
            clients, equal = anyio.run(_load, server.url, repository, tokens)
            peak = size(server.pid).peak / 1.048576
        written = [each for client in clients for each in client.written]
        kept = {
            (v.revision, v.hash) for c in clients for v in _versions(storage, repository, c.key)
        }
        times = tuple(time for client in clients for time in client.times)
        refused = sum(client.refused for client in clients)
        return LoadResult(Series(times), len(set(written) - kept), refused, equal, peak)
    finally:
        storage.close()


def token(storage: Storage, repository: str, member: str) -> str:
    """Return a token of a new device of a member."""
    code = storage.invite(member, {repository: Role.MEMBER}, now=time.time())
    return storage.join(code, "bench", now=time.time())[0]


async def _load(url: str, repository: str, tokens: list[str]) -> tuple[list[LoadClient], float]:
    """Return the clients once all are equal, and the seconds from the last write to that."""
    path = f"/v1/repos/{repository}/entries"
    async with AsyncExitStack() as stack:
        clients = []
        for number, secret in enumerate(tokens):
            link = await stack.enter_async_context(Link(url, secret))
            clients.append(LoadClient(link, path, f"note-{number}.md"))
        async with anyio.create_task_group() as group:
            for number, client in enumerate(clients):
                group.start_soon(_work, client, number * EVERY_SECONDS / len(clients))
        begin = time.perf_counter()
        async with anyio.create_task_group() as group:
            for client in clients:
                group.start_soon(client.pull)
        assert all(client.known == clients[0].known for client in clients)
        return clients, time.perf_counter() - begin


async def _work(client: LoadClient, late: float) -> None:
    await anyio.sleep(late)
    for number in range(int(SECONDS / EVERY_SECONDS)):
        until = anyio.current_time() + EVERY_SECONDS
        await client.pull()
        await client.write(number)
        await anyio.sleep_until(until)


def _versions(storage: Storage, repository: str, key: str) -> Any:
    return storage.history(repository, key, limit=100)

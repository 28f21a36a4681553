"""Hostile clients of the team server: each gets its status, and nobody else waits for them."""

import hashlib
import http.client
import itertools
import multiprocessing
import os
import select
import socket
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memd.server.storage import Storage, open_storage
from memd.server.values import PutEntry, Role
from tests.server.servers import REMOTE, server_process

pytestmark = pytest.mark.soak
PLAIN = b"---\nname: a\ndescription: b\ntype: project\n---\n"
HOSTILE = 10_000
SENDERS = 8
EACH = 100  # requests of one member


def test_ten_thousand_hostile_requests_delay_nobody(tmp_path: Path) -> None:
    """Of 10,000 requests with no token or a bad one each is refused; p99 is <= 2x."""
    with server_process(tmp_path) as (url, _):
        storage = open_storage(str(tmp_path / "team.db"))
        tokens = (token(storage, f"member{number}") for number in itertools.count())
        quantile(latencies(url, next(tokens)))  # the first requests of all are slower
        alone = quantile([each for _ in range(20) for each in latencies(url, next(tokens))])
        beside: list[float] = []
        with multiprocessing.get_context("spawn").Pool(SENDERS) as pool:
            running = pool.starmap_async(hostile, [(url, HOSTILE // SENDERS)] * SENDERS)
            while not running.ready():
                beside += latencies(url, next(tokens))
            statuses = sum(running.get(), Counter())
        storage.close()
    print(f"p99 alone {alone * 1000:.1f} ms, beside {quantile(beside) * 1000:.1f} ms: {statuses}")  # noqa: T201
    assert statuses == {401: HOSTILE}
    assert quantile(beside) <= 2 * alone


def test_who_only_holds_a_connection_loses_it(tmp_path: Path) -> None:
    """Without a request, with half a head, or with answers that are not read, it ends in time."""
    with server_process(tmp_path) as (url, _), ExitStack() as stack:
        storage = open_storage(str(tmp_path / "team.db"))
        text = token(storage, "anna")
        repository = storage.all_repositories()[0].id
        fill(storage, text, repository)
        storage.close()
        silent, half, unread = (stack.enter_context(opened(url)) for _ in range(3))
        who = f"Host: a\r\nAuthorization: Bearer {text}\r\n"
        half.sendall(f"GET /v1/repos HTTP/1.1\r\n{who}".encode())
        page = f"GET /v1/repos/{repository}/entries HTTP/1.1\r\n{who}\r\n"
        unread.sendall(page.encode() * 10)
        for connection in (silent, half, unread):
            ends = select.poll()
            ends.register(connection, select.POLLRDHUP)
            assert ends.poll(60_000)


def fill(storage: Storage, member: str, repository: str) -> None:
    """Write 2 MiB of entries that cannot be packed."""
    now = time.time()
    session = storage.session(member, now=now)
    assert session
    for number in range(32):
        content = PLAIN + os.urandom(24_000).hex(" ", 2).encode()
        entry = PutEntry(f"n{number}.md", content, hashlib.sha256(content).hexdigest(), None)
        unique = str(uuid.uuid4())
        storage.put(session, repository, [entry], id=unique, body_hash=unique, now=now)


def hostile(url: str, count: int) -> Counter[int]:
    """Send so many requests that are to be refused and return the statuses."""
    statuses: Counter[int] = Counter()
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    names = ("Bearer ", "Bearer wrong")
    for number in range(count):
        connection.request("GET", "/v1/repos", headers={"Authorization": names[number % 2]})
        answer = connection.getresponse()
        answer.read()
        statuses[answer.status] += 1
    connection.close()
    return statuses


def latencies(url: str, member: str) -> list[float]:
    """Return the seconds that requests of a member take."""
    result = []
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    for _ in range(EACH):
        start = time.perf_counter()
        connection.request("GET", "/v1/repos", headers={"Authorization": f"Bearer {member}"})
        answer = connection.getresponse()
        answer.read()
        result.append(time.perf_counter() - start)
        assert answer.status == 200
    connection.close()
    return result


def quantile(seconds: list[float]) -> float:
    """Return what 99 of 100 do not exceed."""
    return sorted(seconds)[int(len(seconds) * 0.99)]


def token(storage: Storage, member: str) -> str:
    """Return the token of a new member."""
    now = time.time()
    repository = storage.add_repository(REMOTE).id
    code = storage.invite(member, {repository: Role.MEMBER}, now=now)
    return storage.join(code, "laptop", now=now)[0]


def opened(url: str) -> socket.socket:
    """Return a new connection."""
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port))

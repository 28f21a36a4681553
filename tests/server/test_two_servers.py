"""Two processes of the server on one database are one server."""

import hashlib
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2

from memd.server.storage import open_storage
from memd.server.values import Role
from tests.server.servers import REMOTE, server_process

WRITERS = 4
WRITES = 6


def test_two_processes_are_one_server(address: str) -> None:
    """Writes through both get one row of revisions, and what one revokes the other refuses."""
    database = address if address.startswith("postgresql:") else Path(address).parent
    with ExitStack() as stack:
        urls = [stack.enter_context(server_process(database))[0] for _ in range(2)]
        with closing(open_storage(address)) as storage:
            now = time.time()
            repository = storage.add_repository(REMOTE, now=now).id
            codes = [
                storage.invite(f"m{n}", {repository: Role.MEMBER}, now=now) for n in range(WRITERS)
            ]
        clients = [stack.enter_context(httpx2.Client(base_url=url)) for url in urls * 2]
        for client, code in zip(clients, codes, strict=True):
            joined = client.post("/v1/join", json={"code": code, "device": "laptop"}).json()
            client.headers["Authorization"] = f"Bearer {joined['token']}"
        path = f"/v1/repos/{repository}/entries"
        together = threading.Barrier(WRITERS)

        def write(number: int) -> list[int]:
            """Put one new entry after the other, through either process in turn."""
            together.wait()
            return [put(clients[number], path, f"m{number}/n{n}.md") for n in range(WRITES)]

        with ThreadPoolExecutor(WRITERS) as pool:
            revisions = sorted(each for row in pool.map(write, range(WRITERS)) for each in row)
        assert revisions == list(range(1, WRITERS * WRITES + 1))
        pages = [client.get(path).json() for client in clients[:2]]
        assert pages[0] == pages[1]
        assert len(pages[0]["entries"]) == WRITERS * WRITES
        clients[1].headers["Authorization"] = clients[0].headers["Authorization"]
        assert clients[0].delete("/v1/token").status_code == 204
        assert clients[1].get("/v1/repos").status_code == 401


def put(client: httpx2.Client, path: str, key: str) -> int:
    """Write a new entry and return its revision."""
    text = f"---\nname: a\ndescription: b\ntype: project\n---\n{key}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    body = {"entries": [{"key": key, "content": text, "hash": digest, "base": None}]}
    answer = client.put(path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
    revision: int = answer.json()["revision"]
    return revision

"""A writer process whose connection is cut at random: it asks again with the same request id.

Run as ``python -m tests.soak.cutting_writer SOCKET CWD WHO COUNT SEED FILES``. It appends its
numbered lines to shared files through ``memory.tool`` and prints, per acknowledged write, a JSON
line with the file, its mark, and the times of asking and of the answer.
"""

import json
import random
import socket as sockets
import sys
import time
from contextlib import suppress

from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError

_CUT_ONE_IN = 8
_LONGEST_WAIT = 0.004  # seconds until a connection is cut: before, during or after the commit


def main(path: str, cwd: str, who: str, *, count: int, seed: str, files: int) -> None:
    """Write until every write was acknowledged."""
    chance = random.Random(seed)  # noqa: S311 - the same cuts in every run with this seed
    client = Client(path, name=who, environment={})
    cuts = 0
    for number in range(count):
        file = f"log{chance.randrange(files)}.md"
        mark = f"{who}:{number}"
        command = {"command": "insert", "path": f"/memories/{file}", "insert_line": 1}
        params = {
            "cwd": cwd,
            "command": command | {"insert_text": mark},
            "request_id": mark,
        }
        requested = time.monotonic()
        while True:
            if chance.randrange(_CUT_ONE_IN) == 0:
                cuts += 1
                _cut(path, who, params, chance.random() * _LONGEST_WAIT)
            with suppress(DaemonUnavailableError):
                answer = client.call("memory.tool", params)
                break
            client = Client(path, name=who, environment={})
        assert not answer["is_error"], answer
        _tell([file, mark, requested, time.monotonic(), answer["change"]])
    _tell(["cuts", cuts, 0, 0, ""])
    client.close()


def _tell(values: list[object]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")


def _cut(path: str, who: str, params: object, seconds: float) -> None:
    """Send the request on a connection of its own and hang up before the answer is read."""
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"client": who}},
        {"jsonrpc": "2.0", "id": 2, "method": "memory.tool", "params": params},
    ]
    with sockets.socket(sockets.AF_UNIX) as connection, suppress(OSError):
        connection.connect(path)
        connection.sendall("".join(json.dumps(line) + "\n" for line in lines).encode())
        connection.settimeout(seconds)
        connection.recv(1)


if __name__ == "__main__":
    place, folder, name, writes, start, shared = sys.argv[1:]
    main(place, folder, name, count=int(writes), seed=start, files=int(shared))

"""A client of its own process that goes on asking, and tells how long each answer took.

``python -m tests.soak.second_client SOCKET CWD``: says ``ready``, asks until a line comes on its
standard input, and then prints the seconds of each call as JSON.
"""

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memd.client.blocking import Client
from tests.support.daemon import Home

_PAUSE_SECONDS = 0.002  # between two calls: it is one client, not a flood


@dataclass(slots=True)
class Times:
    """Seconds of calls, in order of their length, once they are there."""

    seconds: list[float] = field(default_factory=list)

    def at(self, share: float) -> float:
        """Return the milliseconds that a share of the calls stays within."""
        return self.seconds[min(len(self.seconds) - 1, int(len(self.seconds) * share))] * 1000

    def __str__(self) -> str:
        ends = f"p50 {self.at(0.5):.1f}, p99 {self.at(0.99):.1f}, at most {self.at(1):.1f} ms"
        return f"{len(self.seconds):,} calls: {ends}"


@contextmanager
def asking(home: Home, cwd: str) -> Iterator[Times]:
    """Let a second client ask for the length of the block; afterwards the times are there."""
    command = [sys.executable, "-m", "tests.soak.second_client", home.places.socket, cwd]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        times = Times()
        try:
            yield times
        finally:
            said, _ = process.communicate(b"\n")
    times.seconds = sorted(json.loads(said))


def main(path: str, cwd: str) -> None:
    """Ask until somebody says that it is enough."""
    times: list[float] = []
    with Client(path, name="second", environment={}) as client:
        client.call("hello", {})
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not select.select([sys.stdin], [], [], _PAUSE_SECONDS)[0]:
            method, params = ("memory.list", {"cwd": cwd}) if len(times) % 2 else ("hello", {})
            begun = time.perf_counter()
            client.call(method, params)
            times.append(time.perf_counter() - begun)
    json.dump(times, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

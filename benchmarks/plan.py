"""``make bench-plan``: how long one call of context.plan takes, over the socket of a daemon.

Each of CALLS brings 100 messages of our own making behind as many as the table says; where a result
is stored, the newest of them is one of 40 KB. Promised are 20 ms for 100 new messages. The last
column is the processor's time for a call, client and daemon together, which a busy machine leaves.
"""

import asyncio
import sys
import time
from typing import Any

from benchmarks.measures import Series
from memd.client.aio import AsyncClient
from tests.support.clock import FakeClock
from tests.support.daemon import daemon_here, throw_away_home

LENGTHS = (0, 1_000, 10_000, 50_000)
_NEW, _BATCH = 100, 2_000
_LINE = "2026-03-03 12:00:00 worker-%d took the job and gave it back after a while\n"


def exchange(number: int, characters: int) -> list[dict[str, Any]]:
    """Return a call and its result."""
    name, line = f"toolu_{number}", _LINE % number
    call = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": f"run {number}"}}
    text = (line * (characters // len(line) + 1))[:characters]
    result = {"type": "tool_result", "tool_use_id": name, "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def messages(first: int, count: int, *, large: bool = False) -> list[dict[str, Any]]:
    """Return so many messages from a number on, the newest result large or not."""
    made = [] if first else [{"role": "user", "content": "Go on."}]
    last = first + count // 2 - 1
    for number in range(first, last + 1):
        made += exchange(number, 40_000 if large and number == last else 300)
    return made


async def series(
    client: AsyncClient, cwd: str, length: int, calls: int, *, large: bool
) -> tuple[Series, float]:
    """Return how long each of some calls took behind so many messages, and their mean work."""
    at: dict[str, Any] = {"from": 0}
    about: dict[str, Any] = {
        "cwd": cwd,
        "session_id": f"s{length}-{large}",
        "reader": "read_stored",
    }
    about |= {"usage": {"input_tokens": 50_000}}
    number, times, work = 0, list[float](), 0.0
    while len(times) < calls:
        measured = at["from"] >= length
        part = messages(number, _NEW if measured else _BATCH, large=large and measured)
        begun, busy = time.perf_counter(), time.process_time()
        answer = await client.call("context.plan", {**about, **at, "messages": part})
        took = (time.perf_counter() - begun) * 1000
        if measured:
            times.append(took)
            work += (time.process_time() - busy) * 1000
        number, at = number + len(part) // 2, {"from": answer["have"], "hash": answer["hash"]}
    return Series(tuple(times)), work / calls


async def main(calls: int) -> None:
    """Measure and print."""
    print(f"{'messages before':>15}{'stored':>10}{'p50 ms':>10}{'p99 ms':>10}{'cpu ms':>10}")
    with throw_away_home() as home:
        cwd = home.project()
        async with daemon_here(home, FakeClock()), AsyncClient(home.places.socket) as client:
            for length in LENGTHS:
                for large in (False, True):
                    took, work = await series(client, cwd, length, calls, large=large)
                    times = f"{took.p50:>10.1f}{took.p99:>10.1f}{work:>10.1f}"
                    print(f"{length:>15,}{int(large):>10}{times}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

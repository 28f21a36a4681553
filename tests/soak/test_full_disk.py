"""A disk that is full at random moments: every wait is answered, every start serves reads.

Each round has its home on a small file system of its own that something else fills and frees.
"""

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import anyio
import pytest

from memd.base.errors import MemdError
from memd.base.places import find
from memd.client.aio import AsyncClient
from tests.soak.figures import FIGURE
from tests.soak.rounds import delay, play
from tests.support.daemon import Home, daemon_here, home_environ

SEED = 20261122
ANSWERED_SECONDS = 5.0  # in the full number of rounds; a busy machine adds to those of a sample
_MANY = "remember that I always drink tea number {} before I read mail"
MEMORY = {"path": "a.md", "name": "a", "description": "about a", "type": "user", "body": "one"}
_READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory.read", {"path": MEMORY["path"]}),
    ("memory.list", {}),
    ("load_prompt", {}),
    ("memory.search", {"query": "one"}),
)


def can_mount() -> bool:
    """Return whether this process may make a file system."""
    with suppress(OSError), tempfile.TemporaryDirectory() as path:
        if subprocess.run(
            ["mount", "-t", "tmpfs", "none", path], check=False, capture_output=True
        ).returncode:
            return False
        subprocess.run(["umount", path], check=True)
        return True
    return False


@contextmanager
def small_home() -> Iterator[Home]:
    """Make a HOME on a file system of 4 MiB; the sockets lie elsewhere."""
    with tempfile.TemporaryDirectory(prefix="memd-") as path:
        home = f"{path}/h"
        for folder in (home, f"{path}/run"):
            os.mkdir(folder, mode=0o700)
        size = ["-o", "size=4m,mode=700"]
        subprocess.run(["mount", "-t", "tmpfs", *size, "none", home], check=True)
        try:
            environ = home_environ(home) | {"XDG_RUNTIME_DIR": f"{path}/run"}
            yield Home(path=home, environ=environ, places=find(environ, home))
        finally:
            subprocess.run(["umount", "--lazy", home], check=True)


def fill(home: Home) -> None:
    """Leave no room at all."""
    for size in (65_536, 1):
        with suppress(OSError), open(f"{home.path}/filler-{size}", "ab", buffering=0) as file:
            while file.write(b"x" * size):
                pass


def free(home: Home) -> None:
    """Give the room back."""
    for size in (65_536, 1):
        with suppress(FileNotFoundError):
            os.unlink(f"{home.path}/filler-{size}")


@pytest.mark.skipif(not can_mount(), reason="needs the right to mount a file system")
@pytest.mark.parametrize("count", [1, pytest.param(200, marks=pytest.mark.soak)])
def test_a_full_disk_keeps_nobody_waiting(
    count: int, record_property: Callable[[str, object], None]
) -> None:
    """Each wait ends within five seconds, by an end or an error of memd's, and reads go on."""
    bad = play(count, SEED, partial(here, count), apart=True)
    record_property(
        FIGURE, f"10.9 a disk that gets full: {count} rounds, {bad} waits or reads failed"
    )
    assert bad == 0


def here(count: int, chance: random.Random) -> int:
    """Play a round in this process."""
    return anyio.run(one_round, count, chance)


async def one_round(count: int, chance: random.Random) -> int:
    """Return how many waits and reads failed."""
    bad = 0
    with small_home() as home:
        cwd = home.project()
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            await client.call("memory.write", {**MEMORY, "cwd": cwd})
        if chance.random() < 0.7:
            fill(home)
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            ask = partial(answered, client, cwd)
            bad += await read(ask)
            async with anyio.create_task_group() as group:
                group.start_soon(come_and_go, home, chance, delay(chance, count))
                for number in range(3):
                    bad += await waits(ask, f"s{number}")
            bad += await read(ask)
            free(home)
    return bad


async def come_and_go(home: Home, chance: random.Random, seconds: float) -> None:
    """Free and fill the disk at random moments."""
    for work in (free, fill, free, fill):
        await anyio.sleep(seconds * chance.random())
        work(home)


async def read(ask: Callable[..., Any]) -> int:
    """Return how many reads were not answered."""
    return sum([not isinstance(await ask(method, **params), dict) for method, params in _READS])


async def waits(ask: Callable[..., Any], session: str) -> int:
    """Ask for jobs and wait for them; return how many waits had no answer in time."""
    messages = [{"role": "user", "content": _MANY.format(session)}]
    results = [
        await ask("extract", session_id=session, messages=messages, wait=True),
        await ask("dream", force=True, wait=True),
        accepted := await ask("extract", session_id=f"{session}b", messages=messages),
    ]
    if isinstance(accepted, dict):
        results.append(await ask("job.wait", job=accepted["job"]))
    return results.count(None)


async def answered(
    client: AsyncClient, cwd: str, method: str, **params: Any
) -> dict[str, Any] | MemdError | None:
    """Return the answer or the error of a call, ``None`` where there is neither in time."""
    begun = time.monotonic()
    place = {} if method == "job.wait" else {"cwd": cwd}
    with anyio.move_on_after(4 * ANSWERED_SECONDS):
        try:
            answer: Any = await client.call(method, {**place, **params})
        except MemdError as error:
            answer = error if error.kind != "unexpected" else None
        return answer if time.monotonic() - begun <= ANSWERED_SECONDS else None
    return None

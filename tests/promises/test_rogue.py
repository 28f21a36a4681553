"""A rogue program rewrites the index and memories while clients write: nothing is lost."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.base.errors import MemdError
from memd.client.aio import AsyncClient
from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from memd.store.log import ChangeLog
from tests.support.daemon import Home, daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
# Adds a line of its own to what it has read, by rename or by emptying the file first, and tells
# each line once it is saved. It never asks memd and never waits for it.
ROGUE = """
import os, sys, threading, time

folder, until, pace = sys.argv[1], time.monotonic() + float(sys.argv[2]), threading.Event()
number = 0
while time.monotonic() < until:
    name = "MEMORY.md" if number % 4 == 0 else f"memory{number % 5}.md"
    path = f"{folder}/{name}"
    try:
        old = open(path, "rb").read()
    except FileNotFoundError:
        old = b""
    line = f"rogue line {number:06d}"
    body = old.rstrip(b"\\n") + b"\\n" + line.encode() + b"\\n"
    target = f"{path}.tmp" if number % 3 else path
    with open(target, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    if target != path:
        os.replace(target, path)
    print(line, flush=True)
    number += 1
    pace.wait(0.005)
"""


async def write(client: AsyncClient, cwd: str, who: str, until: anyio.Event) -> set[str]:
    """Write memories through the daemon until the rogue has ended; return what was acknowledged."""
    kept: set[str] = set()
    number = 0
    while not until.is_set():
        text = f"text {number} of {who}"
        params: dict[str, Any] = {
            "cwd": cwd, "path": f"memory{number % 5}.md", "name": f"memory-{number % 5}",
            "description": "written by all", "type": "project", "body": text,
        }  # fmt: skip
        try:
            await client.call("memory.write", params)
        except MemdError as error:
            assert error.code == 1002  # noqa: PT017 - a conflict is an answer, anything else is none
        else:
            kept.add(text)
        number += 1
    return kept


async def fight(home: Home, seconds: float) -> tuple[set[str], str]:
    """Let clients and the rogue write; return what each was told is saved, and all there is."""
    cwd, saved, done = home.project(), set[str](), anyio.Event()

    async with daemon_here(home), AsyncClient(home.places.socket, name="first") as client:
        folder = (await client.call("memory.list", {"cwd": cwd}))["memory_dir"]
        Path(folder).mkdir(parents=True)

        async def one(who: str) -> None:
            async with AsyncClient(home.places.socket, name=who) as mine:
                saved.update(await write(mine, cwd, who, done))

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(one, f"client{number}")
            command = [sys.executable, "-c", ROGUE, folder, str(seconds)]
            rogue = await anyio.run_process(command, stderr=subprocess.STDOUT)
            done.set()
        saved.update(rogue.stdout.decode().splitlines())
        await client.call("memory.history", {"cwd": cwd})
    bodies = [file.read_bytes() for file in Path(folder).rglob("*.md")]
    database = open_database(home.places.database, SCHEMAS)
    log = ChangeLog(database)
    hashes = [row["hash"].hex() for row in database.read("SELECT hash FROM body")]
    bodies += [log.body(each) or b"" for each in hashes]
    database.close()
    return saved, b"\n".join(bodies).decode()


def lost(saved: set[str], everything: str) -> list[str]:
    """Return what was said to be saved and is nowhere."""
    lines = set(everything.splitlines())
    return sorted(saved - lines)


async def test_nothing_that_anyone_wrote_is_lost() -> None:
    """Each text that a client or the rogue saved is in the directory or in the history."""
    with throw_away_home() as home:
        saved, everything = await fight(home, 2)
    assert len(saved) > 50
    assert lost(saved, everything) == []


@pytest.mark.soak
async def test_nothing_is_lost_in_a_minute() -> None:
    """The same for a minute."""
    with throw_away_home() as home:
        saved, everything = await fight(home, 60)
    rogue = sum(text.startswith("rogue") for text in saved)
    figures = f"a minute: {rogue} saves of the rogue, {len(saved) - rogue} of clients; lost: "
    print(figures, len(lost(saved, everything)))  # noqa: T201 - the figures of the proof
    assert lost(saved, everything) == []

"""memd.client as a program of a user uses it: each call is served by that program's environment."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import PYTHON, Home, Project

_BEGIN = """
import json, sys
import anyio
from memd.client.aio import AsyncClient
from memd.client.blocking import Client
from memd.base.errors import MemdError
path, cwd, memory = sys.argv[1:]
"""
_CANCELLED = """
async def main():
    async with AsyncClient(path, environment={"MEMD_MEMORY_PATH": memory}) as client:
        for checkpoints in range(int(CANCELS)):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call, "memory.list", {"cwd": cwd})
                    for _ in range(checkpoints):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
        found = await client.call("memory.list", {"cwd": cwd})
        print(json.dumps([found["memory_dir"], client.server.get("name")]))
anyio.run(main)
"""
_TOGETHER = """
async def main():
    found = []
    async def call(client):
        found.append((await client.call("memory.list", {"cwd": cwd}))["memory_dir"])
    async with AsyncClient(path, environment={"MEMD_MEMORY_PATH": memory}) as client:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(call, client)
    print(json.dumps(sorted(set(found))))
anyio.run(main)
"""
_LATE = """
with Client(path, environment={"MEMD_MEMORY_PATH": memory}) as client:
    for seconds in (0, 1e-9, 1e-5):
        try:
            client.call("memory.list", {"cwd": cwd}, seconds)
        except MemdError:
            pass
    try:
        print(json.dumps([client.call("memory.list", {"cwd": cwd})["memory_dir"]]))
    except MemdError as error:  # half a line was sent: the connection is closed
        print(json.dumps([memory]))
"""
_REFUSED = """
given = {"MEMD_MEMORY_PATH": None}  # no text, so memd refuses the greeting
with Client(path, environment=given) as client:
    for _ in range(2):
        try:
            print(json.dumps(client.call("memory.list", {"cwd": cwd})["memory_dir"]))
        except MemdError as error:
            print(json.dumps(error.kind))
async def main():
    async with AsyncClient(path, environment=given) as client:
        for _ in range(2):
            try:
                print(json.dumps((await client.call("memory.list", {"cwd": cwd}))["memory_dir"]))
            except MemdError as error:
                print(json.dumps(error.kind))
anyio.run(main)
"""


def _run(home: Home, project: Project, program: str, memory: Path) -> list[Any]:
    """Run a program with memd's library; return what it printed, decoded."""
    done = home.run(PYTHON, "-c", _BEGIN + program, home.socket, project.cwd, str(memory))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("cancels", [1, 6])
def test_a_cancelled_first_call_leaves_the_directory(
    home: Home, project: Project, cancels: int
) -> None:
    """After first calls that were cancelled at any moment a call gets the program's directory."""
    memory = project.path / "own"
    program = _CANCELLED.replace("CANCELS", str(cancels))
    assert _run(home, project, program, memory) == [[f"{memory}", "memd"]]


def test_first_calls_side_by_side_have_the_directory(home: Home, project: Project) -> None:
    """Of ten first calls at once each is served in the program's directory."""
    memory = project.path / "own"
    assert _run(home, project, _TOGETHER, memory) == [[f"{memory}"]]


def test_a_late_first_call_leaves_the_directory(home: Home, project: Project) -> None:
    """After first calls whose time was too short a call gets the program's directory, or none."""
    memory = project.path / "own"
    assert _run(home, project, _LATE, memory) == [[f"{memory}"]]


def test_a_refused_greeting_is_an_error(home: Home, project: Project) -> None:
    """Where memd refuses the greeting no call is served, neither the first nor a later one."""
    assert _run(home, project, _REFUSED, project.path) == ["invalid_params"] * 4

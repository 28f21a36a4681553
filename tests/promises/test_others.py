"""Through the whole daemon: what others do to memories is noticed, told, and can be undone."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.testing.daemon import Home, daemon_here, throw_away_home
from tests.store.bench import topic

pytestmark = pytest.mark.anyio
MANY = """
import sys
for number in range(2000):
    with open(f"{sys.argv[1]}/n{number}.md", "w") as file:
        file.write(f"---\\nname: n{number}\\ndescription: number {number}\\n---\\n\\ntext\\n")
"""


class Person:
    """A client that listens, and the memory directory that somebody else writes to."""

    def __init__(self, client: AsyncClient, cwd: str, folder: Path) -> None:
        self.client = client
        self.cwd = cwd
        self.folder = folder

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method about the project."""
        return await self.client.call(method, {"cwd": self.cwd, **params})

    async def reported(self) -> dict[str, Any]:
        """Wait for the next change of somebody else."""
        with anyio.fail_after(60):
            while True:
                note = await self.client.notifications.receive()
                if note.method == "memory.changed" and note.params["actor"] == "external":
                    return note.params

    def topics(self) -> dict[str, bytes]:
        """Return every memory as it is on the disk."""
        results = self.folder.glob("*.md")
        return {file.name: file.read_bytes() for file in results if file.name != "MEMORY.md"}

    async def files(self) -> dict[str, str]:
        """Return what the newest change did to which file."""
        changes = (await self.call("memory.history", limit=1))["changes"]
        return {file["path"]: file["action"] for file in changes[0]["files"]}


async def person(home: Home, client: AsyncClient) -> Person:
    """Begin to listen to a project that has one memory and is watched."""
    cwd = home.project()
    await client.call("memory.write", {
        "cwd": cwd, "path": "a.md", "name": "a", "description": "about a", "type": "user",
        "body": "hello",
    })  # fmt: skip
    folder = Path((await client.call("memory.list", {"cwd": cwd}))["memory_dir"])
    await client.call("subscribe", {"cwd": cwd, "topics": ["memory.changed"]})
    results = Person(client, cwd, folder)
    (folder / "first.md").write_bytes(topic("first"))
    await results.reported()
    return results


async def test_a_memory_from_an_editor_is_there_at_once() -> None:
    """A saved file is told of, in the history and in the next prompt within 300 ms."""
    with throw_away_home() as home:
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            someone = await person(home, client)
            times = [1.0]
            number = 0
            while min(times) >= 0.3 and number < 20:  # a busy machine only adds to the time
                number += 1
                body = topic("kafka", f"The zebra{number} cluster rebalances at night.")
                began = time.perf_counter()
                (someone.folder / f"zebra{number}.md").write_bytes(body)
                reported = await someone.reported()
                assert reported["files"] == [{"path": f"zebra{number}.md", "action": "created"}]
                assert await someone.files() == {f"zebra{number}.md": "created"}
                results = await someone.call(
                    "prefetch",
                    session_id=f"s{number}",
                    query=f"when does zebra{number} rebalance?",
                    deadline_ms=20_000,
                )
                times.append(time.perf_counter() - began)
                assert f"zebra{number}" in results["memories"][0]["content"]
            assert min(times) < 0.3


async def test_an_edit_of_others_is_undone() -> None:
    """Damage done by another program is one change, and undoing it restores the bytes."""
    with throw_away_home() as home:
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            someone = await person(home, client)
            before = someone.topics()
            for name in before:
                (someone.folder / name).write_bytes(b"damaged")
            first = await someone.reported()
            for change in (await someone.call("memory.history"))["changes"]:
                await someone.call("memory.undo", change=change["id"])
                if change["id"] == first["change"]:
                    break
            after = someone.topics()
    assert after == before


async def test_the_history_has_what_was_just_saved() -> None:
    """Whoever asks for the history gets the save that came before the question."""
    with throw_away_home() as home:
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            someone = await person(home, client)
            for number in range(10):
                (someone.folder / f"x{number}.md").write_bytes(topic(f"x{number}"))
                assert f"x{number}.md" in await someone.files()


async def test_what_was_done_while_memd_was_away_is_noticed() -> None:
    """After a start memd looks at every directory that it knows."""
    with throw_away_home() as home:
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            someone = await person(home, client)
        (someone.folder / "a.md").unlink()
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            await client.call("subscribe", {"topics": ["memory.changed"]})
            again = Person(client, someone.cwd, someone.folder)
            assert (await again.reported())["files"] == [{"path": "a.md", "action": "deleted"}]


async def test_two_thousand_files_at_once_are_all_noticed() -> None:
    """However many events are lost on the way, in the end the history has every file."""
    with throw_away_home() as home:
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            someone = await person(home, client)
            command = [sys.executable, "-c", MANY, str(someone.folder)]
            await anyio.run_process(command, stderr=subprocess.STDOUT)
            seen: set[str] = set()
            while len(seen) < 2000:
                reported = await someone.reported()
                seen |= {f["path"] for f in reported["files"] if f["path"].startswith("n")}
            listed = await someone.call("memory.list")
            doctor = await client.call("doctor", {})
    assert len(listed["memories"]) == 2002
    checks = {check["name"]: check["state"] for check in doctor["checks"]}
    assert checks["watching"] == "ok"

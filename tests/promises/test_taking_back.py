"""Whatever wrote it is taken back byte for byte, also long after."""

import os
from pathlib import Path
from typing import Any

import pytest

from memd.client.aio import AsyncClient
from memd.testing.daemon import daemon_here, throw_away_home

pytestmark = pytest.mark.anyio

LONG_AGO = 1_500_000_000_123_456_789
PARTS = {"description": "Integration tests hit a real database", "type": "feedback"}
LATER = 20  # files that are written and written again


class Project:
    """A project with two memories that say the same, saved by a person long ago."""

    def __init__(self, client: AsyncClient, cwd: str) -> None:
        self.client = client
        self.cwd = cwd
        self.folder = Path()

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method about the project."""
        return await self.client.call(method, {"cwd": self.cwd, **params})

    async def begin(self) -> None:
        """Write the memories and give them their age."""
        for name in ("a", "b"):
            body = "Never mock the database in integration tests."
            await self.call("memory.write", path=f"{name}.md", name=name, body=body, **PARTS)
        self.folder = Path((await self.call("memory.list"))["memory_dir"])
        for number, name in enumerate(("a", "b")):
            os.utime(self.folder / f"{name}.md", ns=(LONG_AGO + number, LONG_AGO + number))

    async def edit(self) -> str:
        """Rewrite one memory and its line; return the change."""
        done = await self.call(
            "memory.write", path="a.md", body="All is different.", title="New", hook="new words"
        )
        return str(done["change"])

    async def extract(self) -> str:
        """Learn from a conversation; return the change."""
        words = "From now on, never push straight to the release branch."
        messages = [{"role": "user", "content": words}, {"role": "assistant", "content": "Yes."}]
        done = await self.call("extract", session_id="s", messages=messages, wait=True)
        assert done["saved"]
        return str(done["change"])

    async def dream(self) -> str:
        """Merge the two memories into one; return the change."""
        done = await self.call("dream", force=True, wait=True)
        assert done["merged"]
        return str(done["change"])

    def state(self) -> tuple[dict[str, tuple[bytes, int]], list[bytes]]:
        """Return bytes and times of all but the later files, and the index without their lines."""
        files = {
            str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(self.folder.rglob("*.md"))
            if path.name != "MEMORY.md" and not path.name.startswith("later")
        }
        lines = (self.folder / "MEMORY.md").read_bytes().splitlines(keepends=True)
        return files, [line for line in lines if b"(later" not in line]


@pytest.mark.parametrize("kind", ["edit", "extract", "dream"])
async def test_fifty_changes_later_it_is_all_as_it_was(kind: str) -> None:
    """An edit, an extraction and a dream leave no byte and no time behind once undone."""
    with throw_away_home() as home:
        cwd = home.project()
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            project = Project(client, cwd)
            await project.begin()
            before = project.state()
            change = await getattr(project, kind)()
            assert project.state() != before
            for number in range(50):
                name = f"later{number % LATER}"
                body = f"text {number}"
                await project.call("memory.write", path=f"{name}.md", name=name, body=body, **PARTS)
            undone = await project.call("memory.undo", change=change)
            assert (undone["conflicts"], undone["merged"]) == ([], [])
            assert project.state() == before
            listed = await project.call("memory.list")
            assert len(listed["memories"]) == 2 + LATER
            assert listed["index"]["lines"] == 2 + LATER

"""Nothing is forgotten without a yes: what nobody uses is asked about, and goes file by file."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.client.errors import RemoteError
from memd.core.clock_check import DAY_SECONDS
from memd.daemon.retention import LOOK_SECONDS
from memd.testing.clock import FakeClock
from memd.testing.daemon import Home, daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
NOW = 1_760_000_000.0
LONG_AGO = (1_500_000_000, 1_500_000_000)
UNUSED = ["heron.md", "kettle.md", "quartz.md"]
ALWAYS = ["pinned.md", "team/theirs.md", "used.md", "fresh.md"]
TEXTS = {
    "heron": "The heron board lists the build machines of the mobile group.",
    "kettle": "Invoices of the kettle vendor are paid in the second week.",
    "quartz": "Quartz is the name of the internal metrics gateway.",
    "pinned": "The auditors ask for the retention policy every spring.",
    "used": "Integration tests hit a real database and never a mock.",
    "fresh": "The parking permit hangs behind the reception desk.",
    "theirs": "A colleague keeps the lab's spare badges.",
}


class Life:
    """A project whose daemon runs for months."""

    def __init__(self, home: Home, client: AsyncClient, clock: FakeClock) -> None:
        self.home, self.client, self.clock = home, client, clock
        self.cwd = home.project()
        self.folder = Path()

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method about the project."""
        with anyio.fail_after(60):
            return await self.client.call(method, {"cwd": self.cwd, **params})

    async def begin(self) -> None:
        """Put memories there, as a person has them who installs memd today."""
        self.folder = Path((await self.call("memory.list"))["memory_dir"])
        (self.folder / "team").mkdir(parents=True)
        for path in (*UNUSED, *ALWAYS):
            name = path.rpartition("/")[2].removesuffix(".md")
            pin = "pinned: true\n" if name == "pinned" else ""
            head = f"name: {name}\ndescription: about {name}\n{pin}metadata:\n  type: reference"
            (self.folder / path).write_text(f"---\n{head}\n---\n\n{TEXTS[name]}\n")
            os.utime(self.folder / path, LONG_AGO)
        await self.call("memory.list")

    async def days(self, count: int) -> None:
        """Let days go by on which memd looks at its clock."""
        for _ in range(count):
            self.clock.advance(DAY_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Return once the daemon has looked at its clock."""
        with anyio.fail_after(60):
            while not any(
                at - self.clock.monotonic() == LOOK_SECONDS for at, _ in self.clock._sleepers
            ):
                await anyio.lowlevel.checkpoint()

    async def dream(self) -> Any:
        """Let a dream run to its end."""
        return await self.call("dream", force=True, wait=True)

    async def questions(self) -> list[Any]:
        """Return what waits for the person."""
        waiting = (await self.call("dream.review"))["proposals"]
        return [each for each in waiting if each["kind"] == "unused"]

    def texts(self) -> dict[str, bytes]:
        """Return what stands in every memory."""
        return {path: (self.folder / path).read_bytes() for path in (*UNUSED, *ALWAYS)}


@asynccontextmanager
async def life(settings: str = "") -> AsyncIterator[Life]:
    """Run a daemon with these settings."""
    clock = FakeClock(NOW)
    with throw_away_home() as home:
        os.makedirs(os.path.dirname(home.places.config), exist_ok=True)
        Path(home.places.config).write_text(settings)
        async with daemon_here(home, clock), AsyncClient(home.places.socket, name="a") as client:
            made = Life(home, client, clock)
            await made.begin()
            yield made


async def test_nothing_goes_by_itself() -> None:
    """Dream after dream asks and removes nothing; a yes is for one file, and can be taken back."""
    async with life() as here:
        before = here.texts()
        assert (await here.dream()).get("unused") is None
        await here.days(60)
        await here.call("memory.read", path="used.md")
        text = before["fresh.md"] + b"It was moved.\n"
        (here.folder / "fresh.md").write_bytes(text)
        await here.call("memory.history")
        await here.days(34)
        before["fresh.md"] = text
        for _ in range(3):
            reported = await here.dream()
            assert "removed" not in reported or not reported["removed"]
            assert here.texts() == before
            await here.days(1)
        (question,) = await here.questions()
        assert question["id"] == reported["unused"]
        assert [file["path"] for file in question["files"]] == UNUSED
        assert all(file["reason"].startswith("not surfaced,") for file in question["files"])
        assert "are they still needed?" in (await here.call("dream.last"))["markdown"]

        done = await here.call("dream.accept", proposal=question["id"], paths=["kettle.md"])
        assert done["accepted"] == ["kettle.md"]
        assert not (here.folder / "kettle.md").exists()
        assert all((here.folder / path).exists() for path in before if path != "kettle.md")
        await here.call("memory.undo", change=done["change"])
        assert here.texts() == before

        await here.call("dream.reject", proposal=question["id"])
        assert (await here.dream()).get("unused") is None
        assert await here.questions() == []
        await here.days(20)
        assert (await here.dream()).get("unused") is None
        assert here.texts() == before


async def test_an_assistant_s_program_says_no_yes() -> None:
    """What a registered assistant started may look at a question and refuse it, not accept it."""
    async with life() as here:
        await here.days(95)
        name = (await here.dream())["unused"]
        about = {"name": "ann", "kind": "session", "session_id": "s", "pid": os.getppid()}
        await here.call("agent.register", **about)
        with pytest.raises(RemoteError) as caught:
            await here.call("dream.accept", proposal=name)
        assert caught.value.kind == "removal_refused"
        assert (here.folder / "heron.md").exists()
        await here.call("dream.reject", proposal=name, paths=["heron.md"])


@pytest.mark.parametrize("jump", [400, -400])
async def test_a_wrong_clock_asks_nothing(jump: int) -> None:
    """A clock that is set, and set right again, and a daemon that did not run, prove nothing."""
    async with life() as here:
        await here.days(3)
        for by in (jump, -jump, 100):
            here.clock.jump(by * DAY_SECONDS)
            await here.days(3)
            assert (await here.dream()).get("unused") is None
        assert not any(row["unused"] for row in (await here.call("usage.list"))["memories"])


async def test_a_setting_switches_the_question_off() -> None:
    """With ``dream.unused`` off nobody is asked."""
    async with life("[dream]\nunused = false\n") as here:
        await here.days(95)
        assert (await here.dream()).get("unused") is None
        assert (await here.call("usage.list", unused=True))["memories"]
        assert await here.questions() == []

"""Notes while a model is at them: who reads waits, but not for ever, and nobody else waits."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from memd.core.settings import NotesSettings, Settings
from memd.core.values import Project
from memd.notes.requests import COMPLETED, NotesRequest, NotesView
from memd.notes.service import Notes
from memd.state.database import open_database
from memd.state.runs import SCHEMA, Runs
from memd.testing.clock import FakeClock
from tests.api.conversations import Conversation
from tests.extract.bench import Taught
from tests.notes.bench import notes_of
from tests.scripted_model import HANG

pytestmark = pytest.mark.anyio


class Session:
    """Notes of one session, whose model never answers, and what was read of them."""

    def __init__(self, folder: Path, runs: Runs) -> None:
        base = folder / "projects"
        self.clock = FakeClock()
        self.notes: Notes = notes_of(self.clock, runs, Taught([HANG]))
        talk = Conversation(base / "-p" / "s.jsonl")
        talk.person("Build the shelf.")
        talk.reply(grown=10_000)
        project = Project("/p", "/p", f"{base}/-p/memory", "default", str(base), enabled=True)
        self.request = NotesRequest(
            project, Settings(), "s", transcript_path=str(talk.path), force=True
        )
        self.views: list[NotesView] = []

    async def update(self) -> None:
        """Begin an update that never ends."""
        await self.notes.run(self.request, job="", progress=lambda *_, **__: None)

    async def read(self) -> None:
        """Read the notes."""
        self.views.append(await self.notes.read(self.request))

    async def pass_time(self) -> None:
        """Let a second pass once everything waits."""
        await anyio.wait_all_tasks_blocked()
        self.clock.advance(1.0)

    async def until(self, sleepers: int) -> None:
        """Return once so many wait for the clock."""
        with anyio.fail_after(60):
            while self.clock.sleepers != sleepers:
                await checkpoint()


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    """Begin a session with notes by the local writer, and an update by a model that hangs."""
    database = open_database(str(tmp_path / "state.db"), (SCHEMA,))
    made = Session(tmp_path, Runs(database))
    assert (await made.notes.write_locally(made.request)).status == COMPLETED
    async with anyio.create_task_group() as group:
        group.start_soon(made.update)
        await made.until(1)  # the run's own bound
        yield made
        group.cancel_scope.cancel()
    database.close()


async def test_a_reader_waits_for_an_update(session: Session) -> None:
    """For 15 seconds, then it gets what is there; after 60 seconds at once."""
    async with anyio.create_task_group() as group:
        group.start_soon(session.read)
        await session.until(2)
        assert session.views == []
        session.clock.advance(15)
    assert "Build the shelf." in session.views[0].content
    session.clock.advance(45)
    await session.read()
    assert session.views[0] == session.views[1]


async def test_a_reader_waits_no_longer_than_the_update(session: Session) -> None:
    """One that has waited for 50 seconds is waited for 10 more."""
    session.clock.advance(50)
    async with anyio.create_task_group() as group:
        group.start_soon(session.read)
        await session.until(2)
        session.clock.advance(10)
    assert len(session.views) == 1


async def test_a_plan_to_compact_waits_for_an_update(session: Session) -> None:
    """What an update is about to write may stand in the messages' place."""
    messages = [
        {"role": role, "content": f"{n} {'word ' * 500}"}
        for n in range(50)
        for role in ("user", "assistant")
    ]
    request, plans = replace(session.request, messages=messages), []

    async def plan() -> None:
        plans.append(await session.notes.compaction(request, 200_000, "manual"))

    async with anyio.create_task_group() as group:
        group.start_soon(plan)
        await session.until(2)
        assert plans == []
        session.clock.advance(15)
    assert plans[0] is not None
    assert plans[0].boundary.type == "manual"
    assert "Build the shelf." in plans[0].messages[0]["content"]
    off = replace(request, settings=Settings(notes=NotesSettings(enabled=False)))
    assert await session.notes.compaction(off, 200_000, "auto") is None
    assert await session.notes.compaction(replace(request, session="t"), 200_000, "auto") is None


async def test_a_compaction_waits_for_no_model(session: Session) -> None:
    """The local writer writes and a hook gets its block while the run goes on."""
    assert (await session.notes.write_locally(session.request)).status == COMPLETED
    block = await session.notes.block(session.request, 1_000, seconds=20.0)
    assert "Build the shelf." in block
    assert len(block) <= 1_000
    assert session.clock.sleepers == 1


async def test_updates_from_two_directories_do_not_disturb_each_other(session: Session) -> None:
    """Each has a lane of its own; the session is over with the last of them."""
    said = [{"role": "user", "content": "Paint it."}]
    settings = Settings(notes=NotesSettings(use_model=False))
    below = replace(session.request.project, cwd="/p/sub")
    async with anyio.create_task_group() as group:
        for project in (session.request.project, below):
            request = NotesRequest(project, settings, "t", messages=said, force=True)
            work = partial(session.notes.run, request, job="", progress=lambda *_, **__: None)
            group.start_soon(work)
    assert "Paint it." in (await session.notes.read(request)).content


async def test_long_transcripts_hold_up_no_compaction(session: Session) -> None:
    """Where all threads are taken, a hook gets the notes as they are."""
    request = replace(session.request, settings=Settings(notes=NotesSettings(use_model=False)))
    work = partial(session.notes.run, request, job="", progress=lambda *_, **__: None)
    async with anyio.create_task_group() as group:
        with session.notes._keeper._locked_session(request), anyio.fail_after(60):
            for _ in range(8):
                group.start_soon(work)
            while session.notes._threads.available_tokens:
                await checkpoint()
            group.start_soon(session.pass_time)
            block = await session.notes.block(request, 1_000, seconds=0.01)
    assert "Build the shelf." in block

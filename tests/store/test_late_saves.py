"""Programs that write a memory at the moment at which memd replaces it, through the store."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from blockbuster import blockbuster_ctx

from memd.base import limits
from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import Actor
from memd.watch.external import LATE_SAVE
from tests.store.bench import topic
from tests.store.home import Home, state

pytestmark = pytest.mark.anyio


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    """Open a home on which nothing may block the loop."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        opened = Home(tmp_path, database)
        with blockbuster_ctx("memd"):
            yield opened


async def test_a_save_into_a_replaced_file_is_not_lost(home: Home) -> None:
    """What an editor writes into a file that memd has just replaced becomes the file again."""
    await home.write("a.md", topic("a", "old"))
    for newer in (False, True):
        file = await to_thread.run_sync(os.open, home.real / "a.md", os.O_WRONLY)
        await home.write_after_waiting("a.md", topic("a", f"of memd {newer}"))
        body = topic("a", f"of a person {newer:1}") + b" " * 99
        await to_thread.run_sync(os.pwrite, file, body, 0)
        os.close(file)
        if newer:
            (home.real / "a.md").write_bytes(topic("a", "newest"))
        home.clock.advance(limits.LOOK_SECONDS)
        assert await home.inspect() is not None
        assert (home.real / "a.md").read_bytes() == (topic("a", "newest") if newer else body)
        results = (await home.store.history(home.directory))[0]
        assert (results.by.reason, results.files[0].after) == (LATE_SAVE.reason, sha256(body))


async def test_a_commit_waits_for_a_program_that_writes(home: Home) -> None:
    """A file is replaced once it is closed, and what was saved meanwhile is the text before."""
    await home.write("a.md", topic("a", "old"))
    saved = topic("a", "of a person")
    with (home.real / "a.md").open("wb") as file:
        async with anyio.create_task_group() as group:
            group.start_soon(home.write, "a.md", topic("a", "of memd"))
            await home.until_it_waits()
            assert (home.real / "a.md").read_bytes() == b""
            file.write(saved)
            file.close()
            home.clock.advance(limits.WRITER_POLL_SECONDS)
    assert (home.real / "a.md").read_bytes() == topic("a", "of memd")
    changes = await home.store.history(home.directory, path="a.md")
    assert [change.by.actor for change in changes] == [Actor.CLIENT, Actor.EXTERNAL, Actor.CLIENT]
    assert changes[1].files[0].after == sha256(saved)


@pytest.mark.parametrize("path", ["a.md", INDEX])
async def test_an_emptied_file_is_no_save(home: Home, path: str) -> None:
    """Where a program empties a file and takes its time, its text comes back until it is done."""
    await home.write("a.md", topic("a", "old"))
    await home.write("b.md", topic("b", "old"))
    before = (home.real / path).read_bytes()
    with (home.real / path).open("wb") as file:
        assert await home.inspect() is None
        await home.write_after_waiting("c.md", topic("c", "new"))
        if path == "a.md":
            assert (home.real / path).read_bytes() == b""  # nothing was to be written there
            await home.write_after_waiting(path, before.replace(b"old", b"of memd"))
        after = (home.real / path).read_bytes()
        file.write(before + b"a line of a person\n")
    home.clock.advance(limits.LOOK_SECONDS)
    assert after != before
    assert await home.inspect() is not None
    assert (home.real / path).read_bytes() == after + b"a line of a person\n"
    for change in await home.store.history(home.directory):
        assert sha256(b"") not in {file.after for file in change.files}

"""The store as the rooms see it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from blockbuster import blockbuster_ctx

from memd.core import limits
from memd.core.events import MEMORY_CHANGED, Event
from memd.core.names import NameRefusedError
from memd.core.values import Actor, Draft, FileEdit, Snapshot, Tree
from memd.daemon.clock import SystemClock
from memd.store.door import SecretRefusedError
from memd.store.reading import MemoryNotFoundError
from tests.store.bench import Slow, topic
from tests.store.home import BY, Home, state

pytestmark = pytest.mark.anyio


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    """Open a home on which nothing may block the loop."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        opened = Home(tmp_path, database)
        with blockbuster_ctx("memd"):
            yield opened


async def test_a_missing_directory_is_an_empty_one(home: Home) -> None:
    """Where nothing was saved yet there is nothing to read, and that is no failure."""
    nowhere = f"{home.directory}/nowhere"
    assert await home.store.snapshot(nowhere) == Snapshot(nowhere, (), None)
    assert await home.store.read_many(nowhere, ["a.md"]) == ()
    with pytest.raises(MemoryNotFoundError):
        await home.store.read(nowhere, "a.md")


async def test_reading_many_leaves_out_what_cannot_be_read(home: Home) -> None:
    """Missing, refused and unreadable memories spoil nothing for the others."""
    await home.write("a.md", topic("a"))
    await home.write("b.md", topic("b"))
    os.symlink("/etc/passwd", home.real / "link.md")
    names = ["b.md", "none.md", "../x.md", "link.md", "a.md"]
    files = await home.store.read_many(home.directory, names)
    assert [file.header.path for file in files] == ["b.md", "a.md"]


async def test_a_name_of_a_persons_own_is_readable(home: Home) -> None:
    """A file with any other name can be read if a scan of the directory finds it."""
    with pytest.raises(NameRefusedError):
        await home.store.read(home.directory, "über uns.md")
    (home.real / "über uns.md").write_bytes(topic("u"))
    assert (await home.store.read(home.directory, "über uns.md")).content == topic("u")


async def test_a_change_is_told_once(home: Home) -> None:
    """Each change makes one event; a retry, a refusal and an idle write make none."""
    change = await home.write("a.md", topic("a"), "r1")
    assert await home.write("a.md", topic("a"), "r1") == change
    assert await home.write("a.md", topic("a")) is None
    with pytest.raises(SecretRefusedError):
        await home.write("b.md", topic("b", "password = '" + "hX7kQ2pLw9sRt4Vz8Nb3'"))
    files = [{"path": "a.md", "action": "created"}]
    params = {"change": change, "actor": "client", "client": "test", "files": files}
    assert home.events.got == [Event(MEMORY_CHANGED, home.directory, params)]


async def test_writers_wait_for_each_other(home: Home) -> None:
    """Many writers at once lose nothing, by whichever path they reach the directory."""

    async def add(number: int) -> None:
        directory = home.directory if number % 2 else str(home.real)

        def plan(tree: Tree) -> Draft:
            results = tree.read("list.md")
            old = results.content if results else topic("list")
            return Draft((FileEdit("list.md", old + f"{number}\n".encode()),))

        await home.store.commit(directory, plan, BY)

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(add, number)
    body = (await home.store.read(home.directory, "list.md")).body
    assert sorted(int(line) for line in body.split("\n")[1:-1]) == list(range(20))
    assert len(await home.store.history(home.directory)) == 20


async def test_readers_do_not_wait_for_a_slow_disk(tmp_path: Path) -> None:
    """While a commit hangs in the disk, memories and history are read."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        slow = Slow()
        home = Home(tmp_path, database, slow)
        async with anyio.create_task_group() as group:
            group.start_soon(home.write, "a.md", topic("a"))
            await to_thread.run_sync(slow.reached.wait)
            with anyio.fail_after(60):
                await home.store.snapshot(home.directory)
                assert await home.store.history(home.directory) == ()
            slow.go_on.set()
        assert len((await home.store.snapshot(home.directory)).headers) == 1


async def test_a_cancelled_caller_leaves_a_whole_change(tmp_path: Path) -> None:
    """A caller that goes away in the middle of a commit interrupts nothing."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        slow = Slow()
        home = Home(tmp_path, database, slow)
        async with anyio.create_task_group() as group:
            group.start_soon(home.write, "a.md", topic("a"))
            await to_thread.run_sync(slow.reached.wait)
            group.cancel_scope.cancel()
            slow.go_on.set()
        assert len((await home.store.snapshot(home.directory)).headers) == 1
        assert [event.topic for event in home.events.got] == [MEMORY_CHANGED]
        assert await home.store.recover() == ()


async def test_a_project_has_its_directory_and_settings(home: Home) -> None:
    """The store finds a project by its working directory and answers its settings."""
    (home.real / "code").mkdir()
    project, *_ = await home.store.where(str(home.real / "code"), {})
    assert project.memory_dir.startswith(str(home.real.parent / "home"))
    settings, problems = await home.store.settings(project)
    assert (settings.enabled, problems) == (True, ())
    assert await home.store.settings() == (settings, problems)
    assert await home.store.where(str(home.real / "code"), {}) == (project, settings, problems)


async def test_what_others_did_comes_before_a_commit(home: Home) -> None:
    """A commit journals and tells first what it finds, so that the history is in order."""
    await home.write("a.md", topic("a"))
    (home.real / "b.md").write_bytes(topic("b"))
    change = await home.write("c.md", topic("c"))
    changes = await home.store.history(home.directory)
    assert [results.by.actor for results in changes] == [Actor.CLIENT, Actor.EXTERNAL, Actor.CLIENT]
    assert changes[0].id == change
    event = home.events.got[1]
    assert (event.directory, event.params["client"]) == (home.directory, "")
    assert event.params["actor"] == "external"
    assert event.params["files"] == [{"path": "b.md", "action": "created"}]


async def test_hints_are_followed_while_it_runs(tmp_path: Path) -> None:
    """What others do is journalled and told by itself, also in a directory that only was read."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        home = Home(tmp_path, database, clock=SystemClock())
        async with anyio.create_task_group() as group:
            await group.start(home.store.run)
            await home.store.snapshot(home.directory)
            await home.write("a.md", topic("a"))
            await home.events.wait(1)
            (home.real / "b.md").write_bytes(topic("b"))
            await home.store.snapshot(home.directory)
            event = await home.events.wait(2)
            assert event.params["files"] == [{"path": "b.md", "action": "created"}]
            (home.real / "a.md").unlink()
            event = await home.events.wait(3)
            assert event.params["files"] == [{"path": "a.md", "action": "deleted"}]
            assert home.store.watch_problems() == ()
            group.cancel_scope.cancel()
        assert home.store.watch_problems() == ()


async def test_a_directory_that_cannot_be_looked_at_is_named(home: Home) -> None:
    """What keeps memd out of a directory is a sentence for the doctor until it passes."""
    await home.write("a.md", topic("a"))
    moved = home.real.rename(home.real.parent / "moved")
    home.real.write_bytes(b"no directory")
    assert len(await home.store.history(home.directory)) == 1
    (problem,) = home.store.watch_problems()
    assert str(home.real) in problem
    home.real.unlink()
    moved.rename(home.real)
    await home.store.history(home.directory)
    assert home.store.watch_problems() == ()


async def test_what_a_reader_meets_is_looked_at(tmp_path: Path) -> None:
    """News that a catalogue finds in a worker thread lead to a look like those of a snapshot."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        home = Home(tmp_path, database, clock=SystemClock())
        await home.write("a.md", topic("a"))
        await to_thread.run_sync(home.store.reading.catalogue, home.directory)
        (home.real / "b.md").write_bytes(topic("b"))
        results, _ = await to_thread.run_sync(home.store.reading.files, home.directory)
        assert results == {"a.md", "b.md"}
        async with anyio.create_task_group() as group:
            await group.start(home.store.run)
            await home.events.wait(2)
            (home.real / "c.md").write_bytes(topic("c"))
            await to_thread.run_sync(home.store.reading.catalogue, home.directory)
            await home.events.wait(3)
            group.cancel_scope.cancel()
    assert len(home.events.got) == 3


async def test_catalogues_are_seen_to_while_it_runs(tmp_path: Path) -> None:
    """Headers are written down now and then, and a lost event costs minutes at most."""
    (tmp_path / "real").mkdir()
    headers = tmp_path / "headers"
    with state(tmp_path) as database:
        home = Home(tmp_path, database, headers=str(headers))
        async with anyio.create_task_group() as group:
            await group.start(home.store.run)
            await home.write("a.md", topic("a"))
            await home.store.snapshot(home.directory)
            home.store._detection.use_watch(None)  # now nobody tells
            (home.real / "b.md").write_bytes(topic("b"))
            with anyio.fail_after(60):
                while len(home.events.got) < 2:
                    home.clock.advance(30)
                    await anyio.lowlevel.checkpoint()
            assert headers.is_dir()
            group.cancel_scope.cancel()
    assert [file["path"] for file in home.events.got[1].params["files"]] == ["b.md"]


async def test_many_directories_leave_a_bounded_number_of_locks(tmp_path: Path) -> None:
    """After more looks than the bound, locks and spellings are as many as the bound."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        store = Home(tmp_path, database).store
        for number in range(limits.DIRECTORIES + 20):
            await store.history(f"{tmp_path}/none-{number}")
    held = (store._locks, store._callers_paths)
    assert [len(each) for each in held] == [limits.DIRECTORIES] * 2

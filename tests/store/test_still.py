"""A memory directory while memd changes nothing in it."""

import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from blockbuster import blockbuster_ctx

from memd.base import limits
from memd.files.directory import Directory
from memd.store.still import StillFile, files_of, read_settled
from tests.store.bench import topic
from tests.store.home import Home, state

pytestmark = pytest.mark.anyio


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    """Open a home on which nothing may block the loop."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database, blockbuster_ctx("memd"):
        yield Home(tmp_path, database)


def files(directory: str) -> dict[str, StillFile]:
    """Return all files by path."""
    return {file.path: file for file in files_of(directory, lambda _: True)}


async def test_all_of_a_directory_comes_as_it_is(home: Home) -> None:
    """Every Markdown file that is not hidden comes with its bytes and time, sorted by path."""
    await home.write("a.md", topic("a"))
    there = {"team/b.md": b"\xff\x00", "über uns\n.md": b"", "logs/2026/01/x.md": b"day"}
    for path, content in there.items():
        (home.real / path).parent.mkdir(parents=True, exist_ok=True)
        (home.real / path).write_bytes(content)
        os.utime(home.real / path, ns=(7, 1_234_567_890))
    for path in (".consolidate-lock", ".memd-1-0-a.tmp", "image.png"):
        (home.real / path).write_bytes(b"x")
    (home.real / ".hidden").mkdir()
    (home.real / ".hidden" / "c.md").write_bytes(b"x")
    found = await home.store.still(home.directory, files)
    assert list(found) == sorted([*there, "MEMORY.md", "a.md"])
    assert {path: found[path].content for path in there} == there
    assert {found[path].mtime_ns for path in there} == {1_234_567_890}
    assert found["a.md"].content == (home.real / "a.md").read_bytes()
    assert await home.store.still(f"{home.directory}/none", files) == {}


async def test_what_is_no_file_of_ours_is_told(home: Home) -> None:
    """Links, FIFOs, large files, odd names and deep folders are named and never opened."""
    (home.real / "b.md").write_bytes(b"b")
    outside = home.real.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(b"secret")
    os.symlink(outside / "secret.md", home.real / "link.md")
    os.symlink(outside, home.real / "folder")
    os.mkfifo(home.real / "fifo.md")
    (home.real / "large.md").write_bytes(b"x" * (limits.READ_BYTES + 1))
    Path(os.fsdecode(bytes(home.real) + b"/\xff.md")).write_bytes(b"x")
    deep = home.real.joinpath(*"abcdefghijklmnopq")
    deep.mkdir(parents=True)
    (deep / "x.md").write_bytes(b"x")
    found = await home.store.still(home.directory, files)
    problems = {path: file.problem for path, file in found.items() if file.problem}
    assert [path for path, file in found.items() if not file.problem] == ["b.md"]
    assert set(problems) == {
        *("fifo.md", "folder", "large.md", "link.md", "\\udcff.md"),
        "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q",
    }
    assert all(file.content == b"" for path, file in found.items() if path in problems)


async def test_writers_wait_until_it_is_over(home: Home) -> None:
    """A change that begins meanwhile is made afterwards, and nothing is lost."""
    reached, go_on = threading.Event(), threading.Event()

    def work(directory: str) -> list[str]:
        reached.set()
        assert go_on.wait(60)
        return list(files(directory))

    seen: list[list[str]] = []

    async def look() -> None:
        seen.append(await home.store.still(home.directory, work))

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        await to_thread.run_sync(reached.wait)
        group.start_soon(home.write, "b.md", topic("b"))
        await anyio.wait_all_tasks_blocked()
        go_on.set()
    assert seen == [[]]
    assert (home.real / "b.md").exists()


class Written(Directory):
    """A directory in which another program saves a file after each of its first reads."""

    saves = 0

    def read(self, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
        """Read, and let the other one save."""
        result = super().read(name, limit)
        if self.saves > 0:
            self.saves -= 1
            Path(self.path, name).write_bytes(b"x" * (self.saves + 2))
        return result


def test_a_file_is_read_until_it_stays(tmp_path: Path) -> None:
    """A text that was changed while it was read is read again; one that never stays is told."""
    (tmp_path / "a.md").write_bytes(b"0")
    with Written(str(tmp_path)) as directory:
        directory.saves = 2
        settled = read_settled(directory, "a.md")
        assert settled
        assert (settled.content, settled.problem) == (b"xx", "")
        directory.saves = 100
        written = read_settled(directory, "a.md")
        assert written
        assert "went on writing" in written.problem
        assert read_settled(directory, "none.md") is None

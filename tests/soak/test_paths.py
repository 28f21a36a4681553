"""G12: hostile names through every entry, and races with links. Escapes are told by inode.

Outside the memory directory lies a canary at every level above it, and /etc/passwd is the other
target. An answer that holds either text, a file outside that changed, came or went, or a folder of
an agent outside the base, is an escape.
"""

import gzip
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import pytest

from memd.base.errors import MemdError
from memd.client.aio import AsyncClient
from memd.store import index
from memd.store.directory import Directory
from tests import corpora
from tests.soak.figures import FIGURE
from tests.support.daemon import Home, daemon_here, throw_away_home

Record = Callable[[str, object], None]
CANARY = "the-canary-that-nobody-may-see"
INTERNAL = -32603
AT_ONCE = 24


def names(step: int) -> list[str]:
    """Return every ``step``-th payload of the corpus, aimed at both targets, in all decodings."""
    path = corpora.folder("paths") / "all_traversals.txt.gz"
    payloads = gzip.decompress(path.read_bytes()).decode("utf-8", "surrogateescape").splitlines()
    results: dict[str, None] = {}
    for payload in payloads[::step]:
        for target in ("canary.md", "etc/passwd") if "{FILE}" in payload else ("",):
            name = payload.replace("{FILE}", target)
            for form in decodings(name):
                results[form.encode("utf-8", "replace").decode()] = None
    return list(results)


def decodings(name: str) -> Iterator[str]:
    """Yield a name as it is, decoded once to thrice, with slashes turned, and normalised."""
    form = name
    yield form
    for _ in range(3):
        form = unquote(form, errors="surrogateescape")
        yield form
    yield form.replace("\\", "/")
    yield unicodedata.normalize("NFKC", form)


def outside(home: Home, memory: str) -> dict[str, tuple[int, int, int]]:
    """Return every file below the home but outside the places that a name may lead to."""
    results = {}
    state = home.places.state_dir
    for folder, folders, files in os.walk(home.path):
        folders[:] = [f for f in folders if f"{folder}/{f}" not in (memory, state)]
        for file in files:
            if "agent-memory" not in folder:
                facts = os.lstat(f"{folder}/{file}")
                results[f"{folder}/{file}"] = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
    return results


class Entries:
    """The entries of the socket that take a name; ``escapes`` lists what went wrong."""

    def __init__(self, client: AsyncClient, home: Home, cwd: str) -> None:
        self.client = client
        self.home = home
        self.cwd = cwd
        self.escapes: list[str] = []
        self.calls = 0

    async def every(self, name: str) -> None:
        """Send one name through all entries."""
        tool = {"path": f"/memories/{name}"}
        text = {
            "file_text": "x",
            "insert_line": 0,
            "insert_text": "x",
            "old_str": "",
            "new_str": "",
        }
        part = {"name": "n", "description": "d", "type": "user", "body": "b"}
        await self.call("memory.read", path=name)
        await self.call("memory.write", path=name, **part)
        await self.call("memory.delete", path=name)
        for command in ("create", "view", "insert", "str_replace", "delete"):
            await self.call("memory.tool", command={"command": command, **tool, **text})
        paths = {"old_path": "/memories/mine.md", "new_path": tool["path"]}
        await self.call("memory.tool", command={"command": "rename", **paths})
        paths = {"old_path": tool["path"], "new_path": "/memories/got.md"}
        await self.call("memory.tool", command={"command": "rename", **paths})
        for scope in ("user", "project", "local"):
            about = {"agent": name, "scope": scope}
            await self.call("load_prompt", mode="agent", **about)
            await self.call("memory.write", path="a.md", **part, **about)
            await self.call("memory.read", path="a.md", **about)
            about["agent"] = "reviewer"
            await self.call("memory.write", path=name, **part, **about)
            await self.call("memory.read", path=name, **about)
            await self.call("memory.delete", path=name, **about)

    async def call(self, method: str, **params: Any) -> None:
        """Call a method and look at its answer."""
        self.calls += 1
        try:
            answer = await self.client.call(method, {"cwd": self.cwd, **params})
        except MemdError as error:
            if error.code == INTERNAL:
                self.escapes.append(f"{method} {params}: {error}")
            return
        said = str(answer)
        if CANARY in said or "root:x:0" in said:
            self.escapes.append(f"{method} {params}")
        place = answer.get("memory_dir")
        if place and not os.path.realpath(place).startswith(self.home.path):
            self.escapes.append(f"{method} {params} at {place}")


@pytest.mark.anyio
@pytest.mark.parametrize("step", [1000, pytest.param(1, marks=pytest.mark.soak)])
async def test_no_name_leads_out(step: int, record_property: Record) -> None:
    """No payload in any decoding reads, writes, lists or removes anything outside."""
    chosen = names(step)
    with throw_away_home() as home:
        async with daemon_here(home), AsyncClient(home.places.socket) as client:
            entries = Entries(client, home, home.project())
            memory = (await client.call("memory.list", {"cwd": entries.cwd}))["memory_dir"]
            os.makedirs(memory, exist_ok=True)
            folder = memory
            while folder != os.path.dirname(home.path):
                folder = os.path.dirname(folder)
                if folder.startswith(home.path):
                    Path(folder, "canary.md").write_text(CANARY)
            before = outside(home, memory)
            queue = iter(chosen)

            async def work() -> None:
                for name in queue:
                    await entries.every(name)

            async with anyio.create_task_group() as group:
                for _ in range(AT_ONCE):
                    group.start_soon(work)
            changed = before.items() ^ outside(home, memory).items()
        entries.escapes += [str(item) for item in changed]
        entries.escapes += links(chosen, memory)
    record_property(
        FIGURE,
        f"G12 names: {len(chosen)} names, {entries.calls} calls and as many index links,"
        f" {len(entries.escapes)} escapes",
    )
    assert entries.escapes == []


def links(chosen: list[str], memory: str) -> list[str]:
    """Follow an index that points to every name; return what was read from outside."""
    escapes = []
    with Directory(memory) as directory:
        for name in chosen:
            for entry in index.entries(f"- [a]({name}) — b\n- [a](<{name}>)\n".encode()):
                try:
                    answer = directory.read(entry.path, 1 << 20)
                except MemdError:
                    continue
                if answer and (CANARY.encode() in answer[0] or b"root:x:0" in answer[0]):
                    escapes.append(f"index link {name}")
    return escapes


SWAPPER = """
import os, sys
os.chdir(sys.argv[1])
print("swapping", flush=True)
while os.getppid() == int(sys.argv[2]):
    for _ in range(1000):
        for name, evil in (("sub", "evil"), ("a.md", "evil.md")):
            os.rename(name, "spare"); os.rename(evil, name)
            os.rename(name, evil); os.rename("spare", name)
"""


@pytest.mark.parametrize("tries", [2_000, pytest.param(500_000, marks=pytest.mark.soak)])
def test_no_race_with_a_link_is_won(tmp_path: Path, tries: int, record_property: Record) -> None:
    """A file and a folder that another process swaps for links all the time let nobody out."""
    root, other = tmp_path / "memory", tmp_path / "outside"
    for folder, content in ((root / "sub", b"ours"), (other, b"secret")):
        folder.mkdir(parents=True)
        (folder / "a.md").write_bytes(content)
    (root / "a.md").write_bytes(b"ours")
    (root / "evil").symlink_to(other)
    (root / "evil.md").symlink_to(other / "a.md")
    foreign = {os.stat(other).st_ino, os.stat(other / "a.md").st_ino}
    command = [sys.executable, "-c", SWAPPER, str(root), str(os.getpid())]
    until = time.monotonic() + 60
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            done, refused, escapes = try_often(str(root), tries, foreign, until)
        finally:
            swapper.kill()
    record_property(FIGURE, f"G12 races: {done} tries, {refused} refused, {escapes} escapes")
    assert escapes == 0
    assert done == tries


def try_often(root: str, tries: int, foreign: set[int], until: float) -> tuple[int, int, int]:
    """Open what is swapped again and again; return tries, refusals and escapes by inode."""
    done = refused = escapes = 0
    with Directory(root) as directory:
        while done < tries and time.monotonic() < until:
            done += 1
            try:
                if done % 4 == 0:
                    with directory.parent("sub/a.md") as (fd, _):
                        escapes += os.fstat(fd).st_ino in foreign
                else:
                    answer = directory.read("a.md" if done % 2 else "sub/a.md", 100)
                    escapes += answer is not None and answer[1].st_ino in foreign
            except MemdError:
                refused += 1
    return done, refused, escapes

"""``make bench-import``: how long an import of 10,000 entries takes, for each kind.

Over the socket of a daemon process, with an empty project. ``load`` is what Python takes to load
the source and do nothing with it: ``json.load``, or reading each file. ``reader`` is the reader
alone, ``dry run`` an import that only says what it would do, ``accept`` one that makes the
memories, ``cpu`` the processor's part of that, and ``disk`` what it takes alone to write as many
files so that each is on the disk; all in seconds. ``ratio`` is how many times as long as ``load``
the whole of ``accept`` takes. The aim is 10 s.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchmarks.corpus import Memory, memory
from memd.client.aio import AsyncClient
from memd.portable import kinds
from memd.portable.archive import open_source
from tests.support.daemon import daemon_process, throw_away_home

_AT = "2026-03-02T09:00:00.000Z"


def _json(entry: Callable[[Memory], object]) -> Callable[[Path, list[Memory]], None]:
    def write(folder: Path, memories: list[Memory]) -> None:
        (folder / "export.json").write_text(json.dumps([entry(each) for each in memories]))

    return write


def _notes(folder: Path, memories: list[Memory]) -> None:
    for each in memories:
        head = f"title: {each.name}\ntype: note\npermalink: {each.name}"
        (folder / f"{each.name}.md").write_text(f"---\n{head}\n---\n\n{each.body}\n")


def _folder(folder: Path, memories: list[Memory]) -> None:
    (folder / "MEMORY.md").write_text("- [One](one.md)\n")
    for each in memories[1:]:
        (folder / f"{each.name}.md").write_text(each.content)


def _lines(folder: Path, memories: list[Memory]) -> None:
    lines = (f"[2026-03-02] - {' '.join(each.body.split())}" for each in memories)
    (folder / "memories.txt").write_text("\n".join(lines))


def _handbook(folder: Path, memories: list[Memory]) -> None:
    lines = "\n".join(f"- {' '.join(each.body.split())} [Task 1]" for each in memories)
    head = "# Task Group: loom\n\nscope: cards\n\n## Reusable knowledge\n\n"
    (folder / "MEMORY.md").write_text(f"{head}{lines}\n")


def _account(folder: Path, memories: list[Memory]) -> None:
    text = "\n\n".join(each.body.replace("\n\n", "\n") for each in memories)
    (folder / "memories.json").write_text(json.dumps([{"conversations_memory": text}]))


def _observations(folder: Path, memories: list[Memory]) -> None:
    observations = [
        {"type": "decision", "title": each.description, "narrative": each.body, "created_at": _AT}
        for each in memories
    ]
    (folder / "export.json").write_text(json.dumps({"observations": observations}))


SOURCES: dict[str, Callable[[Path, list[Memory]], None]] = {
    "claude-code": _folder,
    "codex": _handbook,
    "basic-memory": _notes,
    "claude-mem": _observations,
    "mem0": _json(lambda each: {"memory": each.body, "metadata": None, "created_at": _AT}),
    "claude-ai": _account,
    "text": _lines,
}


def _loaded(folder: Path) -> None:
    for path in folder.iterdir():
        content = path.read_bytes()
        if path.suffix == ".json":
            json.loads(content)


def _read(folder: Path) -> None:
    with open_source(str(folder), str(folder)) as source:
        kind = kinds.kind_of(source)
        assert kind is not None
        kinds.read(kind, source)


def _durable(folder: Path, count: int) -> None:
    for number in range(count):
        with (folder / f"{number}.tmp").open("wb") as file:
            file.write(b"x" * 1000)
            file.flush()
            os.fsync(file.fileno())


def _seconds(work: Callable[[Path], None], folder: Path) -> float:
    begun = time.perf_counter()
    work(folder)
    return time.perf_counter() - begun


async def _import(client: AsyncClient, cwd: str, source: Path, **how: bool) -> tuple[float, Any]:
    begun = time.perf_counter()
    params = {"cwd": cwd, "source": str(source), **how}
    answer = await client.call("import", params)
    return time.perf_counter() - begun, answer


async def main(count: int, chosen: list[str]) -> None:
    """Measure and print."""
    made = [memory(number) for number in range(count)]
    titles = ("MiB", "load", "reader", "dry run", "accept", "cpu", "disk", "ratio")
    print("kind".ljust(14) + "".join(title.rjust(9) for title in titles))
    for kind in chosen or SOURCES:
        with throw_away_home() as home:
            folder, cwd = Path(home.path) / "source", home.project()
            folder.mkdir()
            SOURCES[kind](folder, made)
            size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
            _loaded(folder)
            load, reader = _seconds(_loaded, folder), _seconds(_read, folder)
            with daemon_process(home) as daemon:
                async with AsyncClient(home.places.socket, name="bench") as client:
                    await client.call("load_prompt", {"cwd": cwd})
                    dry, _ = await _import(client, cwd, folder, dry_run=True)
                    before = sum(psutil.Process(daemon.pid).cpu_times()[:2])
                    accept, answer = await _import(client, cwd, folder, accept=True)
                    cpu = sum(psutil.Process(daemon.pid).cpu_times()[:2]) - before
            (project,) = answer["projects"]
            brought = len(project["files"]) + project["files_more"]
            assert brought >= 0.99 * count, (brought, answer["left_out"][:3])
            empty = Path(home.path) / "disk"
            empty.mkdir()
            begun = time.perf_counter()
            _durable(empty, count)
            disk = time.perf_counter() - begun
            figures = (size, load, reader, dry, accept, cpu, disk)
            row = "".join(f"{figure:>9.2f}" for figure in figures)
            print(f"{kind:<14}{row}{accept / load:>9.0f}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, sys.argv[2:]))

"""Exports while others write: the manifest fits its files, and all are from one instant."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from memd.base.names import INDEX
from memd.projects.known import KnownProject
from memd.store.index import entries
from tests.portable.exports import Archives, archives_in, checked, recorded
from tests.soak.figures import FIGURE
from tests.store.bench import topic

pytestmark = pytest.mark.anyio
WRITERS, FILES = 8, 6
ROUNDS = 10  # in one home, whose history grows with each
Record = Callable[[str, object], None]


async def write(
    archives: Archives, project: KnownProject, who: int, stop: anyio.Event, *, foreign: bool
) -> None:
    """Change some memories and remove some again, through memd or as another program does."""
    number = 0
    while not stop.is_set():
        number += 1
        path = f"w{who}-{number % FILES}.md"
        text = topic(f"{who}-{number}", "x" * (number % 50))
        if foreign:
            await to_thread.run_sync(partial(save, project, path, text))
        else:
            gone = number % FILES == FILES - 1 and Path(project.directory, path).exists()
            await archives.write(project, {path: None if gone else text})
        await anyio.lowlevel.checkpoint()


def save(project: KnownProject, path: str, text: bytes) -> None:
    """Save a file as a program does that knows nothing of memd."""
    temp = Path(project.directory, f"{path}~")
    temp.write_bytes(text)
    temp.rename(temp.with_name(path))


def wrong(destination: Path, *, foreign: bool) -> str:
    """Say in what the parts of an archive contradict each other."""
    records = recorded(checked(destination))
    memory = "projects/app/memory/"
    there = {n.removeprefix(memory): r.sha256 for n, r in records.items() if n.startswith(memory)}
    if foreign:  # it is another program's business what it has written when
        return ""
    index = (destination / memory / INDEX).read_bytes()
    pointed = {path for entry in entries(index) for path in entry.paths}
    if pointed != there.keys() - {INDEX}:
        return f"the index names {sorted(pointed)}, and there are {sorted(there)}"
    return ""


async def run(folder: Path, rounds: int, *, foreign: bool) -> list[str]:
    """Export some times while all write; return what was wrong."""
    bad = []
    with archives_in(folder / "home") as archives:
        project = archives.project()
        await archives.write(project, {f"w{n}-0.md": topic(f"{n}") for n in range(WRITERS)})
        stop = anyio.Event()
        async with anyio.create_task_group() as group:
            for who in range(WRITERS):
                other = foreign and who % 2 == 0
                group.start_soon(partial(write, archives, project, who, stop, foreign=other))
            for number in range(rounds):
                out = folder / f"out-{number}"
                await archives.export(out)
                if why := await to_thread.run_sync(partial(wrong, out, foreign=foreign)):
                    bad.append(why)
            stop.set()
    return bad


@pytest.mark.parametrize(
    ("rounds", "foreign"),
    [
        (2, False),
        (1, True),
        pytest.param(100, False, marks=pytest.mark.soak),
        pytest.param(100, True, marks=pytest.mark.soak),
    ],
)
async def test_an_export_is_of_one_instant(
    tmp_path: Path, rounds: int, record_property: Record, *, foreign: bool
) -> None:
    """Eight writers never stop; each archive is whole, its index is its files'."""
    bad: list[str] = []
    for first in range(0, rounds, ROUNDS):
        folder = tmp_path / str(first)
        bad += await run(folder, min(ROUNDS, rounds - first), foreign=foreign)
        assert not [name for name in os.listdir(folder) if name.startswith(".memd-")]
    words = "with other programs" if foreign else "through memd"
    record_property(FIGURE, f"exports during 8 writers {words}: {rounds}, {len(bad)} bad")
    assert bad == []

"""Dreams under the lock, judged at the door."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.core.settings import Settings
from memd.core.text import sha256
from memd.core.values import Actor, Draft, FileEdit, Provenance, Tree
from memd.core.yielding import yield_to_requests, yielding
from memd.dream.run import LockLostError
from memd.dream.values import Wanted
from memd.state import cursors, dreams, job_rows, journal
from memd.state.database import open_database
from memd.state.proposed import ProposedEdit
from memd.watch import locks
from tests.dream.bench import NOW, NS, Bench

pytestmark = pytest.mark.anyio

ON = Settings()
FACT = (
    "Deploys go out on the second day after the weekly review, and the on-call engineer of that "
    "week watches the dashboards for an hour before anybody else merges to the main branch."
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store without memories."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA, dreams.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    yield Bench(tmp_path, database)
    database.close()


def _greedy(tree: Tree) -> Wanted:
    edits = tuple(FileEdit(header.path, None) for header in tree.headers())
    return Wanted((*edits, FileEdit("new.md", b"text")))


async def test_a_greedy_dream_becomes_a_proposal(bench: Bench) -> None:
    """A dream that would delete everything changes nothing and is kept to be looked at."""
    for name in "abcd":
        bench.write(f"{name}.md", f"Fact {name}.")
    before = bench.content()
    report = await bench.run(bench.dreams(_greedy))
    assert report.change is None
    assert report.facts()["proposal"] == report.proposal
    assert "a.md would go without a reason" in report.problems
    after = bench.content()
    assert after.pop(locks.LOCK) == (b"", int(NOW) * NS)
    assert after == before
    (proposal,) = bench.proposals.of_directory(str(bench.memory))
    assert proposal.id == report.proposal
    assert proposal.problems == report.problems
    assert (proposal.engine, proposal.said) == ("", "")
    assert proposal.edits is not None
    *gone, new = proposal.edits
    assert new == ProposedEdit("new.md", b"text")
    assert [edit.content for edit in gone] == [None] * 4
    assert gone[0].before == before[gone[0].path][0]


async def test_a_lock_that_was_lost_commits_nothing(bench: Bench) -> None:
    """Where another program took the lock during the pass, nothing is written."""
    bench.write("a.md", FACT)
    bench.write("b.md", FACT)

    def lose(tree: Tree) -> Wanted:
        bench.lock(NOW, b"4242\n")
        return Wanted((FileEdit(tree.headers()[0].path, None),))

    with pytest.raises(LockLostError):
        await bench.run(bench.dreams(lose))
    assert (bench.memory / locks.LOCK).read_bytes() == b"4242\n"
    assert len(list(bench.memory.glob("*.md"))) == 2
    assert bench.table.locks() == ()


async def test_writers_do_not_wait_for_a_pass(bench: Bench) -> None:
    """While a dream looks at a directory others write there; what they touch is looked at anew."""
    a, b = bench.write("a.md", "One fact."), bench.write("b.md", "Another fact.")
    seen: list[dict[str, bytes]] = []

    def written(text: bytes) -> Any:
        return lambda _tree: Draft((FileEdit("b.md", text),))

    def tighten(tree: Tree) -> Wanted:
        files = {path: tree.read(path) for path in ("a.md", "b.md")}
        seen.append({path: file.content for path, file in files.items() if file})
        if len(seen) == 1:  # the directory is nobody's: this would hang otherwise
            theirs = written(b.read_bytes() + b"\nMore.\n")
            by = Provenance(Actor.CLIENT)
            anyio.from_thread.run(bench.store.commit, str(bench.memory), theirs, by)
        both = seen[-1]["b.md"] + b"\nAnd more.\n"
        return Wanted((FileEdit("b.md", both, sha256(seen[-1]["b.md"])),))

    with anyio.fail_after(60):
        report = await bench.run(bench.dreams(tighten))
    assert report.changed == ("b.md",)
    assert [b"More." in files["b.md"] for files in seen] == [False, True]
    assert b.read_bytes().endswith(b"More.\n\nAnd more.\n")
    assert a.exists()


async def test_what_nobody_touched_is_looked_at_once(bench: Bench) -> None:
    """A pass over a directory that stays as it was runs once, and not while writers wait."""
    bench.write("a.md", "One fact.")
    looks: list[int] = []

    def inspect(tree: Tree) -> Wanted:
        looks.append(len(tree.headers()))
        file = tree.read("a.md")
        assert file is not None
        return Wanted((FileEdit("a.md", file.content + b"\nMore.\n", file.hash),))

    assert (await bench.run(bench.dreams(inspect))).changed == ("a.md",)
    assert looks == [1]


async def test_a_pass_that_gives_way_ends_at_once(bench: Bench) -> None:
    """A pass that is at work when its dream is cancelled ends at its next word to others."""
    bench.write("a.md", FACT)
    before = bench.content()
    begun = threading.Event()
    ways: list[int] = []

    def endless(_tree: Tree) -> Wanted:
        while True:
            begun.set()
            yield_to_requests()

    async def run() -> None:
        with yielding(lambda: ways.append(1)):
            await bench.run(bench.dreams(endless))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            assert await anyio.to_thread.run_sync(begun.wait, 10)
            group.cancel_scope.cancel()
    assert ways != []
    assert bench.content() == before
    assert bench.table.locks() == ()

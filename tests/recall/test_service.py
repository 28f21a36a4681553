"""prefetch, search and the end of a session."""

import errno
import tempfile
import threading
from pathlib import Path
from threading import Lock
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.core.settings import RecallSettings, Settings
from memd.core.values import Catalogue
from memd.daemon.clock import SystemClock
from memd.recall.indexes import Indexes
from memd.recall.service import Recall
from memd.state.database import Database, StateUnusableError, open_database
from memd.state.ledger import SCHEMA, Ledger
from tests.recall.shelf import FREEZE, PROJECT, Shelf, ask, remembering

pytestmark = pytest.mark.anyio


async def test_the_memory_that_fits_comes_back(recall: Recall) -> None:
    """One prompt brings its memory with all that a client needs, and counts its bytes."""
    results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    (memory,) = results.memories
    assert memory.path == "/m/freeze.md"
    assert memory.header == "Memory (saved 3 days ago): /m/freeze.md:"
    assert (memory.type, memory.scope, memory.truncated) == ("project", "private", False)
    assert (results.skipped, results.strategy, results.note) == (None, "local", None)
    assert results.session_bytes == len(memory.content.encode())
    assert "> Begins on 2026-03-05.\n> Ends later." in results.block


async def test_a_memory_comes_once_per_session(recall: Recall, shelf: Shelf) -> None:
    """It comes again in another session, after a reset, or when its file changed."""
    both = FREEZE + " and does it concern npm or pnpm?"
    first = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    again = await ask(recall, PROJECT, Settings(), session="s", query=both)
    assert [memory.name for memory in again.memories] == ["pnpm"]
    none = await ask(recall, PROJECT, Settings(), session="s", query=both)
    assert (none.memories, none.skipped, none.block) == ((), "no_candidates", "")
    assert none.session_bytes > first.session_bytes
    shelf.put("freeze.md", "Merge freeze moved", "Begins on 2026-03-09.")
    changed = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert changed.memories[0].content == "Begins on 2026-03-09."
    other = await ask(recall, PROJECT, Settings(), session="t", query=FREEZE)
    assert len(other.memories) == 1
    await recall.reset("s")
    reset = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert reset.session_bytes == other.session_bytes


async def test_silence_when_nothing_fits(recall: Recall) -> None:
    """A prompt that no memory helps with brings none, and no gate is to blame."""
    results = await ask(recall, PROJECT, Settings(), session="s", query="thanks, looks good")
    assert (results.memories, results.skipped, results.block) == ((), None, "")


async def test_gates_name_themselves(recall: Recall) -> None:
    """Each gate skips under its own name and tells the session's bytes."""
    off = replace(PROJECT, enabled=False)
    empty = replace(PROJECT, memory_dir="/empty")
    for project, settings, query, reason in (
        (off, Settings(), FREEZE, "memory_off"),
        (PROJECT, Settings(recall=RecallSettings(enabled=False)), FREEZE, "recall_off"),
        (PROJECT, Settings(), " ", "no_text"),
        (PROJECT, Settings(), "freeze", "single_word"),
        (empty, Settings(), FREEZE, "no_candidates"),
    ):
        results = await ask(recall, project, settings, session="s", query=query)
        assert (results.skipped, results.memories, results.session_bytes) == (reason, (), 0)


async def test_asking_for_a_model_without_one_says_so(recall: Recall) -> None:
    """The local ranker answers in its place and the answer tells."""
    results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, strategy="model")
    assert (len(results.memories), results.strategy) == (1, "local")
    assert "no model" in (results.note or "")


async def test_what_the_client_read_is_left_out(
    shelf: Shelf, database: Database, tmp_path: Path
) -> None:
    """A path that was read counts through a link to the directory as well."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    shelf.put("freeze.md", "Merge freeze for the mobile release", directory=str(link))
    recall = remembering(shelf, Ledger(database))
    project = replace(PROJECT, memory_dir=str(link))
    results = await ask(
        recall, project, Settings(), session="s", query=FREEZE, read_paths=[f"{real}/freeze.md"]
    )
    assert results.skipped == "no_candidates"


async def test_tools_just_used_need_no_usage_notes(recall: Recall, shelf: Shelf) -> None:
    """A usage reference for a tool of this conversation is left out."""
    shelf.put("kubectl.md", "Usage of the kubectl tool with flags")
    query = "which flags for kubectl?"
    used = await ask(
        recall, PROJECT, Settings(), session="s", query=query, recent_tools=["kubectl"]
    )
    assert used.memories == ()
    assert (await ask(recall, PROJECT, Settings(), session="s", query=query)).memories


async def test_only_changed_files_are_read_again(recall: Recall, shelf: Shelf) -> None:
    """An unchanged directory is not read again to rank it; what is gone is forgotten."""
    await recall.search(PROJECT, "nosuchword", 5)
    assert sorted(shelf.read) == ["freeze.md", "pnpm.md"]
    shelf.read.clear()
    shelf.put("pnpm.md", "User prefers yarn")
    assert await recall.search(PROJECT, "installs", 5) == ()
    assert [hit.path for hit in await recall.search(PROJECT, "yarn", 5)] == ["pnpm.md"]
    assert shelf.read.count("freeze.md") == 0
    shelf.drop("freeze.md")
    assert await recall.search(PROJECT, "freeze", 5) == ()


async def test_a_file_that_cannot_be_read(recall: Recall, shelf: Shelf) -> None:
    """One too large to load is known by its header, and left out of answers."""
    shelf.unreadable.add("freeze.md")
    assert (await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)).memories == ()
    assert await recall.search(PROJECT, "freeze", 5) == ()
    shelf.unreadable.clear()
    assert await recall.search(PROJECT, "freeze", 5)


async def test_two_at_once_never_bring_the_same(recall: Recall) -> None:
    """Of several prefetches of one session at once, one brings the memory."""
    results = []

    async def one() -> None:
        results.append(await ask(recall, PROJECT, Settings(), session="s", query=FREEZE))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
    assert sum(len(answer.memories) for answer in results) == 1


class Impatient(Ledger):
    """A ledger whose mark is cancelled by the client in the very instant it is made."""

    scope: anyio.CancelScope

    def mark(self, *arguments: Any) -> Any:
        """Mark, and let the client lose patience."""
        marked = super().mark(*arguments)
        self.scope.cancel()
        return marked


async def test_a_cancelled_prefetch_marks_nothing(shelf: Shelf, database: Database) -> None:
    """Cancelled before or in the instant of the mark, the memory may come again."""
    ledger = Impatient(database)
    recall = remembering(shelf, ledger)
    with anyio.CancelScope() as ledger.scope:
        await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert ledger.scope.cancelled_caught
    with anyio.CancelScope() as early:
        early.cancel()
        await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert ledger.surfaced("s").bytes == 0


class Stuck(Shelf):
    """A directory on a disk that answers once the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.freed = threading.Event()

    def catalogue(self, directory: str, since: int = -1) -> Catalogue:
        """Wait for the disk."""
        self.freed.wait(60)
        return super().catalogue(directory, since)


async def test_a_stuck_disk_holds_no_prompt(database: Database) -> None:
    """A prompt has its answer at its deadline, the next one as well, and nothing is marked."""
    shelf = Stuck()
    shelf.put("freeze.md", "Merge freeze for the mobile release", "Begins on 2026-03-05.")
    ledger = Ledger(database)
    recall = Recall(shelf, ledger, SystemClock(), Indexes(shelf, Lock))
    try:
        for _ in range(2):
            overdue = await ask(
                recall, PROJECT, Settings(), session="s", query=FREEZE, seconds=0.05
            )
            assert (overdue.skipped, overdue.memories) == ("deadline", ())
        assert ledger.surfaced("s").bytes == 0
    finally:
        shelf.freed.set()
    done = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, seconds=60.0)
    assert done.memories


async def test_without_a_ledger_nothing_comes(shelf: Shelf, tmp_path: Path) -> None:
    """A state file that cannot be used costs the memories of a prompt, never the turn."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    database.close()
    recall = remembering(shelf, Ledger(database))
    results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert (results.memories, results.skipped) == ((), "ledger_unavailable")
    assert (await ask(recall, PROJECT, Settings(), session="s", query="")).skipped == "no_text"


async def test_an_unreadable_directory_costs_no_turn(recall: Recall, shelf: Shelf) -> None:
    """Whatever the store refuses, the answer is an empty one that says why."""
    shelf.refuses = True
    results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
    assert (results.memories, results.skipped) == ((), "directory_unreadable")
    assert results.note == "no access"


async def test_an_explanation_marks_nothing(recall: Recall) -> None:
    """Asked to explain, the answer has its reasons, twice the same, and nothing is marked."""
    for _ in range(2):
        results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE, explain=True)
        assert results.explanation is not None
        (row,) = [row for row in results.explanation.rows if row.kept]
        assert (row.path, row.last_surfaced, results.session_bytes) == ("freeze.md", None, 0)
    assert (await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)).memories
    closed = await ask(
        recall,
        PROJECT,
        Settings(),
        session="s",
        query=FREEZE,
        read_paths=["pnpm.md"],
        explain=True,
    )
    assert closed.skipped == "no_candidates"
    assert closed.explanation is not None


async def test_indexing_goes_on_in_the_background(shelf: Shelf, database: Database) -> None:
    """A directory that is warmed is indexed without a prompt; one that cannot be read waits."""
    shelf.put("a.md", "quorum", directory="/n")
    recall = remembering(shelf, Ledger(database))
    async with anyio.create_task_group() as group:
        await group.start(recall.run)
        recall.warm("/m")
        while "pnpm.md" not in shelf.read:
            await anyio.lowlevel.checkpoint()
        shelf.refuses = True
        recall.warm("/n")
        while recall._unindexed:
            await anyio.lowlevel.checkpoint()
        shelf.refuses = False
        recall.warm("/n")
        while "a.md" not in shelf.read:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def test_what_was_surfaced_outlives_the_daemon(shelf: Shelf, database: Database) -> None:
    """A restarted daemon brings nothing that the session has been given."""
    first = remembering(shelf, Ledger(database))
    async with anyio.create_task_group() as group:
        await group.start(first.run)
        assert (await ask(first, PROJECT, Settings(), session="s", query=FREEZE)).memories
        group.cancel_scope.cancel()
    again = remembering(shelf, Ledger(database))
    assert not (await ask(again, PROJECT, Settings(), session="s", query=FREEZE)).memories


class Full(Ledger):
    """A ledger whose state file takes nothing once it was read."""

    def flush(self) -> None:
        """Refuse when there is something to write."""
        if self._unwritten:
            raise StateUnusableError(self._database.path, str(OSError(errno.ENOSPC, "full")))


async def test_marks_that_cannot_be_written_still_count(shelf: Shelf, database: Database) -> None:
    """A full disk costs neither the memories of a prompt nor the rule that they come once."""
    recall = remembering(shelf, Full(database))
    for expected in (1, 0):
        results = await ask(recall, PROJECT, Settings(), session="s", query=FREEZE)
        assert len(results.memories) == expected


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9), st.booleans()), min_size=1, max_size=8)
)
@hypothesis_settings(max_examples=25, deadline=None)
def test_nothing_comes_twice_whoever_asks(rounds: list[tuple[int, int, bool]]) -> None:
    """Two sessions, several prompts at once, resets: once a session, and within its bytes."""

    async def run() -> None:
        shelf = Shelf()
        for number in range(20):
            shelf.put(f"{number}.md", f"the merge freeze of release {number}", "x" * 4000)
        folder = tempfile.TemporaryDirectory()
        database = open_database(f"{folder.name}/state.db", [SCHEMA])
        recall = remembering(shelf, Ledger(database))
        given_to: dict[str, list[tuple[str, int]]] = {"0": [], "1": []}

        async def one(session: str, count: int) -> None:
            results = await ask(
                recall, PROJECT, Settings(), session=session, query=FREEZE, limit=count
            )
            given_to[session] += [(memory.path, memory.bytes) for memory in results.memories]

        for session, count, reset in rounds:
            if reset:
                await recall.reset(f"{session}")
                given_to[f"{session}"] = []
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(one, f"{session}", count)
            for sent in given_to.values():
                assert len({path for path, _ in sent}) == len(sent)
                assert sum(size for _, size in sent) <= 60_000
        database.close()
        folder.cleanup()

    anyio.run(run)

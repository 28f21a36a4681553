"""prefetch, search and the end of a session."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from msgspec import structs

from memd.core.errors import MemdError
from memd.core.events import Event
from memd.core.settings import RecallSettings, Settings, TeamSettings
from memd.core.values import Header, MemoryFile, MemoryType, Project, Snapshot
from memd.recall import service
from memd.recall.service import Recall
from memd.state import journal
from memd.state.database import Database, open_database
from memd.state.ledger import SCHEMA, Ledger
from memd.state.search import SearchIndex
from memd.store.configuration import Configuration
from memd.store.service import Store
from memd.testing.clock import FakeClock

pytestmark = pytest.mark.anyio

DAY = 86_400
NOW = 1_760_000_000
PROJECT = Project("/r", "/r", "/m", "default", "/t", enabled=True)
FREEZE = "when does the merge freeze begin?"


class RefusedError(MemdError):
    """The directory cannot be read."""

    def __init__(self) -> None:
        super().__init__("no access")


class Shelf:
    """Memories in memory, read as the store reads them; counts the files that were read."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, MemoryFile]] = {}
        self.unreadable: set[str] = set()
        self.read: list[str] = []
        self.refuses = False

    def put(self, path: str, description: str, body: str = "", **facts: object) -> None:
        """Add or change a memory of ``/m``."""
        directory = self.files.setdefault(str(facts.pop("directory", "/m")), {})
        version = directory[path].header.inode + 1 if path in directory else 1
        header = Header(
            path=path,
            name=path.removesuffix(".md"),
            description=description,
            type=MemoryType.PROJECT,
            mtime_ns=(NOW - 3 * DAY) * 1_000_000_000,
            size=len(body),
            damaged=False,
            inode=version,
        )
        header = structs.replace(header, **facts)  # a test names real fields
        directory[path] = MemoryFile(header, body.encode(), "", body)

    async def snapshot(self, directory: str) -> Snapshot:
        """Return the headers."""
        if self.refuses:
            raise RefusedError
        files = self.files.get(directory, {}).values()
        return Snapshot(directory, tuple(file.header for file in files), None)

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return the memories that can be read."""
        self.read += paths
        files = self.files.get(directory, {})
        return tuple(files[p] for p in paths if p in files and p not in self.unreadable)


@pytest.fixture
def shelf() -> Shelf:
    """Return two memories that have nothing in common."""
    shelf = Shelf()
    shelf.put(
        "freeze.md", "Merge freeze for the mobile release", "Begins on 2026-03-05.\nEnds later."
    )
    shelf.put("pnpm.md", "User prefers pnpm over npm", "Use pnpm for installs.")
    return shelf


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield database
    database.close()


@pytest.fixture
def recall(shelf: Shelf, database: Database) -> Recall:
    """Return recall over the shelf."""
    return Recall(shelf, Ledger(database), FakeClock(NOW))


async def test_the_memory_that_fits_comes_back(recall: Recall) -> None:
    """One prompt brings its memory with all that a client needs, and counts its bytes."""
    found = await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    (memory,) = found.memories
    assert memory.path == "/m/freeze.md"
    assert memory.header == "Memory (saved 3 days ago): /m/freeze.md:"
    assert (memory.type, memory.scope, memory.truncated) == ("project", "private", False)
    assert (found.skipped, found.strategy, found.note) == ("", "local", "")
    assert found.session_bytes == len(memory.content.encode())
    assert "> Begins on 2026-03-05.\n> Ends later." in found.block


async def test_a_memory_comes_once_per_session(recall: Recall, shelf: Shelf) -> None:
    """It comes again in another session, after a reset, or when its file changed."""
    both = FREEZE + " and does it concern npm or pnpm?"
    first = await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    again = await recall.prefetch(PROJECT, Settings(), session="s", query=both)
    assert [memory.name for memory in again.memories] == ["pnpm"]
    none = await recall.prefetch(PROJECT, Settings(), session="s", query=both)
    assert (none.memories, none.skipped, none.block) == ((), "no_candidates", "")
    assert none.session_bytes > first.session_bytes
    shelf.put("freeze.md", "Merge freeze moved", "Begins on 2026-03-09.")
    changed = await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    assert changed.memories[0].content == "Begins on 2026-03-09."
    other = await recall.prefetch(PROJECT, Settings(), session="t", query=FREEZE)
    assert len(other.memories) == 1
    await recall.reset("s")
    reset = await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    assert reset.session_bytes == other.session_bytes


async def test_silence_when_nothing_fits(recall: Recall) -> None:
    """A prompt that no memory helps with brings none, and no gate is to blame."""
    found = await recall.prefetch(PROJECT, Settings(), session="s", query="thanks, looks good")
    assert (found.memories, found.skipped, found.block) == ((), "", "")


async def test_gates_name_themselves(recall: Recall) -> None:
    """Each gate skips under its own name and tells the session's bytes."""
    limited = Settings(recall=RecallSettings(session_bytes=0))
    off = replace(PROJECT, enabled=False)
    empty = replace(PROJECT, memory_dir="/empty")
    for project, settings, query, reason in (
        (off, Settings(), FREEZE, "memory_off"),
        (PROJECT, Settings(recall=RecallSettings(enabled=False)), FREEZE, "recall_off"),
        (PROJECT, Settings(), " ", "no_text"),
        (PROJECT, Settings(), "freeze", "single_word"),
        (PROJECT, limited, FREEZE, "session_budget"),
        (empty, Settings(), FREEZE, "no_candidates"),
    ):
        found = await recall.prefetch(project, settings, session="s", query=query)
        assert (found.skipped, found.memories, found.session_bytes) == (reason, (), 0)


async def test_the_session_budget_holds(recall: Recall) -> None:
    """What would pass the budget does not go out and is not marked."""
    small = Settings(recall=RecallSettings(session_bytes=10))
    found = await recall.prefetch(PROJECT, small, session="s", query=FREEZE)
    assert (found.memories, found.session_bytes, found.block) == ((), 0, "")
    assert (await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)).memories


async def test_asking_for_a_model_without_one_says_so(recall: Recall) -> None:
    """The local ranker answers in its place and the answer tells."""
    found = await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE, strategy="model")
    assert (len(found.memories), found.strategy) == (1, "local")
    assert "no model" in found.note


async def test_what_the_client_read_is_left_out(
    shelf: Shelf, database: Database, tmp_path: Path
) -> None:
    """A path that was read counts through a link to the directory as well."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    shelf.put("freeze.md", "Merge freeze for the mobile release", directory=str(link))
    recall = Recall(shelf, Ledger(database), FakeClock(NOW))
    project = replace(PROJECT, memory_dir=str(link))
    found = await recall.prefetch(
        project, Settings(), session="s", query=FREEZE, read_paths=[f"{real}/freeze.md"]
    )
    assert found.skipped == "no_candidates"


async def test_tools_just_used_need_no_usage_notes(recall: Recall, shelf: Shelf) -> None:
    """A usage reference for a tool of this conversation is left out."""
    shelf.put("kubectl.md", "Usage of the kubectl tool with flags")
    query = "which flags for kubectl?"
    used = await recall.prefetch(
        PROJECT, Settings(), session="s", query=query, recent_tools=["kubectl"]
    )
    assert used.memories == ()
    assert (await recall.prefetch(PROJECT, Settings(), session="s", query=query)).memories


async def test_only_changed_files_are_read_again(recall: Recall, shelf: Shelf) -> None:
    """An unchanged directory is not read again to rank it; what is gone is forgotten."""
    await recall.search(PROJECT, "nosuchword", 5)
    assert sorted(shelf.read) == ["freeze.md", "pnpm.md"]
    shelf.read.clear()
    shelf.put("pnpm.md", "User prefers yarn")
    assert await recall.search(PROJECT, "installs", 5) == ()
    assert [hit.path for hit in await recall.search(PROJECT, "yarn", 5)] == ["pnpm.md"]
    assert shelf.read.count("freeze.md") == 0
    del shelf.files["/m"]["freeze.md"]
    assert await recall.search(PROJECT, "freeze", 5) == ()


async def test_search_shows_where(recall: Recall, shelf: Shelf) -> None:
    """A search finds single words and damaged files, shows the line, and marks nothing."""
    shelf.put("raw.md", "", "---\nname: [\n---\nThe quorum is three.", damaged=True)
    (hit,) = await recall.search(PROJECT, "quorum", 5)
    assert (hit.path, hit.name, hit.snippet) == ("raw.md", "raw", "The quorum is three.")
    assert hit.score > 0
    await recall.search(PROJECT, FREEZE, 5)
    assert (await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)).memories


async def test_a_file_that_cannot_be_read(recall: Recall, shelf: Shelf) -> None:
    """One too large to load is known by its header, and left out of answers."""
    shelf.unreadable.add("freeze.md")
    assert (await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)).memories == ()
    assert await recall.search(PROJECT, "freeze", 5) == ()
    shelf.unreadable.clear()
    assert await recall.search(PROJECT, "freeze", 5)


async def test_two_at_once_never_bring_the_same(recall: Recall) -> None:
    """Of several prefetches of one session at once, one brings the memory."""
    found = []

    async def ask() -> None:
        found.append(await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(ask)
    assert sum(len(answer.memories) for answer in found) == 1


class Impatient(Ledger):
    """A ledger whose mark is cancelled by the client in the very instant it is made."""

    scope: anyio.CancelScope

    def mark(self, *arguments: object) -> object:  # type: ignore[override]
        """Mark, and let the client lose patience."""
        marked = super().mark(*arguments)  # type: ignore[arg-type]
        anyio.from_thread.run_sync(self.scope.cancel)
        return marked


async def test_a_cancelled_prefetch_marks_nothing(shelf: Shelf, database: Database) -> None:
    """Cancelled before or in the instant of the mark, the memory may come again."""
    ledger = Impatient(database)
    recall = Recall(shelf, ledger, FakeClock(NOW))
    with anyio.CancelScope() as ledger.scope:
        await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    assert ledger.scope.cancelled_caught
    with anyio.CancelScope() as early:
        early.cancel()
        await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    assert ledger.surfaced("s").bytes == 0


async def test_without_a_ledger_nothing_comes(shelf: Shelf, tmp_path: Path) -> None:
    """A state file that cannot be used costs the memories of a prompt, never the turn."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    database.close()
    recall = Recall(shelf, Ledger(database), FakeClock(NOW))
    found = await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    assert (found.memories, found.skipped) == ((), "ledger_unavailable")
    assert (await recall.prefetch(PROJECT, Settings(), session="s", query="")).skipped == "no_text"


async def test_an_unreadable_directory_costs_no_turn(recall: Recall, shelf: Shelf) -> None:
    """Whatever the store refuses, the answer is an empty one that says why."""
    shelf.refuses = True
    found = await recall.prefetch(PROJECT, Settings(), session="s", query=FREEZE)
    assert (found.memories, found.skipped) == ((), "directory_unreadable")
    assert found.note == "no access"


async def test_any_session_name_will_do(recall: Recall) -> None:
    """A name with a lone surrogate is a session like others."""
    for expected in (1, 0):
        found = await recall.prefetch(PROJECT, Settings(), session="\ud800", query=FREEZE)
        assert len(found.memories) == expected
    await recall.reset("\ud800")
    assert (await recall.prefetch(PROJECT, Settings(), session="\ud800", query=FREEZE)).memories


async def test_projects_unused_for_a_while_are_dropped(shelf: Shelf, database: Database) -> None:
    """Indices stay for a bounded number of directories; a dropped one is built again."""
    made: list[SearchIndex] = []

    def make() -> SearchIndex:
        made.append(SearchIndex())
        return made[-1]

    recall = Recall(shelf, Ledger(database), FakeClock(NOW), make)
    await recall.search(PROJECT, "freeze", 1)
    for number in range(service._PROJECTS):
        await recall.search(replace(PROJECT, memory_dir=f"/{number}"), "freeze", 1)
    assert len(await recall.search(PROJECT, "freeze", 1)) == 1
    assert len(made) == service._PROJECTS + 2
    assert len(recall._indexed) == service._PROJECTS


class Deaf:
    """Events that nobody listens to."""

    def publish(self, event: Event) -> None:
        """Drop the event."""


async def test_through_the_real_store(tmp_path: Path) -> None:
    """Memories on disk are found: nested and flat, CRLF, damaged ones, and the team's by scope."""
    memories = tmp_path / "memory"
    (memories / "team").mkdir(parents=True)
    (memories / "MEMORY.md").write_text("- [Freeze](freeze.md) - quorum lease shard\n")
    (memories / "freeze.md").write_bytes(
        b"---\r\nname: freeze\r\ndescription: Merge freeze for the release\r\n"
        b"type: project\r\n---\r\n\r\nFrom 2026-03-05.\r\n"
    )
    (memories / "team" / "quorum.md").write_text(
        "---\nname: quorum\ndescription: The quorum is three\n"
        "metadata:\n  type: reference\n---\n\nX.\n"
    )
    (memories / "raw.md").write_text("---\nname: [[[\n---\n\nThe lease renewal takes a minute.\n")
    database = open_database(str(tmp_path / "state.db"), [SCHEMA, journal.SCHEMA])
    configuration = Configuration(str(tmp_path / "memd.toml"))
    clock = FakeClock(memories.stat().st_mtime + 60)
    store = Store(database, configuration, clock, Deaf(), home=str(tmp_path), environ={})
    recall = Recall(store, Ledger(database), clock)
    project = replace(PROJECT, memory_dir=str(memories))
    before = {path: path.read_bytes() for path in memories.rglob("*.md")}
    alone = await recall.prefetch(project, Settings(), session="t", query="how many make a quorum?")
    assert alone.memories == ()  # team memory is off
    team = replace(Settings(), team=TeamSettings(enabled=True))
    surfaced = {}
    for query in (FREEZE, "how many make a quorum?", "what does the lease renewal take?"):
        found = await recall.prefetch(project, team, session="s", query=query)
        (memory,) = found.memories
        surfaced[memory.path] = (memory.type, memory.scope, memory.content)
    assert surfaced == {
        f"{memories}/freeze.md": ("project", "private", "From 2026-03-05."),
        f"{memories}/team/quorum.md": ("reference", "team", "X."),
        f"{memories}/raw.md": (None, "private", "The lease renewal takes a minute."),
    }
    assert {path: path.read_bytes() for path in memories.rglob("*.md")} == before
    database.close()

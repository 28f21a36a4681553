"""prefetch over memories on the disk."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import anyio.to_thread
import pytest
from msgspec.structs import replace

from memd.base.settings import Settings, TeamSettings
from memd.base.team import Base
from memd.base.text import sha256
from memd.base.values import Actor, Draft, FileEdit, Project, Provenance
from memd.daemon.app import SCHEMAS
from memd.projects.projects import Located
from memd.recall.search import Finder
from memd.recall.select import DEADLINE
from memd.recall.service import Authorship, Prefetched, Prompt, Recall
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from memd.state.ledger import Ledger
from memd.state.search import WordSearch
from memd.state.teams import TeamTable
from memd.store.store import Store
from tests.bases import move_bases
from tests.stores import store_in
from tests.support import corpus
from tests.support.calls import callers_in
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio

FREEZE = "when does the merge freeze begin?"


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """Make an empty memory directory."""
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield database
    database.close()


@pytest.fixture
def clock(memories: Path) -> FakeClock:
    """Return the time a minute after the memories were written."""
    return FakeClock(memories.stat().st_mtime + 60)


@pytest.fixture
def store(database: Database, clock: FakeClock) -> Store:
    """Return a store."""
    return store_in(database, clock)


def recall_over(store: Store, database: Database, clock: FakeClock, **authorship: Any) -> Recall:
    """Return recall over a store; ``authorship`` as in ``Authorship``."""
    search, ledger = WordSearch(database), Ledger(database)
    callers = callers_in(Path("/"), database, clock)
    return Recall(
        store.reading,
        search,
        ledger,
        clock,
        table=Docs(database),
        authorship=Authorship(**authorship),
        callers=callers,
    )


async def ask(recall: Recall, memories: Path, settings: Settings, **facts: Any) -> Prefetched:
    """Ask for the memories of a prompt as a client does."""
    project = Project("/r", "/r", str(memories), "default", "/t", enabled=True)
    return await recall.prefetch(lambda: (project, settings, ()), Prompt(**facts))


async def test_through_the_real_store(
    memories: Path, store: Store, database: Database, clock: FakeClock
) -> None:
    """Memories on disk are found: nested and flat, CRLF, damaged ones, and the team's by scope."""
    (memories / "team").mkdir()
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
    recall = recall_over(store, database, clock)
    before = {path: path.read_bytes() for path in memories.rglob("*.md")}
    alone = await ask(recall, memories, Settings(), session="t", query="how many make a quorum?")
    assert alone.memories == ()  # team memory is off
    team = replace(Settings(), team=TeamSettings(enabled="true"))
    surfaced = {}
    for query in (FREEZE, "how many make a quorum?", "what does the lease renewal take?"):
        results = await ask(recall, memories, team, session="s", query=query)
        (memory,) = results.memories
        surfaced[memory.path] = (memory.type, memory.scope, memory.content)
    assert surfaced == {
        f"{memories}/freeze.md": ("project", "private", "From 2026-03-05."),
        f"{memories}/team/quorum.md": ("reference", "team", "X."),
        f"{memories}/raw.md": (None, "private", "The lease renewal takes a minute."),
    }
    assert {path: path.read_bytes() for path in memories.rglob("*.md")} == before


async def test_only_what_memd_wrote_speaks_as_the_person(
    memories: Path, store: Store, database: Database, clock: FakeClock
) -> None:
    """A rule of the person stays one until another program has written its file anew."""
    recall = recall_over(store, database, clock, own=store.past.is_own)
    rule = b"---\nname: freeze\ndescription: Merge freeze\nmetadata:\n  type: feedback\n---\n\nNo\n"
    by = Provenance(Actor.CLIENT, origin="user")
    await store.commit(str(memories), lambda _: Draft((FileEdit("freeze.md", rule),)), by)
    results = await ask(recall, memories, Settings(), session="s", query=FREEZE)
    assert [memory.origin for memory in results.memories] == ["user"]
    assert "Standing instructions" in results.block
    path = memories / "freeze.md"
    path.write_bytes(path.read_bytes() + b"And obey.\n")
    results = await ask(recall, memories, Settings(), session="s", query=FREEZE)
    assert [memory.origin for memory in results.memories] == [""]
    assert "Standing instructions" not in results.block


async def test_a_team_memory_names_its_member_until_it_is_changed_here(
    memories: Path, store: Store, database: Database, clock: FakeClock
) -> None:
    """Where the directory joined, the server's word says who wrote just this text, and when."""
    (memories / "team").mkdir()
    path = memories / "team" / "quorum.md"
    path.write_text("---\nname: quorum\ndescription: The quorum is three\n---\n\nX.\n")
    table = TeamTable(database)
    at = clock.now() - 5 * 86_400
    move_bases(
        table, str(memories), [Base("quorum.md", sha256(path.read_bytes()), 3, "anna", "pc", at)]
    )
    joined = str(memories).__eq__
    recall = recall_over(store, database, clock, author=table.author, joined=joined)
    headers = []
    for session in "ab":
        query = "how many make a quorum?"
        (memory,) = (await ask(recall, memories, Settings(), session=session, query=query)).memories
        headers.append(memory.header.partition(":")[0])
        path.write_bytes(path.read_bytes() + b"Y.\n")
    assert headers == ["Team memory by anna (saved 5 days ago)", "Team memory (saved today)"]


async def test_excluded_memories_do_not_crowd_out_the_rest(
    memories: Path, store: Store, database: Database
) -> None:
    """However many of the rarest words' memories are excluded, the other ones are found."""
    text = "---\nname: {0}\ndescription: quorum {0}\ntype: project\n---\n\nX.\n"
    (memories / "team").mkdir()
    for number in range(400):
        (memories / "team" / f"m{number}.md").write_text(text.format(f"m{number}"))
    (memories / "own.md").write_text(text.format("own"))
    finder = Finder(store.reading, WordSearch(database), Authorship())
    project = Project("/r", "/r", str(memories), "default", "/t", enabled=True)
    prompt = Prompt("s", "which quorum is it?", explain=True)
    selection = finder.select(project, Settings(), prompt, {}, 0.0, for_model=False)
    assert [each.row.path for each in selection.ranked] == ["own.md"]
    assert len(selection.excluded) == 400


async def test_a_search_for_few_brings_the_first_of_many(
    memories: Path, store: Store, database: Database
) -> None:
    """What a search for three results finds is the beginning of what a search for fifty finds."""
    corpus.write(str(memories), 200)
    finder = Finder(store.reading, WordSearch(database), Authorship())
    for number in range(0, 200, 20):
        query = corpus.memory(number).description
        many = finder.search(str(memories), query, 50, 0.0)
        assert finder.search(str(memories), query, 3, 0.0) == many[:3]


async def test_a_prompt_waits_for_its_project_until_the_deadline(
    memories: Path, store: Store, database: Database, clock: FakeClock
) -> None:
    """A folder on a disk that hangs costs a prompt its time, and is no error."""
    recall, searched, back = recall_over(store, database, clock), Event(), Event()

    def locate() -> Located:
        """Return the project once the disk is back."""
        searched.set()
        back.wait()
        project = Project("/r", "/r", str(memories), "default", "/t", enabled=True)
        return project, Settings(), ()

    async with anyio.create_task_group() as group:
        group.start_soon(advance_after, searched, clock)
        result = await recall.prefetch(locate, Prompt(session="s", query=FREEZE))
    back.set()
    assert (result.memories, result.skipped) == ((), DEADLINE)


async def advance_after(event: Event, clock: FakeClock) -> None:
    """Move the clock beyond a prompt's deadline once an event was set."""
    await anyio.to_thread.run_sync(event.wait)
    clock.advance(60)

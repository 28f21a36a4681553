"""prefetch over memories on the disk."""

from dataclasses import replace
from pathlib import Path
from threading import Lock

import pytest
from msgspec import structs

from memd.base.settings import Settings, TeamSettings
from memd.base.team import Base
from memd.base.text import sha256
from memd.base.values import Actor, Draft, FileEdit, Provenance
from memd.recall.indexes import Indexes
from memd.recall.service import Authorship, Recall
from memd.state import journal
from memd.state.database import open_database
from memd.state.ledger import SCHEMA, Ledger
from memd.state.schemas import SCHEMAS
from memd.state.teams import TeamTable
from tests.bases import move_bases
from tests.recall.shelf import FREEZE, PROJECT, ask
from tests.stores import store_in
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio


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
    clock = FakeClock(memories.stat().st_mtime + 60)
    store = store_in(tmp_path, database, clock)
    recall = Recall(store.reading, Ledger(database), clock, Indexes(store.reading, Lock))
    project = structs.replace(PROJECT, memory_dir=str(memories))
    before = {path: path.read_bytes() for path in memories.rglob("*.md")}
    alone = await ask(recall, project, Settings(), session="t", query="how many make a quorum?")
    assert alone.memories == ()  # team memory is off
    team = replace(Settings(), team=TeamSettings(enabled="true"))
    surfaced = {}
    for query in (FREEZE, "how many make a quorum?", "what does the lease renewal take?"):
        results = await ask(recall, project, team, session="s", query=query)
        (memory,) = results.memories
        surfaced[memory.path] = (memory.type, memory.scope, memory.content)
    assert surfaced == {
        f"{memories}/freeze.md": ("project", "private", "From 2026-03-05."),
        f"{memories}/team/quorum.md": ("reference", "team", "X."),
        f"{memories}/raw.md": (None, "private", "The lease renewal takes a minute."),
    }
    assert {path: path.read_bytes() for path in memories.rglob("*.md")} == before
    database.close()


async def test_only_what_memd_wrote_speaks_as_the_person(tmp_path: Path) -> None:
    """A rule of the person stays one until another program has written its file anew."""
    memories = tmp_path / "memory"
    memories.mkdir()
    database = open_database(str(tmp_path / "state.db"), [SCHEMA, journal.SCHEMA])
    clock = FakeClock(memories.stat().st_mtime + 60)
    store = store_in(tmp_path, database, clock)
    own = journal.Journal(database).was_written_by_memd
    recall = Recall(
        store.reading,
        Ledger(database),
        clock,
        Indexes(store.reading, Lock),
        authorship=Authorship(own),
    )
    project = structs.replace(PROJECT, memory_dir=str(memories))
    rule = b"---\nname: freeze\ndescription: Merge freeze\nmetadata:\n  type: feedback\n---\n\nNo\n"
    by = Provenance(Actor.CLIENT, origin="user")
    await store.commit(str(memories), lambda _: Draft((FileEdit("freeze.md", rule),)), by)
    results = await ask(recall, project, Settings(), session="s", query=FREEZE)
    assert [memory.origin for memory in results.memories] == ["user"]
    assert "Standing instructions" in results.block
    path = memories / "freeze.md"
    path.write_bytes(path.read_bytes() + b"And obey.\n")
    results = await ask(recall, project, Settings(), session="s", query=FREEZE)
    assert [memory.origin for memory in results.memories] == [""]
    assert "Standing instructions" not in results.block
    database.close()


async def test_a_team_memory_names_its_member_until_it_is_changed_here(tmp_path: Path) -> None:
    """Where the directory joined, the server's word says who wrote just this text, and when."""
    memories = tmp_path / "memory"
    (memories / "team").mkdir(parents=True)
    path = memories / "team" / "quorum.md"
    path.write_text("---\nname: quorum\ndescription: The quorum is three\n---\n\nX.\n")
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    clock = FakeClock(memories.stat().st_mtime + 60)
    store = store_in(tmp_path, database, clock)
    table = TeamTable(database)
    at = clock.now() - 5 * 86_400
    move_bases(
        table, str(memories), [Base("quorum.md", sha256(path.read_bytes()), 3, "anna", "pc", at)]
    )
    authorship = Authorship(author=table.author, joined=str(memories).__eq__)
    indexes = Indexes(store.reading, Lock)
    recall = Recall(store.reading, Ledger(database), clock, indexes, authorship=authorship)
    project = structs.replace(PROJECT, memory_dir=str(memories))
    headers = []
    for session in "ab":
        query = "how many make a quorum?"
        (memory,) = (await ask(recall, project, Settings(), session=session, query=query)).memories
        headers.append(memory.header.partition(":")[0])
        path.write_bytes(path.read_bytes() + b"Y.\n")
    assert headers == ["Team memory by anna (saved 5 days ago)", "Team memory (saved today)"]
    database.close()

"""Memories of the team, as memd's own ways write them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.names import TEAM_INDEX, NameRefusedError
from memd.core.team import Author, Base
from memd.core.text import sha256
from memd.core.values import Actor, Project, Provenance, Scope
from memd.memories.service import Memories
from memd.memories.writing import SharedMemoryError, Writing
from memd.state.database import Database, open_database
from memd.state.tables import SCHEMAS, TeamTable
from memd.store.door import NotSharedError
from memd.store.service import Store
from tests.bases import move_bases
from tests.stores import store_in
from tests.support.clock import FakeClock
from tests.undoing import undo

pytestmark = pytest.mark.anyio
BY = Provenance(Actor.CLIENT, client="t", session="session-4711", origin="user")
PARTS = {"name": "a", "description": "d", "type": "project", "body": "text"}
WRITING = Writing("team/a.md", **PARTS, scope=Scope.TEAM)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open a state file."""
    opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield opened
    opened.close()


@pytest.fixture
def store(tmp_path: Path, database: Database) -> Store:
    """Open a store."""
    return store_in(tmp_path, database, FakeClock())


@pytest.fixture
def memories(store: Store) -> Memories:
    """Return the room on that store."""
    return Memories(store, FakeClock())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with a directory that is not there yet."""
    root = str(tmp_path / "p")
    return Project(root, root, f"{root}/memory", "default", f"{root}/t", enabled=True)


async def test_scope_team_writes_below_team(
    memories: Memories, store: Store, project: Project
) -> None:
    """The file names no session and no origin, its line is in the team's index, and undo works."""
    written = await memories.write(project, WRITING, BY)
    content = (Path(project.memory_dir) / "team/a.md").read_text()
    assert (written.status, "4711" in content, "origin" in content) == ("created", False, False)
    index = Path(project.memory_dir) / TEAM_INDEX
    assert index.read_text() == "- [a](a.md) — d\n"
    assert (await store.snapshot(project.memory_dir)).index is None
    changed = await memories.write(
        project, Writing("team/a.md", description="new", scope=Scope.TEAM), BY
    )
    assert index.read_text() == "- [a](a.md) — new\n"
    done, conflicts = await undo(store, project.memory_dir, changed.change or "", BY)
    assert ([file.path for file in done.files], conflicts) == (["team/a.md"], ())
    assert index.read_text() == "- [a](a.md) — d\n"


async def test_what_is_one_person_s_is_not_written_there(
    memories: Memories, project: Project
) -> None:
    """A private write, a personal type, and the index of the team are refused."""
    with pytest.raises(NameRefusedError, match="scope team"):
        await memories.write(project, Writing("team/a.md", **PARTS), BY)
    personal = Writing("team/a.md", **(PARTS | {"type": "user"}), scope=Scope.TEAM)
    with pytest.raises(NotSharedError):
        await memories.write(project, personal, BY)
    index = Writing(TEAM_INDEX, content="# mine\n", base_hash="", scope=Scope.TEAM)
    with pytest.raises(NameRefusedError):
        await memories.write(project, index, BY)
    assert not (Path(project.memory_dir) / "team").exists()


async def test_a_team_s_memory_is_not_deleted(memories: Memories, project: Project) -> None:
    """Deleting, and a tool's delete or rename, say what to do instead and change nothing."""
    await memories.write(project, WRITING, BY)
    with pytest.raises(SharedMemoryError) as refused:
        await memories.delete(project, "team/a.md", BY, joined=True)
    assert "memctl team remove" in refused.value.hint
    for command in (
        {"command": "delete", "path": "/memories/team/a.md"},
        {"command": "delete", "path": "/memories/team"},
        {"command": "rename", "old_path": "/memories/team/a.md", "new_path": "/memories/a.md"},
        {"command": "create", "path": "/memories/team/MEMORY.md", "file_text": "x"},
    ):
        answer = await memories.tool(project, command, BY)
        assert answer.is_error
    assert (Path(project.memory_dir) / "team/a.md").exists()


async def test_the_memory_tool_writes_what_a_team_shares(
    memories: Memories, project: Project
) -> None:
    """Free text of a program gets a shared type and no session; a personal memory is refused."""
    create = {"command": "create", "path": "/memories/team/n.md", "file_text": "Deploys: Fridays\n"}
    assert not (await memories.tool(project, create, BY)).is_error
    content = (Path(project.memory_dir) / "team/n.md").read_text()
    assert ("type: reference" in content, "4711" in content) == (True, False)
    mine = "---\nname: m\ndescription: d\nmetadata:\n  type: user\n---\n\nme\n"
    answer = await memories.tool(
        project, create | {"path": "/memories/team/m.md", "file_text": mine}, BY
    )
    assert (answer.is_error, "not user" in answer.text) == (True, True)


async def test_a_memory_knows_whose_words_it_is(
    memories: Memories, store: Store, project: Project, database: Database
) -> None:
    """Who asks where a team's memory comes from hears member, device and revision."""
    written = await memories.write(project, WRITING, BY)
    directory = project.memory_dir
    first = await store.consult(lambda past: past.writers(directory, "team/a.md"))
    assert first.member is None
    base = Base("a.md", written.hash, 7, "anna", "laptop", 5.0)
    move_bases(TeamTable(database), directory, [base, Base("a2.md", sha256(b"x"), 1)])
    known = await store.consult(lambda past: past.writers(directory, "team/a.md"))
    assert known.member == Author("anna", "laptop", 5.0, 7)
    other = await store.consult(lambda past: past.writers(directory, "a.md"))
    assert other.member is None

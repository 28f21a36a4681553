"""Moving a private memory to the team."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.values import Actor, Project, Provenance
from memd.memories.service import Memories
from memd.memories.writing import AlreadySharedError, NothingThereError, Writing
from memd.state.database import Database, open_database
from memd.state.tables import SCHEMAS
from memd.store.drafts import NotSharedError
from memd.store.service import Store
from tests.stores import store_in
from tests.support.clock import FakeClock
from tests.undoing import undo

pytestmark = pytest.mark.anyio
BY = Provenance(Actor.CLIENT, client="t", session="session-4711", origin="user")
PARTS = {"name": "freeze", "description": "when merges stop", "body": "On Fridays."}


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
def project(tmp_path: Path) -> Project:
    """Return a project with a directory that is not there yet."""
    root = str(tmp_path / "p")
    return Project(root, root, f"{root}/memory", "default", f"{root}/t", enabled=True)


async def test_a_memory_moves_without_what_is_the_person_s(store: Store, project: Project) -> None:
    """One change moves file and index line; session and origin stay behind; undo moves it back."""
    memories, folder = Memories(store, FakeClock()), Path(project.memory_dir)
    await memories.write(project, Writing("a/freeze.md", **PARTS, type="project"), BY)
    before = (folder / "a/freeze.md").read_bytes()
    assert b"session-4711" in before
    shared = await memories.share(project, "a/freeze.md", BY)
    content = (folder / "team/a/freeze.md").read_text()
    assert "On Fridays." in content
    assert "type: project" in content
    assert "4711" not in content
    assert "origin" not in content
    assert not (folder / "a/freeze.md").exists()
    assert (await store.snapshot(project.memory_dir)).index in (None, b"")
    assert "a/freeze.md" in (folder / "team/MEMORY.md").read_text()
    await undo(store, project.memory_dir, shared.change or "", BY)
    assert (folder / "a/freeze.md").read_bytes() == before
    assert not (folder / "team/a/freeze.md").exists()


async def test_what_is_about_the_person_stays(store: Store, project: Project) -> None:
    """A memory of type user is not shared, nor one that is not there or is the team's already."""
    memories = Memories(store, FakeClock())
    await memories.write(project, Writing("role.md", **PARTS, type="user"), BY)
    with pytest.raises(NotSharedError):
        await memories.share(project, "role.md", BY)
    for path in ("missing.md", "team/role.md"):
        with pytest.raises(NothingThereError):
            await memories.share(project, path, BY)
    assert (Path(project.memory_dir) / "role.md").exists()


async def test_another_memory_of_the_team_is_not_overwritten(
    store: Store, project: Project
) -> None:
    """Where the team has a memory of that name, nothing moves."""
    memories, folder = Memories(store, FakeClock()), Path(project.memory_dir)
    await memories.write(project, Writing("freeze.md", **PARTS, type="project"), BY)
    await memories.share(project, "freeze.md", BY)
    other = {**PARTS, "body": "On Mondays."}
    await memories.write(project, Writing("freeze.md", **other, type="project"), BY)
    with pytest.raises(AlreadySharedError):
        await memories.share(project, "freeze.md", BY)
    assert "On Fridays." in (folder / "team/freeze.md").read_text()
    assert (folder / "freeze.md").exists()

"""Direct use of memories on a real store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core import limits
from memd.core.names import INDEX
from memd.core.values import Actor, Project, Provenance
from memd.memories.service import Memories
from memd.memories.writing import NothingThereError, Writing
from memd.state import cursors, job_rows, journal
from memd.state.database import open_database
from memd.store.door import ConflictError
from memd.store.service import Store
from tests.stores import store_in
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio
BY = Provenance(Actor.CLIENT, client="t")
PARTS = {"name": "a", "description": "d", "type": "user", "body": "text"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Open a store."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    yield store_in(tmp_path, database, FakeClock())
    database.close()


@pytest.fixture
def memories(store: Store) -> Memories:
    """Return the room on that store."""
    return Memories(store, FakeClock())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with a directory that is not there yet."""
    root = str(tmp_path / "p")
    return Project(root, root, f"{root}/memory", "default", f"{root}/t", enabled=True)


async def test_what_is_written_can_be_listed_read_and_deleted(
    memories: Memories, store: Store, project: Project
) -> None:
    """A memory goes in, is found, and goes out with its line in the index."""
    assert (await store.snapshot(project.memory_dir)).headers == ()
    written = await memories.write(project, Writing("a.md", **PARTS), BY)
    assert written.status == "created"
    listing = await store.snapshot(project.memory_dir)
    assert [header.path for header in listing.headers] == ["a.md"]
    assert listing.index is not None
    assert listing.index.count(b"(a.md)") == 1
    file = await store.read(project.memory_dir, "a.md")
    assert (file.hash, file.body) == (written.hash, "text\n")
    again = await memories.write(project, Writing("a.md", **PARTS), BY)
    assert (again.status, again.hash, again.change) == ("unchanged", written.hash, None)
    with pytest.raises(ConflictError):
        await memories.delete(project, "a.md", BY, joined=False, base_hash="abc")
    await memories.delete(project, "a.md", BY, joined=False, base_hash=written.hash)
    assert (await store.snapshot(project.memory_dir)).headers == ()
    with pytest.raises(NothingThereError):
        await memories.delete(project, "a.md", BY, joined=False)


async def tell(memories: Memories, project: Project, command: str, **texts: str | int) -> str:
    """Return the tool's answer; an error begins with ``!``."""
    answer = await memories.tool(project, {"command": command, **texts}, BY)
    return f"!{answer.text}" if answer.is_error else answer.text


async def test_a_command_of_the_tool_is_done_once(memories: Memories, project: Project) -> None:
    """A repeated command changes nothing and is answered as the first time."""
    create = {"command": "create", "path": "/memories/a.md", "file_text": "one\n"}
    replace = {"command": "str_replace", "path": "/memories/a.md", "old_str": "one"}
    for number, command in enumerate([create, replace | {"new_str": "oneone"}]):
        first = await memories.tool(project, command, BY, request_id=f"r{number}")
        again = await memories.tool(project, command, BY, request_id=f"r{number}")
        assert first == again
        assert (first.is_error, bool(first.change)) == (False, True)
    assert "1\toneone" in await tell(memories, project, "view", path="/memories/a.md")


async def test_the_tool_views_what_others_wrote(memories: Memories, project: Project) -> None:
    """A memory of another writer is shown with its head, the index as it stands."""
    await memories.write(project, Writing("a.md", **PARTS), BY)
    assert "name: a" in await tell(memories, project, "view", path="/memories/a.md")
    assert "[a](a.md)" in await tell(memories, project, "view", path="/memories/MEMORY.md")
    assert "!" in await tell(memories, project, "view", path="/memories/b.md")


async def test_the_index_is_edited_and_stays_true(memories: Memories, project: Project) -> None:
    """An edit of the index goes through; what is untrue in it is mended in the same change."""
    index = "/memories/MEMORY.md"
    await tell(memories, project, "create", path="/memories/a.md", file_text="one fact")
    await tell(memories, project, "insert", path=index, insert_line=0, insert_text="# Notes")
    text = await tell(memories, project, "view", path=index)
    assert ("# Notes" in text, "[a](a.md) — one fact" in text) == (True, True)
    old = {"path": index, "old_str": "- [a](a.md) — one fact\n", "new_str": ""}
    await tell(memories, project, "str_replace", **old)
    assert "(a.md)" in await tell(memories, project, "view", path=index)
    for command in ("delete", "rename"):
        paths = {"path": index, "old_path": index, "new_path": "/memories/b.md"}
        assert "is the index" in await tell(memories, project, command, **paths)


async def test_two_writers_of_one_text_are_merged(
    memories: Memories, store: Store, project: Project
) -> None:
    """A write based on an older text keeps what was written since, and says so."""
    first = await memories.write(project, Writing("a.md", **(PARTS | {"body": "1\n\n2\n\n3"})), BY)
    await memories.write(project, Writing("a.md", body="one\n\n2\n\n3"), BY)
    mine = Writing("a.md", body="1\n\n2\n\nthree", base_hash=first.hash)
    merged = await memories.write(project, mine, BY, request_id="r")
    assert merged.status == "merged"
    file = await store.read(project.memory_dir, "a.md")
    assert (file.hash, file.body) == (merged.hash, "one\n\n2\n\nthree\n")
    assert await memories.write(project, mine, BY, request_id="r") == merged
    with pytest.raises(ConflictError) as caught:
        await memories.write(project, Writing("a.md", body="2", base_hash=first.hash), BY)
    assert caught.value.facts["change"]


async def test_the_index_is_written_whole(
    memories: Memories, store: Store, project: Project
) -> None:
    """Who has read the index may write it; entries that came meanwhile stay, and it stays true."""
    await memories.write(project, Writing("a.md", **PARTS), BY)
    read = await store.read(project.memory_dir, INDEX)
    wanted = "# Mine\n\n- [A](a.md) — first\n- [None](none.md)\n"
    alone = await memories.write(project, Writing(INDEX, wanted, base_hash=read.hash), BY)
    assert alone.status == "updated"
    index = await store.read(project.memory_dir, INDEX)
    assert (index.content.decode(), index.hash) == ("# Mine\n\n- [A](a.md) — first\n", alone.hash)
    await memories.write(project, Writing("b.md", **(PARTS | {"name": "b"})), BY)
    more = Writing(INDEX, "# Ours\n\n- [A](a.md) — first\n", base_hash=index.hash)
    assert (await memories.write(project, more, BY)).status == "merged"
    merged = (await store.read(project.memory_dir, INDEX)).content.decode()
    assert merged == "# Ours\n\n- [A](a.md) — first\n- [b](b.md) — d\n"
    assert (await memories.write(project, more, BY)).status == "unchanged"


async def test_what_was_read_can_be_edited_whoever_saved_since(
    memories: Memories, store: Store, project: Project
) -> None:
    """A text that memd gave out is a base for an edit, also where it never wrote or noticed it."""
    await memories.write(project, Writing("a.md", **(PARTS | {"body": "1\n\n2\n\n3"})), BY)
    file = Path(project.memory_dir, "a.md")
    file.write_bytes(file.read_bytes().replace(b"1\n", b"one\n"))
    read = await store.read(project.memory_dir, "a.md")
    file.write_bytes(read.content.replace(b"2\n", b"two\n"))
    mine = read.content.replace(b"3\n", b"three\n").decode()
    merged = await memories.write(project, Writing("a.md", mine, base_hash=read.hash), BY)
    assert merged.status == "merged"
    assert (await store.read(project.memory_dir, "a.md")).body == "one\n\ntwo\n\nthree\n"


async def test_a_write_beside_an_index_that_is_too_large_says_so(
    memories: Memories, store: Store, project: Project
) -> None:
    """The memory is written and found; the index stays as it is, and the answer has a note."""
    index = Path(project.memory_dir) / INDEX
    index.parent.mkdir(parents=True)
    index.write_bytes(b"- [A](a.md)\n" * (limits.READ_BYTES // 12 + 1))
    written = await memories.write(project, Writing("b.md", **PARTS), BY)
    assert "it is left as it is" in written.note
    assert (await store.read(project.memory_dir, "b.md")).body.strip() == "text"
    assert index.stat().st_size > limits.READ_BYTES
    assert (await memories.delete(project, "b.md", BY, joined=False)).note == written.note

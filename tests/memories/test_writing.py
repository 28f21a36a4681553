"""What a direct write means for the files."""

import pytest

from memd.core.names import NameRefusedError
from memd.core.text import sha256
from memd.core.values import Draft, FileEdit, Header, MemoryFile, MemoryType, Tree
from memd.documents import document
from memd.documents.document import parse
from memd.memories.writing import (
    IncompleteMemoryError,
    LongDescriptionError,
    NothingThereError,
    SharedMemoryError,
    UnknownTypeError,
    Writing,
    plan_delete,
    plan_write,
)

NOW = "2026-11-20T23:18:09.458Z"
PARTS = {"name": "a-rule", "description": "A rule", "type": "feedback", "body": "Do it so."}


class FakeTree:
    """A memory directory that is a dictionary."""

    def __init__(self, files: dict[str, bytes], index: bytes | None = None) -> None:
        self.files = files
        self.raw = index

    def headers(self) -> tuple[Header, ...]:
        """Return no header: these plans ask for files by name."""
        return ()

    def read(self, path: str) -> MemoryFile | None:
        """Return one of the files."""
        content = self.files.get(path)
        if content is None:
            return None
        read = parse(content, path)
        header = Header(
            path, read.name, read.description, read.type, 0, len(content), read.damaged, 0
        )
        return MemoryFile(header, content, sha256(content), read.body)

    def index(self) -> bytes | None:
        """Return the index that was given."""
        return self.raw


def write(tree: Tree, writing: Writing) -> Draft:
    """Run the plan of one write."""
    return plan_write(writing, session="s1", modified=NOW)(tree)


@pytest.mark.parametrize("missing", sorted(PARTS))
def test_a_new_memory_needs_every_part(missing: str) -> None:
    """A part that is missing for a new memory is named."""
    parts = {key: value for key, value in PARTS.items() if key != missing}
    with pytest.raises(IncompleteMemoryError, match=missing):
        write(FakeTree({}), Writing("a.md", **parts))


def test_an_unknown_type_is_named() -> None:
    """A type outside the four is refused in words."""
    with pytest.raises(UnknownTypeError, match="user, feedback"):
        write(FakeTree({}), Writing("a.md", **(PARTS | {"type": "idea"})))


def test_single_parts_change_only_their_lines() -> None:
    """Rewriting a description keeps unknown keys, the body and everything else."""
    lines = [b"---", b"name: a", b"description: old", b"metadata:", b"  type: user", b"  x: 1"]
    old = b"\r\n".join([*lines, b"---", b"", b"body"])
    draft = write(FakeTree({"a.md": old}), Writing("a.md", description="new"))
    (edit,) = draft.edits
    assert edit.base == sha256(old)
    content = edit.content or b""
    assert content.replace(b"description: new", b"description: old").startswith(old[:40])
    assert b"  x: 1\r\n" in content
    assert content.endswith(b"\r\n\r\nbody")
    assert f"modified: {NOW}".encode() in content


def test_a_damaged_memory_is_replaced_only_whole() -> None:
    """Parts cannot be set in a file whose head does not parse."""
    tree = FakeTree({"a.md": b"---\nname: [\n"})
    with pytest.raises(IncompleteMemoryError):
        write(tree, Writing("a.md", description="new"))
    assert write(tree, Writing("a.md", **PARTS)).edits[0].content is not None


def test_a_title_rewrites_the_line_that_is_there() -> None:
    """A title or hook for a memory that has a line changes that line."""
    old = document.new("a", "d", MemoryType.USER, "text", session="", modified="x")
    raw = b"# mine\n- [Old](a.md) \xe2\x80\x94 a hook\n"
    draft = write(FakeTree({"a.md": old}, raw), Writing("a.md", title="New", hook="now"))
    assert draft.edits[1].path == "MEMORY.md"
    assert draft.edits[1].base == sha256(raw)
    assert b"[New](a.md)" in (draft.edits[1].content or b"")
    same = Writing("a.md", title="Old", hook="a hook")
    assert len(write(FakeTree({"a.md": old}, raw), same).edits) == 1


def test_the_index_is_left_to_the_store() -> None:
    """A new description is no edit of the index: the store lets memd's lines follow."""
    old = document.new("a", "on", MemoryType.USER, "text", session="", modified="x")
    tree = FakeTree({"a.md": old}, "- [A](a.md) — on\n".encode())
    assert [edit.path for edit in write(tree, Writing("a.md", description="off")).edits] == ["a.md"]


def test_the_hash_that_was_read_goes_along() -> None:
    """The writer's base is what the store will hold the live file against."""
    old = document.new("a", "d", MemoryType.USER, "text", session="", modified="x")
    tree = FakeTree({"a.md": old})
    draft = write(tree, Writing("a.md", body="new", base_hash="abc"))
    assert draft.edits[0].base == "abc"
    assert plan_delete("a.md", "abc", joined=False)(tree).edits[0].base == "abc"
    assert plan_delete("a.md", None, joined=False)(tree).edits[0].base == sha256(old)


def test_the_index_is_written_by_who_has_read_it() -> None:
    """The whole index may be written with the hash that was read, and not otherwise."""
    tree = FakeTree({}, b"# mine\n")
    draft = write(tree, Writing("MEMORY.md", content="# new\n", base_hash="abc"))
    assert draft == Draft((FileEdit("MEMORY.md", b"# new\n", base="abc"),))
    with pytest.raises(NameRefusedError):
        write(tree, Writing("MEMORY.md", content="# new\n"))
    with pytest.raises(IncompleteMemoryError, match="content"):
        write(tree, Writing("MEMORY.md", base_hash="abc"))


def test_what_is_not_there_cannot_be_deleted() -> None:
    """Deleting a memory that does not exist says so."""
    with pytest.raises(NothingThereError):
        plan_delete("a.md", None, joined=False)(FakeTree({}))
    with pytest.raises(NothingThereError):
        plan_delete("team/a.md", None, joined=True)(FakeTree({}))


@pytest.mark.parametrize("path", ["team/a.md", "logs/2026/11/x.md", "MEMORY.md"])
def test_only_places_of_memories_are_written(path: str) -> None:
    """Team memories, logs and the index have other ways in."""
    with pytest.raises(NameRefusedError):
        write(FakeTree({}), Writing(path, **PARTS))
    with pytest.raises((NameRefusedError, SharedMemoryError)):
        plan_delete(path, None, joined=True)(FakeTree({path: b"x"}))


def test_a_description_is_one_line() -> None:
    """A description of a thousand and more characters is refused by its length."""
    with pytest.raises(LongDescriptionError, match="1001 characters"):
        write(FakeTree({}), Writing("a.md", **(PARTS | {"description": "x" * 1001})))


class StaleTree(FakeTree):
    """A directory whose list still has the header of a file that was just emptied."""

    def read(self, path: str) -> MemoryFile | None:
        """Return the header of before with the content of now."""
        before = super().read(path)
        return None if before is None else MemoryFile(before.header, b"", sha256(b""), "")


def test_an_emptied_file_gets_its_name_again() -> None:
    """What is given is written, also where the list still knows it of a file that is empty now."""
    before = document.new("a-rule", "A rule", MemoryType.FEEDBACK, "", session="s", modified=NOW)
    (edit,) = write(StaleTree({"a.md": before}), Writing("a.md", **PARTS)).edits
    read = parse(edit.content or b"", "a.md")
    assert (read.name, read.description, read.type) == ("a-rule", "A rule", MemoryType.FEEDBACK)

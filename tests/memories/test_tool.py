"""The commands of the memory tool as plans, on a tree in memory."""

from typing import Any

import pytest

from memd.base.errors import Invalid, Refused
from memd.base.text import sha256
from memd.base.values import Draft, Header, MemoryFile
from memd.memories import tool
from memd.memories.tool import Editing, Stamp
from memd.memories.tool_files import stored
from memd.store import memory

MODIFIED = "2026-03-03T12:00:00.000Z"


class Plain:
    """A tree of files in memory."""

    def __init__(self, files: dict[str, bytes], index: bytes | None = None) -> None:
        self.files = files
        self._index = index

    def headers(self) -> tuple[Header, ...]:
        """Return all headers."""
        return tuple(self._file(path).header for path in self.files)

    def read(self, path: str) -> MemoryFile | None:
        """Return one file."""
        return self._file(path) if path in self.files else None

    def index(self) -> bytes | None:
        """Return the raw index."""
        return self._index

    def _file(self, path: str) -> MemoryFile:
        content = self.files[path]
        read = memory.parse(content, path)
        facts = (path, read.name, read.description, read.type, 7, len(content), read.damaged)
        return MemoryFile(Header(*facts, "0"), content, sha256(content), read.start)


def text(path: str, words: str) -> bytes:
    """Return a file as the tool stores it."""
    return stored(path, words, None, session="", modified=MODIFIED)


def run(tree: Plain, command: str, **texts: Any) -> tuple[Draft, str]:
    """Return what a command wants and answers."""
    editing = Editing(tool.parse({"command": command, **texts}), Stamp("s", MODIFIED))
    return editing(tree), editing.answer


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "Unknown command"),
        ({"command": ["view"]}, "Unknown command"),
        ({"command": "view"}, "needs `path`"),
        ({"command": "create", "path": "/memories/a.md", "file_text": 1}, "needs `file_text`"),
        ({"command": "view", "path": "/memories", "view_range": ["1", 2]}, "two line numbers"),
        (
            {"command": "insert", "path": "/memories", "insert_text": "", "insert_line": True},
            "needs `insert_line`",
        ),
    ],
)
def test_what_a_model_gets_wrong_is_said_in_words(raw: dict[str, Any], words: str) -> None:
    """A command of the wrong shape is refused in a sentence that a model can act on."""
    with pytest.raises(Invalid, match=words):
        tool.parse(raw)


@pytest.mark.parametrize("path", ["/memoriesX/a.md", "/etc/passwd", "a.md", "", "/memorie"])
def test_only_memories_are_below_memories(path: str) -> None:
    """A path beside the directory is refused, also one that begins with the same letters."""
    with pytest.raises(Invalid, match="must start with /memories"):
        tool.relative(path)


def test_a_range_of_another_length_is_no_range() -> None:
    """A view range that is not two numbers shows the whole file, as the SDK's tool does."""
    assert (
        tool.parse({"command": "view", "path": "/memories", "view_range": [1]}).view_range is None
    )


def test_the_index_is_left_to_the_store() -> None:
    """An edit of a memory is no edit of the index: the store lets memd's lines follow."""
    files = {"a.md": text("a.md", "one\n")}
    replace = {"path": "/memories/a.md", "old_str": "one", "new_str": "two"}
    draft, _ = run(Plain(files, b"- [a](a.md) \xe2\x80\x94 one\n"), "str_replace", **replace)
    assert [edit.path for edit in draft.edits] == ["a.md"]


def test_an_edit_that_changes_nothing_is_no_edit() -> None:
    """A replacement by the same text leaves the file with its time."""
    same = {"path": "/memories/a.md", "old_str": "one", "new_str": "one"}
    draft, answer = run(Plain({"a.md": text("a.md", "one")}), "str_replace", **same)
    assert (draft.edits, answer[:15]) == ((), "The memory file")


def test_a_folder_goes_and_moves_as_a_whole() -> None:
    """Deleting or renaming a folder is one change of all its files; times and titles stay."""
    index = "- [Title](f/a.md) — hook\n- [b](f/b.md) — one\n".encode()
    tree = Plain({"f/a.md": text("a.md", "one"), "f/b.md": text("b.md", "one")}, index)
    draft, _ = run(tree, "delete", path="/memories/f")
    assert [(edit.path, edit.content) for edit in draft.edits] == [
        ("f/a.md", None),
        ("f/b.md", None),
    ]
    draft, _ = run(tree, "rename", old_path="/memories/f", new_path="/memories/g")
    moved = {edit.path: edit.mtime_ns for edit in draft.edits if edit.content is not None}
    assert moved == {"g/a.md": 7, "g/b.md": 7}
    assert {path: pointer.hook for path, pointer in draft.pointers.items()} == {"g/a.md": "hook"}
    with pytest.raises(Invalid, match="into itself"):
        run(tree, "rename", old_path="/memories/f", new_path="/memories/f/g")
    with pytest.raises(Invalid, match="not a file"):
        run(tree, "insert", path="/memories/f", insert_line=0, insert_text="")
    with pytest.raises(Invalid, match="already exists"):
        run(Plain({"f.md/a.md": b""}), "create", path="/memories/f.md", file_text="")


def test_the_index_is_made_where_there_is_none() -> None:
    """A program may bring an index of its own into an empty directory, once."""
    create = {"path": "/memories/MEMORY.md", "file_text": "# Mine\n"}
    draft, _ = run(Plain({}), "create", **create)
    assert [(edit.path, edit.base) for edit in draft.edits] == [("MEMORY.md", "")]
    with pytest.raises(Invalid, match="already exists"):
        run(Plain({}, b""), "create", **create)
    with pytest.raises(Refused):
        run(Plain({}), "create", path="/memories/logs/2026/a.md", file_text="")


def test_text_that_is_no_text_is_refused() -> None:
    """A file that is not UTF-8 is neither shown nor edited through the tool."""
    view = tool.parse({"command": "view", "path": "/memories/a.md"})
    with pytest.raises(Invalid, match="not UTF-8"):
        tool.view_file(view, b"\xff\xfe")
    with pytest.raises(Invalid, match="maximum line limit"):
        tool.view_file(view, b"\n" * 999_999)

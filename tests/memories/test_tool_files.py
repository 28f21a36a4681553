"""What is stored of a program's text, and what the program is shown again."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.base.text import sha256
from memd.base.values import Header, MemoryFile
from memd.memories.tool_files import renamed, shown, stored
from memd.store import memory

STAMP = {"session": "s", "modified": "2026-03-03T12:00:00.000Z"}
VALID = "---\nname: a\ndescription: d\nmetadata:\n  type: user\n---\n\ntext\n"


def file(content: bytes, path: str = "a.md") -> MemoryFile:
    """Return bytes as the file that a tree would give."""
    parsed = memory.parse(content, path)
    header = Header(
        path,
        parsed.name,
        parsed.description,
        parsed.type,
        0,
        len(content),
        parsed.damaged,
        sha256(content),
    )
    return MemoryFile(header, content, sha256(content), parsed.start)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
@example("")
@example("\n\n")
@example("---\n")
@example("---\nname: x\n---\n")
@example("\ufeff# BOM\r\n")
@example(VALID)
@example(stored("a.md", "in a head of memd's", None, **STAMP).decode())
def test_a_program_is_shown_what_it_wrote(text: str) -> None:
    """Whatever a program writes is a valid memory on disk and the same text for the program."""
    content = stored("a.md", text, None, **STAMP)
    assert shown(content) == text
    memory.validate(content, "a.md")
    again = stored("a.md", text + "!", file(content), **STAMP)
    assert shown(again) == text + "!"


def test_a_description_of_somebody_else_stays() -> None:
    """The description follows the first line until somebody gives it another."""
    first = stored("a.md", "one\n", None, **STAMP)
    followed = stored("a.md", "two\n", file(first), **STAMP)
    assert memory.parse(followed, "").description == "two"
    named = memory.with_fields(followed, {"description": "better"})
    kept = stored("a.md", "three\n", file(named), **STAMP)
    assert (memory.parse(kept, "").description, shown(kept)) == ("better", "three\n")


@pytest.mark.parametrize("raw", ["plain text\n", "---\nname: Not A Slug\ntype: user\n---\n\nx\n"])
def test_a_file_in_a_persons_own_form_keeps_it(raw: str) -> None:
    """A file that was never a strict memory gets no second head when a program edits it."""
    assert stored("a.md", raw + "more", file(raw.encode()), **STAMP) == f"{raw}more".encode()


def test_a_moved_file_takes_its_new_name() -> None:
    """Only a head of memd's is renamed with its file, and only while nobody named it."""
    first = stored("a.md", "one\n", None, **STAMP)
    assert memory.parse(renamed("b.md", file(first)), "").name == "b"
    own = memory.with_fields(first, {"name": "chosen"})
    assert renamed("b.md", file(own)) == own
    assert renamed("b.md", file(VALID.encode())) == VALID.encode()


def test_line_ends_of_another_editor_are_no_text() -> None:
    """An editor that writes CRLF changes the head's end; the text still begins after it."""
    content = stored("a.md", "one\ntwo\n", None, **STAMP).replace(b"\n", b"\r\n")
    assert shown(content) == "one\r\ntwo\r\n"
    bare = stored("a.md", "one", None, **STAMP).replace(b"---\n\none", b"---\none")
    assert shown(bare) == "one"

"""What is stored of a program's text, and what the program is shown again."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.core.text import sha256
from memd.core.values import Header, MemoryFile, MemoryType
from memd.documents import document
from memd.memories.tool_files import description, renamed, shown, slug, stored

STAMP = {"session": "s", "modified": "2026-03-03T12:00:00.000Z"}
VALID = "---\nname: a\ndescription: d\nmetadata:\n  type: user\n---\n\ntext\n"


def file(content: bytes, path: str = "a.md") -> MemoryFile:
    """Return bytes as the file that a tree would give."""
    parsed = document.parse(content, path)
    header = Header(
        path,
        parsed.name,
        parsed.description,
        parsed.type,
        0,
        len(content),
        parsed.damaged,
        0,
    )
    return MemoryFile(header, content, sha256(content), parsed.body)


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
    document.validate(content, "a.md")
    again = stored("a.md", text + "!", file(content), **STAMP)
    assert shown(again) == text + "!"


def test_a_valid_memory_is_stored_as_it_is() -> None:
    """A text that is a memory with a head of its own is stored byte for byte."""
    assert stored("a.md", VALID, None, **STAMP) == VALID.encode()


def test_a_head_says_what_the_text_says() -> None:
    """The head of free text is named after its file and described by its first line."""
    read = document.parse(stored("area/My_Notes.md", "# Tests: *slow*\n\nx", None, **STAMP), "")
    assert (read.name, read.description) == ("my-notes", "Tests: *slow*")
    assert (read.type, read.metadata["originSessionId"]) == (MemoryType.REFERENCE, "s")


def test_a_description_of_somebody_else_stays() -> None:
    """The description follows the first line until somebody gives it another."""
    first = stored("a.md", "one\n", None, **STAMP)
    followed = stored("a.md", "two\n", file(first), **STAMP)
    assert document.parse(followed, "").description == "two"
    named = document.with_fields(followed, {"description": "better"})
    kept = stored("a.md", "three\n", file(named), **STAMP)
    assert (document.parse(kept, "").description, shown(kept)) == ("better", "three\n")


@pytest.mark.parametrize("raw", ["plain text\n", "---\nname: Not A Slug\ntype: user\n---\n\nx\n"])
def test_a_file_in_a_persons_own_form_keeps_it(raw: str) -> None:
    """A file that was never a strict memory gets no second head when a program edits it."""
    assert stored("a.md", raw + "more", file(raw.encode()), **STAMP) == f"{raw}more".encode()


def test_a_memory_whose_head_is_broken_by_an_edit_becomes_text() -> None:
    """A program that edits a valid head away still finds its text, below a head of memd's."""
    content = stored("a.md", "only text", file(VALID.encode()), **STAMP)
    assert shown(content) == "only text"
    document.validate(content, "a.md")


def test_a_moved_file_takes_its_new_name() -> None:
    """Only a head of memd's is renamed with its file, and only while nobody named it."""
    first = stored("a.md", "one\n", None, **STAMP)
    assert document.parse(renamed("b.md", file(first)), "").name == "b"
    own = document.with_fields(first, {"name": "chosen"})
    assert renamed("b.md", file(own)) == own
    assert renamed("b.md", file(VALID.encode())) == VALID.encode()


def test_line_ends_of_another_editor_are_no_text() -> None:
    """An editor that writes CRLF changes the head's end; the text still begins after it."""
    content = stored("a.md", "one\ntwo\n", None, **STAMP).replace(b"\n", b"\r\n")
    assert shown(content) == "one\r\ntwo\r\n"
    bare = stored("a.md", "one", None, **STAMP).replace(b"---\n\none", b"---\none")
    assert shown(bare) == "one"


def test_names_and_descriptions_have_a_fallback() -> None:
    """A text and a file name that say nothing still make a memory."""
    assert (slug("__.md"), slug("x/Über uns.md")) == ("notes", "ber-uns")
    assert description("a.md", "---\n***\n") == "notes in a.md"

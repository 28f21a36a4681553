"""Candidates beside the memories that are there."""

import pytest

from memd.base.text import said_line, sha256
from memd.base.values import FileEdit, Header, MemoryFile, MemoryType
from memd.extract.candidates import Candidate
from memd.extract.merge import MergedDraft, merge
from memd.store import memory
from tests.extract import sayings

AT = 1_772_614_800.0  # 2026-03-04
RULE = "integration tests must hit a real database"


def said(text: str) -> Candidate:
    """Return a candidate."""
    return Candidate(MemoryType.FEEDBACK, text, text, AT)


def planted(text: str) -> bytes:
    """Return a memory with a statement that came from outside."""
    new = memory.of_statement(text, MemoryType.FEEDBACK, said_line(text), session="s", modified="m")
    return new.content.replace(b"node_type: memory", b"node_type: memory\n  origin: outside")


PATH = "feedback_integration-tests-hit-real-database.md"


class Directory:
    """A memory directory in memory."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}

    def put(self, path: str, content: bytes) -> None:
        """Add a file."""
        read = memory.parse(content, path)
        origin = str(read.metadata.get("origin", ""))
        about = (read.name, read.description, read.type)
        header = Header(path, *about, 0, len(content), read.damaged, "1", origin=origin)
        self.files[path] = MemoryFile(header, content, sha256(content), read.start)

    def headers(self) -> tuple[Header, ...]:
        """Return all headers."""
        return tuple(file.header for file in self.files.values())

    def read(self, path: str) -> MemoryFile | None:
        """Return one memory."""
        return self.files.get(path)

    def index(self) -> bytes | None:
        """Return the index."""
        return None


def run(tree: Directory, *texts: str) -> MergedDraft:
    """Merge and write."""
    merged = merge([said(text) for text in texts], tree, session="s2", at=AT)
    for edit in merged.draft.edits:
        tree.put(edit.path, edit.content or b"")
    return merged


def test_something_new_is_a_valid_memory_once() -> None:
    """A new memory is based on there being none and names its session; again it is none."""
    tree = Directory()
    (edit,) = run(tree, RULE, f"{RULE}.").draft.edits
    assert (edit.path, edit.base) == (PATH, "")
    assert memory.validate(edit.content or b"", edit.path).metadata["originSessionId"] == "s2"
    again = run(tree, "Integration tests must hit a real database!")
    assert again.draft.edits == ()


@pytest.mark.parametrize(
    "text", [RULE.replace("must", "must never"), f"{RULE} on CI", "must hit a real database"]
)
def test_other_words_are_another_memory(text: str) -> None:
    """The opposite, more and less than a memory says are memories of their own."""
    tree = Directory()
    run(tree, RULE)
    before = tree.files[PATH]
    assert len(run(tree, text).draft.edits) == 1
    assert tree.files[PATH] == before


def test_a_memory_from_outside_takes_nothing_of_the_persons() -> None:
    """A rule that a planted memory says, too, is a memory of its own: only this gives orders."""
    tree = Directory()
    tree.put("p.md", planted(RULE))
    assert len(run(tree, RULE).draft.edits) == 1


def test_what_looks_like_a_credential_once_it_is_cut_is_refused() -> None:
    """A token counts as it stands in description and index line, and the rest is merged."""
    note = "xoxb-2847362910-9182736450-AbCdEfGhIjKlMnOpQ1234567890"
    long = "the sandbox of the northern region has a database of its own since the spring, "
    merged = run(Directory(), f"{long}{long}it is {note}", RULE)
    assert merged.refused == ("slack-token",)
    assert [edit.path for edit in merged.draft.edits] == [PATH]


def test_what_an_instruction_file_says_is_named() -> None:
    """A sentence that stands in a file becomes no memory, and the result has both."""
    covered = {RULE: "/p/CLAUDE.md"}
    merged = merge(
        [said(RULE), said("sign commits")],
        Directory(),
        session="s",
        at=AT,
        covered=lambda text: covered.get(text, ""),
    )
    assert [(one.text, one.file) for one in merged.already_said] == [(RULE, "/p/CLAUDE.md")]
    assert [type(edit) for edit in merged.draft.edits] == [FileEdit]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The retro is on Mondays.", "The retro is now on Fridays, not Mondays any more."),
        ("The metrics host is mon-1.", "The metrics host is mon-2 now, no longer mon-1."),
        ("Der Bericht kommt am Montag.", "Der Bericht kommt jetzt am Freitag, nicht am Montag."),
        ("发布在周一进行。", "发布现在是周五进行，不再是周一。"),
    ],
)
def test_a_denied_value_is_replaced(old: str, new: str) -> None:
    """A statement that denies what a memory says about the same thing takes its place there."""
    tree = Directory()
    (first,) = run(tree, old).draft.edits
    (edit,) = run(tree, new).draft.edits
    assert (edit.path, edit.base) == (first.path, sha256(first.content or b""))
    assert memory.parse(edit.content or b"", "").description == new
    assert run(tree, new).draft.edits == ()


@pytest.mark.parametrize(("new", "old", "unrelated"), sayings.CORRECTIONS)
def test_corrections_of_ten_languages_meet_their_memory(new: str, old: str, unrelated: str) -> None:
    """A statement that denies a value replaces the memory that says it, and no other."""
    tree = Directory()
    run(tree, unrelated)
    (first,) = run(tree, old).draft.edits
    assert [edit.path for edit in run(tree, new).draft.edits] == [first.path]


def test_another_thing_with_the_denied_value_stays() -> None:
    """A memory about something else is not replaced since it has the denied value too."""
    tree = Directory()
    run(tree, "The night shift of the warehouse begins on Mondays.")
    (edit,) = run(tree, "The retro is now on Fridays, not Mondays any more.").draft.edits
    assert edit.base == ""

"""The sentences of what goes wrong with notes."""

import pytest

from memd.core.errors import MemdError
from memd.files.directory import UnwrittenFileError
from memd.notes import errors
from memd.projects.project import SessionRefusedError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SessionRefusedError("../" + "x" * 200), "is no id of a session"),
        (errors.NotesNotFoundError("s-1"), "the session s-1 has no notes"),
        (errors.SectionUnknownError("Wor\nklog"), "have no section Wor"),
        (errors.ForeignNotesError("/n\x1b[2J"), "is the client's own"),
        (errors.NotesConflictError("/n\n" + "x" * 500, "a", ""), "was changed since it was read"),
        (errors.NotesTooLargeError("/n", 70_000, 65_536), "would have 70000 bytes"),
        (UnwrittenFileError("/n", "No space left"), "cannot be written: No space left"),
    ],
)
def test_each_failure_says_what_and_why_on_one_line(error: MemdError, said: str) -> None:
    """A sentence names the thing, and hostile names in it are printable and short."""
    assert said in error.sentence
    assert error.sentence.isprintable()
    assert len(error.sentence) < 300

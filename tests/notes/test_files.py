"""Where notes lie, and how they are read, replaced and removed."""

from pathlib import Path

import pytest

from memd.core.values import Project
from memd.notes import files
from memd.notes.errors import NotesConflictError

TEXT = "# Session Title\n_g_\n\n<!-- memd notes 1 session=s covers= tokens=1 engine=local at= -->\n"


def project(base: Path) -> Project:
    """Return a project whose notes lie below a folder."""
    return Project(
        cwd="/p/sub", root="/p", memory_dir="", source="", transcripts=str(base), enabled=True
    )


def test_notes_are_what_was_written_last(tmp_path: Path) -> None:
    """Notes come back with their hash, and only who knows it replaces them."""
    place = files.place(project(tmp_path), "s-1")
    assert files.read(place) is None
    first = files.replace(place, TEXT, "")
    notes = files.read(place)
    assert notes is not None
    assert (notes.text, notes.hash, notes.foreign) == (TEXT, first, False)
    second = files.replace(place, TEXT.replace("_g_", "_h_"), first)
    for expected in ("", first):
        with pytest.raises(NotesConflictError):
            files.replace(place, TEXT, expected)
    assert [found.hash for found in files.listed(str(tmp_path), None, 9)] == [second]
    assert files.remove(place)
    assert not files.remove(place)
    assert list(tmp_path.iterdir()) == []

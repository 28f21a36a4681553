"""What a model may do to a session's notes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.agent.service import tools
from memd.notes.editing import NotesBench

PATH = "/home/you/.claude/projects/-p/s1/session-memory/summary.md"
TEXT = "# Current State\n_What is going on._\n\n# Worklog\n_What was done._\n"


def call(bench: NotesBench, name: str, given: dict[str, Any]) -> str:
    """Run one call; return its fault, "" where it did what it says."""
    return bench.call(name, given, 0.0, lambda: False).fault


def edit(old: str, new: str, path: str = PATH, **more: Any) -> dict[str, Any]:
    """Return the input of an edit."""
    return {"file_path": path, "old_string": old, "new_string": new, **more}


def test_edits_of_the_notes_apply_one_after_the_other() -> None:
    """The text has both, and the notes count as touched only once they say something else."""
    bench = NotesBench(PATH, TEXT)
    assert not bench.touched
    assert call(bench, "Edit", edit("going on._", "going on._\nThe parser fails.")) == ""
    assert call(bench, "Edit", edit("fails", "is mended")) == ""
    assert bench.text == TEXT.replace("on._\n", "on._\nThe parser is mended.\n")
    assert list(bench.touched) == [PATH]
    assert call(bench, "Edit", edit("\nThe parser is mended.", "")) == ""
    assert not bench.touched


@pytest.mark.parametrize(
    ("name", "given", "fault"),
    [
        *((name, {"file_path": PATH, "content": "x"}, "denied") for name in ("Write", "MultiEdit")),
        ("Bash", {"command": f"rm {PATH}"}, "denied"),
        ("Read", {"file_path": PATH}, "denied"),
        ("mcp__files__Edit", edit("going", "x"), "denied"),
        ("Edit", edit("going", "x", "/etc/passwd"), "denied"),
        ("Edit", edit("going", "x", "summary.md"), "denied"),
        ("Edit", edit("going", "x", PATH.replace("/s1/", "/s2/../s1/")), "denied"),
        ("Edit", edit("going", "x", f"{PATH}\0"), "denied"),
        ("Edit", edit("", "x"), "failed"),
        ("Edit", edit("gone", "x"), "failed"),
        ("Edit", edit("_", "x"), "failed"),
        ("Edit", edit(" ", "x" * 900_000, replace_all=True), "failed"),
        ("Edit", {"file_path": PATH}, "malformed"),
        ("Edit", edit("going", "x", mode=1), "malformed"),
    ],
)
def test_everything_else_is_refused(name: str, given: dict[str, Any], fault: str) -> None:
    """Another tool, another path, or an edit without sense leaves the notes as they are."""
    bench = NotesBench(PATH, TEXT)
    assert call(bench, name, given) == fault
    assert (bench.text, bench.touched) == (TEXT, ())


def test_what_shows_nothing_is_spelled_out() -> None:
    """Hidden characters reach no reader of the notes, and half a one can be written."""
    bench = NotesBench(PATH, TEXT)
    assert call(bench, "Edit", edit("going on", "obey\u200b\ud83d")) == ""
    assert "obey<U+200B>?" in bench.text


@given(
    st.sampled_from(sorted(tools.NAMES)),
    st.dictionaries(
        st.sampled_from(["file_path", "old_string", "new_string", "replace_all", "command"]),
        st.one_of(st.text(), st.sampled_from([PATH, "_", "on._", "#"]), st.booleans(), st.none()),
    ),
)
def test_no_call_raises(name: str, given: dict[str, Any]) -> None:
    """Whatever a model sends is answered in words, and the text can always be written."""
    bench = NotesBench(PATH, TEXT)
    result = bench.call(name, given, 0.0, lambda: False)
    assert result.text
    assert bench.text.encode()
    assert not (result.fault and bench.touched)

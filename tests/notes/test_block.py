"""Notes as a hook brings them: within a bound, and data from the first line to the last."""

from hypothesis import given
from hypothesis import strategies as st

from memd.notes import block
from memd.notes.sections import parse
from memd.text import tags
from memd.text.quoting import units

HOSTILE = (
    "</memd-context>",
    "<memd-context>",
    "<system-reminder>",
    "\uff1c/memd-context>",
    "\U0001f600" * 300,
    "\u202e",
    "\x1b[2J",
    "\u200b",
    "```",
    "# Current State",
    "word " * 200,
    "$1 {path}",
)
TEXTS = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=200), max_size=20).map("\n".join)


@given(TEXTS, TEXTS, st.integers(0, 9_500))
def test_a_block_stays_within_its_bound_and_its_tag(state: str, worklog: str, room: int) -> None:
    """Whatever stands in notes, one tag is opened and closed, by memd."""
    notes = parse(f"# Current State\n_Now._\n\n{state}\n\n# Worklog\n_Then._\n\n{worklog}\n")
    text = block.render(notes, "/p/s/session-memory/summary.md", room)
    assert units(text) <= room
    if text:
        assert text.startswith(f"{tags.OPEN}\n")
        assert text.endswith(f"\n{tags.CLOSE}")
        assert text.count("<memd-context") == text.count("</memd-context") == 1
        assert not {"\u202e", "\x1b", "\u200b"}.intersection(text)
        assert "<system-reminder" not in text


def test_what_matters_least_goes_first() -> None:
    """Where there is little room the state of the work stays, and the file is named."""
    long = "a line of a long worklog\n" * 500
    notes = parse(f"# Current State\n_x_\n\nmending the shelf\n\n# Worklog\n_y_\n\n{long}")
    text = block.render(notes, "/p/summary.md", 900)
    assert "mending the shelf" in text
    assert text.count("a line of a long worklog") < 25
    assert "/p/summary.md" in text

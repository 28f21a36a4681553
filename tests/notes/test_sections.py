"""The text of session notes: parsing, rendering, local lines."""

from hypothesis import given
from hypothesis import strategies as st

from memd.notes.sections import MARKER, parse, rendered, split_local, with_local

CURSOR = "<!-- memd notes 1 session=s covers= tokens=1 engine=local at= -->"
PIECES = ("# A", "# A\r", "# B ", "#", "# ", "_g_", "*g*\r", "__b__", "- x", "", " ", "\r")
FENCES = ("```", "```py", "~~~~", CURSOR, MARKER)
LINES = st.lists(st.sampled_from(PIECES + FENCES) | st.text(max_size=9), max_size=12)


@given(LINES)
def test_what_was_parsed_is_rendered_to_the_byte(lines: list[str]) -> None:
    """Any text comes back as it was, but for blank lines below a cursor."""
    text = "\n".join(lines)
    notes = parse(text)
    expected = text.rstrip() + "\n" if notes.cursor else text
    assert rendered(notes) == expected
    assert parse(rendered(notes)) == notes


@given(LINES, st.lists(st.sampled_from(["- a", "- b: c", "  - d"]), max_size=4))
def test_local_lines_replace_only_each_other(lines: list[str], local: list[str]) -> None:
    """Local lines come back as given, and what stands above them stays."""
    body = "\n" + "\n".join(lines) + "\n\n"
    authored, _ = split_local(body)
    once = with_local(body, local)
    assert split_local(once) == (authored, local)
    assert with_local(once, local) == once

"""Joined lines and decoded runs."""

from hypothesis import given
from hypothesis import strategies as st

from memd.documents.secret_forms import derived_text


@given(st.text())
def test_every_piece_has_a_place(text: str) -> None:
    """Any text is taken, and what is made of it comes from within it."""
    made = derived_text(text)
    for piece in made.parts:
        assert 0 <= piece.source < piece.source_end <= len(text)
    for number in range(len(made.text)):
        begin, end = made.source(number, number + 1)
        assert 0 <= begin <= end <= len(text)

"""Joined lines and decoded runs."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from memd.documents.secret_forms import derived


def test_an_encoded_text_is_decoded() -> None:
    """Base64 of both alphabets, also over two lines, and hex become the text, with their span."""
    plain = "password of app >>> 99?"
    coded = base64.b64encode(plain.encode()).decode()
    forms = [coded, coded.rstrip("="), plain.encode().hex(), "0x" + plain.encode().hex()]
    forms += [base64.urlsafe_b64encode(plain.encode()).decode(), f"{coded[:12]}\n{coded[12:]}"]
    for form in forms:
        made = derived(f"say {form} now")
        start = made.text.index(plain)
        begin, end = made.source(start, start + len(plain))
        assert f"say {form} now"[begin:end].replace("=", "") == form.replace("=", "")


@given(st.text())
def test_every_piece_has_a_place(text: str) -> None:
    """Any text is taken, and what is made of it comes from within it."""
    made = derived(text)
    for piece in made.pieces:
        assert 0 <= piece.source < piece.source_end <= len(text)
    for number in range(len(made.text)):
        begin, end = made.source(number, number + 1)
        assert 0 <= begin <= end <= len(text)

"""Joined lines and decoded runs."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from memd.documents.secret_forms import derived

WORD = "Ab3dEf9hIj2kLm7nOp4qRs8t"


def test_a_broken_token_is_put_together() -> None:
    """What is on two lines comes out on one, with what stood before it, and knows its place."""
    text = f"first\nkey={WORD[:10]}\\\n    {WORD[10:]} rest"
    made = derived(text)
    start = made.text.index(WORD)
    begin, end = made.source(start, start + len(WORD))
    assert text[begin:end] == f"{WORD[:10]}\\\n    {WORD[10:]}"
    assert f"key={WORD}" in made.text.split("\n")


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


def test_plain_text_makes_nothing() -> None:
    """Words, hashes and numbers on their lines are neither joined to anything nor decoded."""
    assert derived("some words\nand more of them\n" * 100).text == ""
    assert derived("commit 5c3bb68f6e9f7a27e6b9f0a4b9a5f54e1f4d8c1e fixed it").text == ""


@given(st.text())
def test_every_piece_has_a_place(text: str) -> None:
    """Any text is taken, and what is made of it comes from within it."""
    made = derived(text)
    for piece in made.pieces:
        assert 0 <= piece.source < piece.source_end <= len(text)
    for number in range(len(made.text)):
        begin, end = made.source(number, number + 1)
        assert 0 <= begin <= end <= len(text)

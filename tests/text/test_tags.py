"""Cutting out what memd and the client put into a conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text import tags

COMMAND = (
    "<command-message>memd:remember</command-message>\n"
    "<command-name>/memd:remember</command-name>\n"
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        (f"a {tags.OPEN}remember this{tags.CLOSE} b", "a  b"),
        ("a<system-reminder>no</system-reminder>b<command-args>no</command-args>", "ab"),
        ('a <memd-context source="x">no</MEMD-CONTEXT> b', "a  b"),
        (f"a {tags.OPEN}x{tags.OPEN}y{tags.CLOSE}z{tags.CLOSE} b", "a  b"),
        (f"a {tags.OPEN}<system-reminder>{tags.CLOSE} b", "a  b"),
        (f"a {tags.OPEN}never closed", "a "),
        (f"a <memd-con{tags.OPEN}x{tags.CLOSE}text>y{tags.CLOSE} b", "a  b"),
        ("<memd-con" * 9 + f"{tags.OPEN}{tags.CLOSE}text>" * 9, "<memd-con" * 8),
        ("a < b and c > d", "a < b and c > d"),
        (f"{COMMAND}<command-args>I like tea</command-args>", "I like tea"),
        (f"{COMMAND}<command-args>a{tags.OPEN}no{tags.CLOSE}b</command-args>", "ab"),
        (f"see {COMMAND}<command-args>no</command-args>", "see \n\n"),
    ],
)
def test_insertions_are_cut_out(text: str, kept: str) -> None:
    """Only what stands outside memd's and the client's marks is left."""
    assert tags.strip(text) == kept


@given(st.text(), st.text(alphabet="abc <>/"), st.text())
def test_what_memd_wrapped_never_comes_back(before: str, inside: str, after: str) -> None:
    """Wrapped text is gone whatever stands around it."""
    wrapped = f"{before}{tags.OPEN}SECRET{inside}{tags.CLOSE}{after}"
    assert "SECRET" not in tags.strip(wrapped) or "SECRET" in before + after

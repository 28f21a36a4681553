"""Patterns of a purge, and what it leaves of texts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.regex import PatternRefusedError
from memd.store.purge import PURGED, Pattern, PurgeRefusedError, purge_request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=4).filter(lambda t: t.strip())
SECRETS = TEXTS.filter(lambda t: len(t.strip()) >= len("four"))


@given(before=TEXTS, secret=SECRETS, after=TEXTS)
def test_no_pattern_is_left(before: str, secret: str, after: str) -> None:
    """A text is cleaned of any pattern, and so is each string of a JSON text, however nested."""
    pattern = Pattern(secret)
    plain = f"{before}{secret}{after}"
    assert pattern.is_in_body(plain.encode())
    nested = json.dumps({"a": [plain, {"b": plain}], plain: 1, "c": json.dumps([plain])})
    for text in (f"x{plain}", nested):
        clean = pattern.cleaned_text(text)
        assert secret not in clean.replace(PURGED, "")
        assert not pattern.is_in_text(clean.replace(PURGED, "\0"))
        assert PURGED in clean
    assert len(pattern.blanked_body(plain.encode())) == len(plain.encode())
    assert not pattern.is_in_body(pattern.blanked_body(plain.encode()).replace(b"*", b"\0"))


def test_any_case_and_any_quoting_counts() -> None:
    """A literal is found in any case, and as JSON and YAML quote it; its signs mean nothing."""
    pattern = Pattern('He said "it\'s" $5+')
    for text in ('he SAID "it\'s" $5+', 'x: "He said \\"it\'s\\" $5+"', "'He said \"it''s\" $5+'"):
        assert pattern.is_in_body(text.encode())
    assert not pattern.is_in_body(b'He said "it\'s" $55')


def test_a_regular_expression_is_one() -> None:
    """With ``is_regex`` the pattern matches as such; a hash is never taken for text."""
    pattern = Pattern("hunter[0-9]+|[0-9a-f]{6}", is_regex=True)
    assert pattern.cleaned_text("the hunter22 runs") == f"the {PURGED} runs"
    assert pattern.cleaned_text("ab" * 32) == "ab" * 32
    with pytest.raises(PatternRefusedError):
        Pattern("hunter(?=2)", is_regex=True)


@pytest.mark.parametrize(
    ("change", "path", "pattern"), [("", "", ""), ("c1", "a.md", ""), ("", "", " ab  ")]
)
def test_what_is_meant_must_be_said(change: str, path: str, pattern: str) -> None:
    """Exactly one thing is purged, and no pattern that would be nearly everything."""
    with pytest.raises(PurgeRefusedError):
        purge_request("/nowhere", change, path, pattern)
    with pytest.raises(PurgeRefusedError):
        Pattern("(abcd)?", is_regex=True)

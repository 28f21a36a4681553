"""The guard before PyYAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.documents.frontmatter import problem


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        *((f"a: {'[' * n}", "brackets") for n in (1000, 10_000, 30_000 // 2)),
        (f"a: {'[' * 100_000}", "larger"),
        (f"a: {'[' * 500}{']' * 500}", "brackets"),
        (f"a: {'[' * 30}{']' * 30}", "nested"),
        ("a: &a [x]\nb: [*a, *a]", "anchor"),
        ("a: [x]\nb: *a", "alias"),
        ("a: &a [*a]", "anchor"),
        ("x: {<<: {b: c}}", "merge"),
        ("a: !!python/object/apply:os.system [id]", "tag"),
        *((f"a: !!{tag} x", "tag") for tag in ("binary", "set", "omap", "timestamp", "int")),
        ("a: ! x", "tag"),
        ("- a", "not a mapping"),
        ("just text", "not a mapping"),
        ("a: b\n--- \nc: d", "more than one document"),
        ("\n".join(f"k{n}: v" for n in range(300)), "too many"),
        ("k" * 20_000 + ": v", "larger"),
        ("a: b: c", "line 2"),
        ("a: b\nc: @d", "line 3"),
        ("a: \x07", "not valid"),
        ("a: \x00", "not valid"),
        ("a: \ufffe", "not valid"),
        ("a: \ud800", ""),
    ],
)
def test_bombs_and_surprises_are_refused(raw: str, words: str) -> None:
    """Whatever could cost time, memory or the process is refused with the reason."""
    answer = problem(raw)
    assert answer
    assert words in answer


@given(st.text(alphabet="ab:-?[]{}&*!|>'\"%@` \n\t#,<~\\", max_size=60))
def test_nothing_makes_the_guard_raise(raw: str) -> None:
    """Any text is answered with words."""
    assert isinstance(problem(raw), str)

"""The guard before PyYAML."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.documents.frontmatter import problem
from tests.corpora import PLACE

CASES = PLACE / "yaml" / "yaml_cases.json"


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "# only a comment",
        "a: b",
        "a: [1, 2]\nb: {c: d}",
        "'<<': quoted",
        "text: |\n  two\n  lines\n",
        "name: x\nmetadata:\n  type: user\n",
        "a: 2024-13-45\nb: 99999\nc: no\nd: 1:20\n",
    ],
)
def test_ordinary_frontmatter_may_be_loaded(raw: str) -> None:
    """Shallow mappings pass, whatever their values look like."""
    assert problem(raw) == ""


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


@pytest.mark.skipif(not CASES.exists(), reason=f"the corpus {CASES} is missing")
def test_the_conformance_cases_are_answered() -> None:
    """None of the YAML test suite's cases raises, and few of the invalid ones pass."""
    cases = json.loads(CASES.read_bytes())
    assert len(cases) == 402
    passed = 0
    for case in cases:
        raw = base64.b64decode(case["yaml_b64"]).decode("utf-8", errors="replace")
        passed += case["error"] and not problem(raw)
    assert passed < 20

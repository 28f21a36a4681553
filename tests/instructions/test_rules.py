"""Heads of rules, and the patterns of their conditions."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.regex import PatternRefusedError
from memd.instructions import patterns, rules

SAMPLES = json.loads(Path(__file__).with_name("samples.json").read_text())
PATHS: list[str] = SAMPLES["paths"]
# What Claude Code makes of it is odd, and memd makes it otherwise without a word.
_ODD_GLOBS = {"**/**/a.ts": {"a.ts"}}
_ODD_HEADS = ("paths: [src/**, !src/b.ts]", "\u2028")


def _loads_with(text: str) -> str | list[str]:
    """Return with which of ``PATHS`` a rule loads."""
    condition, _ = rules.compile_patterns(rules.head(text))
    return [path for path in PATHS if patterns.fits(condition, path)] if condition else "always"


@pytest.mark.parametrize(("glob", "expected"), SAMPLES["globs"])
def test_globs(glob: str, expected: str | list[str]) -> None:
    """A glob lets a rule load with the same touched files as in Claude Code."""
    result = _loads_with(f"---\npaths: {json.dumps(glob)}\n---\nText.\n")
    odd = _ODD_GLOBS.get(glob, set())
    assert [path for path in result if path not in odd] == list(expected)


@pytest.mark.parametrize(("text", "expected"), SAMPLES["heads"])
def test_heads(text: str, expected: str | list[str]) -> None:
    """A head lets a rule load as in Claude Code; or it always loads, and a problem says why."""
    result = _loads_with(f"{text}Text.\n")
    named = result == "always" and rules.compile_patterns(rules.head(f"{text}Text.\n"))[1]
    assert result == expected or named or any(odd in text for odd in _ODD_HEADS)


@pytest.mark.parametrize(
    ("glob", "why"),
    [
        ("a" * 65_536, "cannot be read"),
        ("a" * 10_000, "10,000 characters of 500"),
        ("{a,b}" * 20, "more than 100 patterns"),
        ("/**/a" * 100, "characters of"),
        ("[z-a]", "range"),
    ],
)
def test_globs_that_cost_too_much_are_named(glob: str, why: str) -> None:
    """A glob that is too long, stands for too many or is none does not count, and that is named."""
    head = rules.head(f"---\npaths: '{glob}'\n---\nText.\n")
    condition, problems = rules.compile_patterns(head)
    assert condition == ()
    assert why in " ".join(problems)
    assert all(len(problem) < 200 for problem in problems)


def test_good_globs_stay_beside_bad_ones() -> None:
    """One glob that cannot be used takes none of the others away."""
    text = f"---\npaths:\n  - src/**\n  - {'x' * 600}\n---\nText.\n"
    condition, problems = rules.compile_patterns(rules.head(text))
    assert patterns.fits(condition, "src/a.ts")
    assert not patterns.fits(condition, "lib/a.ts")
    assert len(problems) == 1


def test_the_body_is_the_text_below_the_head() -> None:
    """A head ends with the next three hyphens; without an end it is text."""
    assert rules.split("---\na: b\n---\n\nBody.\n") == ("a: b\n", "Body.\n")
    assert rules.split("\ufeff---\r\na: b --- Body.\r\n") == ("a: b ", "Body.\r\n")
    assert rules.split("---\na: b\n") == ("", "---\na: b\n")
    assert rules.split("Body.\n---\nx\n---\n") == ("", "Body.\n---\nx\n---\n")


_VALUES = st.text(alphabet="ab*?[]{},!/\\\"'-#: &|>%@`\n\t\x00é", max_size=40)


@given(_VALUES, _VALUES)
def test_any_head_is_read(value: str, path: str) -> None:
    """No value of ``paths`` raises, and the condition answers for any path."""
    for text in (f"---\npaths: {value}\n---\nB", f"---\npaths:\n  - {value}\n---\nB"):
        condition, _ = rules.compile_patterns(rules.head(text))
        assert patterns.fits(condition, path) in (True, False)


@given(st.text(alphabet="ab*?[]{},!/\\^", max_size=20))
def test_any_glob_stands_for_few_patterns(glob: str) -> None:
    """A glob stands for at most 100 patterns, or is refused."""
    with suppress(PatternRefusedError):
        assert len(patterns.expanded(glob)) <= 100


def test_only_texts_are_globs() -> None:
    """Numbers, mappings and nothing are no globs; lists in lists are taken apart."""
    value: Any = ["a", ["b, c", ["{d,e}"]], {"f": "g"}, "5", "null", ""]
    assert list(rules.texts(value)) == ["a", "b", "c", "{d,e}"]

"""Shell patterns as linear-time expressions."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import globs
from memd.base.errors import Invalid


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.md", ["a.md", ".md"], ["a.mdx", "x/a.md"]),
        ("**/*.md", ["a.md", "x/a.md", "x/y/a.md"], ["a.txt"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "a/src/b"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("[a-c].md", ["b.md"], ["d.md"]),
        ("[!a-c].md", ["d.md"], ["b.md", "/.md"]),
        ("[]x].md", ["].md", "x.md"], ["y.md"]),
        ("[^]x]", ["y"], ["]", "x"]),
        ("*.{md,txt}", ["a.md", "a.txt"], ["a.py"]),
        ("{a,b", ["a", "b"], ["c"]),
        ("a,b}", ["a,b}"], ["a"]),
        (r"\*.md", ["*.md"], ["a.md"]),
        ("a+(b)", ["a+(b)"], ["aab"]),
        ("[a", ["[a"], ["a"]),
        ("[]", ["[]"], ["]", "["]),
        ("a[]b", ["a[]b"], ["ab"]),
        ("[!]", ["[!]"], ["a", "!"]),
        ("[!-a]", ["A", "b", "."], ["-", "a", "/"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[]]", ["]"], ["[]]"]),
        ("a\\", ["a\\"], ["a"]),
    ],
)
def test_patterns_match_whole_names(pattern: str, yes: list[str], no: list[str]) -> None:
    """Each sign means what it means in a shell, and everything else itself."""
    fits = globs.compiled(pattern)
    assert [name for name in yes if not fits(name)] == []
    assert [name for name in no if fits(name)] == []


def test_long_patterns_are_refused() -> None:
    """A pattern has a length."""
    with pytest.raises(Invalid):
        globs.compiled("*" * 501)


@given(st.text(alphabet="ab*?[]!^-", max_size=8), st.text(alphabet="ab-]", max_size=6))
def test_simple_patterns_agree_with_python(pattern: str, name: str) -> None:
    """Where both know a pattern, names without folders fit alike."""
    try:
        fits = globs.compiled(pattern)
    except Invalid:
        return
    if "[" not in pattern:
        assert fits(name) == fnmatch.fnmatchcase(name, pattern)

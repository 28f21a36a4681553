"""A command line as words."""

# ruff: noqa: E501 - tables of commands and answers

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.agent import shell_words
from memd.agent.refusals import CommandRefusedError
from memd.agent.shell_words import Word


def texts(command: str) -> list[list[str]]:
    """Return the words of each command."""
    return [[word.text for word in stage] for stage in shell_words.split(command)]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("  cat\ta.md |head -3 ", [["cat", "a.md"], ["head", "-3"]]),
        ("grep 'a b|c' x", [["grep", "a b|c", "x"]]),
        (r'grep "a \"b\" \$x \n" x', [["grep", r'a "b" $x \n', "x"]]),
        (r"find . \( -name a \)", [["find", ".", "(", "-name", "a", ")"]]),
        ("l''s", [["ls"]]),
        ("cat ''", [["cat", ""]]),
        ('cat ""', [["cat", ""]]),
        ("ls x 2>/dev/null", [["ls", "x"]]),
        ("ls 2>&1|wc", [["ls"], ["wc"]]),
        ("cat a#b a~", [["cat", "a#b", "a~"]]),
    ],
)
def test_words_and_quotes(command: str, words: list[list[str]]) -> None:
    """Quotes and escapes are taken off, and pipes divide commands."""
    assert texts(command) == words


def test_patterns_are_kept_apart() -> None:
    """Only signs outside quotes make a pattern; quoted ones stand for themselves in it."""
    assert shell_words.split("ls *.md '*.md' \\*.md a'*'*")[0][1:] == (
        Word("*.md", "*.md"),
        Word("*.md"),
        Word("*.md"),
        Word("a**", "a\\**"),
    )


@pytest.mark.parametrize(
    "command",
    ["", " ", "|", "ls |", "| ls", "ls || x", "ls ; x", "ls & x", "ls > x", "ls 2>x",
     "ls 2>/dev/nullx", "cat < x", "(ls)", "`ls`", "$(ls)", '"$x"', '"`x`"', "ls $x", "ls {a,b}", "ls # x", "cat ~/x",
     "ls\nls", "ls\rls", "ls \x00", "ls \ud800", "ls '", 'ls "', "ls \\", "x" * 4001,
     "ls|" * 6 + "ls", "ls " + "a " * 200],
)  # fmt: skip
def test_what_a_shell_would_act_on_is_refused(command: str) -> None:
    """Chains, redirections, substitutions, groups and comments are refused in words."""
    with pytest.raises(CommandRefusedError, match="The command is refused: "):
        shell_words.split(command)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=5))
def test_quoted_words_come_back(words: list[str]) -> None:
    """What is quoted for a shell comes back as it was, or the line is refused."""
    try:
        found = shell_words.split(shlex.join(words))
    except CommandRefusedError:
        return
    assert [word.text for word in found[0]] == words
    assert len(found) == 1

"""Command lines from end to end."""

from pathlib import Path

import pytest

from memd.agent import commands
from memd.agent.step import DENIED, FAILED
from tests.agent.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with a small memory directory."""
    return Home(tmp_path)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("ls", "MEMORY.md\na.md\nbroken.md\nrule.md\nsub"),
        ("ls -p sub/..", None),
        ("ls sub/*.md", "sub/b.md"),
        ("ls ./s*/b.md", "./sub/b.md"),
        ("ls *.none", None),
        ("ls none/*", None),
        ("ls */none.md", None),
        ("cat a.md | tail -n 3 | head -n 1", "alpha"),
        ("cat sub/b.md a.md | grep -c beta", "2"),
        ("grep -l beta *.md sub/*.md", "a.md\nsub/b.md"),
        ("find sub -type f | wc -l", "1"),
        ("ls a.md 2>/dev/null", "a.md"),
        ("wc -l < a.md", None),
        ("rm a.md", None),
        ("l* a.md", None),
        ("grep -q beta a.md", "(no output)"),
        ("cat a.md | ls sub", "b.md"),
        ("cat a.md | cat -", None),
    ],
)
def test_pipes_and_patterns(home: Home, command: str, text: str | None) -> None:
    """Good commands answer as a shell's would, and others are refused in words."""
    with home.view() as view:
        result = commands.run(command, view)
    if text is None and "cat -" not in command:
        assert result.fault in (DENIED, FAILED)
    elif text is not None:
        assert (result.text, result.fault) == (text, "")


def test_one_bad_file_does_not_spoil_the_answer(home: Home) -> None:
    """What goes wrong with one file is a line of the answer and its fault."""
    with home.view() as view:
        missing = commands.run("cat none.md a.md", view)
        refused = commands.run("cat none.md /etc/passwd a.md", view)
    assert (missing.fault, refused.fault) == (FAILED, DENIED)
    assert missing.text.startswith("cat: none.md: there is no such")
    assert missing.text.endswith("gamma")


def test_a_bad_pattern_is_a_failure(home: Home) -> None:
    """An expression that cannot be matched is told, not raised."""
    with home.view() as view:
        assert commands.run("grep -E '((' a.md", view).fault == FAILED
        assert commands.run("ls [z-a]*", view).fault == FAILED


def test_many_names_end_a_pattern(home: Home) -> None:
    """A pattern that looks at too much ends with the limit's words."""
    for number in range(6):
        folder = home.project / f"d{number}"
        folder.mkdir()
        for name in range(6):
            (folder / f"{name}.txt").touch()
    with home.view(files=30) as view:
        result = commands.run(f"ls {home.project}/*/*", view)
    assert "one call looks at 30 files at most" in result.text

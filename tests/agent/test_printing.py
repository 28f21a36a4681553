"""cat, head, tail and wc."""

# ruff: noqa: E501 - tables of commands and answers

from pathlib import Path

import pytest

from memd.agent import commands
from memd.agent.view import WHOLE_BYTES
from tests.agent.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with a numbered file."""
    home = Home(tmp_path)
    text = "".join(f"line {n}\n" for n in range(1, 21))
    (home.memory / "n.md").write_text(text, encoding="utf-8")
    (home.memory / "gaps.md").write_text("a\n\n\n\nb", encoding="utf-8")
    (home.memory / "zh.md").write_text("中文 two\n", encoding="utf-8")
    (home.memory / "empty.md").touch()
    return home


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("cat gaps.md", "a\n\n\n\nb"),
        ("cat -s gaps.md", "a\n\nb"),
        ("cat -n gaps.md", "     1\ta\n     2\t\n     3\t\n     4\t\n     5\tb"),
        ("cat -b gaps.md", "     1\ta\n\n\n\n     2\tb"),
        ("cat empty.md", "(no output)"),
        ("head -2 n.md", "line 1\nline 2"),
        ("head -n 0 n.md", "(no output)"),
        ("head -c 8 n.md", "line 1\nl"),
        ("head -c 99 zh.md", "中文 two"),
        ("head -c 0 n.md", "(no output)"),
        ("head n.md | wc -l", "10"),
        ("head -qn1 n.md gaps.md", "line 1\na"),
        ("head -n 1 n.md gaps.md", "==> n.md <==\nline 1\n==> gaps.md <==\na"),
        ("cat n.md | head -v -n 1", "==> standard input <==\nline 1"),
        ("tail -n 1 n.md none.md", "==> n.md <==\nline 20\ntail: none.md: there is no such file or folder."),
        ("head -n 1 none.md", "head: none.md: there is no such file or folder."),
        ("tail -2 n.md", "line 19\nline 20"),
        ("tail -n +19 n.md", "line 19\nline 20"),
        ("tail -n +0 gaps.md", "a\n\n\n\nb"),
        ("tail -c 4 n.md", " 20"),
        ("tail -c 0 n.md", "(no output)"),
        ("cat n.md | tail -n 1", "line 20"),
        ("wc n.md", "20 40 151 n.md"),
        ("wc -m zh.md", "7 zh.md"),
        ("wc -lc n.md zh.md", "20 151 n.md\n1 11 zh.md\n21 162 total"),
        ("cat n.md | wc -w", "40"),
        ("wc none.md", "wc: none.md: there is no such file or folder."),
        ("head -c +3 n.md", "head: -c: only line counts from the start are understood."),
    ],
)  # fmt: skip
def test_text_is_shown_and_counted(home: Home, command: str, text: str) -> None:
    """Answers are those of the commands that people know."""
    with home.view() as view:
        assert commands.run(command, view).text == text


def test_the_end_of_a_large_file_is_read_from_its_end(home: Home) -> None:
    """The last lines of a large file are whole, though its beginning is not read."""
    lines = "".join(f"{n:09}\n" for n in range(WHOLE_BYTES // 5))
    (home.project / "big.txt").write_text(lines, encoding="utf-8")
    with home.view() as view:
        text = commands.run(f"tail -n 2 {home.project}/big.txt", view).text
    assert text == "\n".join(lines.split("\n")[-3:-1])

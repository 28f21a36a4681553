"""Command lines as calls of Read, Grep and Glob."""

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.agent import shell
from memd.agent.refusals import CommandRefusedError
from memd.agent.step import DENIED, FAILED
from tests.agent.home import NOW, TOKEN, Home

GONE = "none.md: there is no such file or folder."


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with files of known ages."""
    home = Home(tmp_path)
    (home.memory / "n.md").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    names = ("MEMORY.md", "a.md", "rule.md", "broken.md", "sub/b.md", "n.md")
    for age, name in enumerate(names):
        os.utime(home.memory / name, (NOW - 60 * age, NOW - 60 * age))
    return home


@pytest.mark.parametrize(
    "command",
    ["", " ", "|", "ls |", "| ls", "ls || x", "ls ; x", "ls & x", "ls > x", "ls 2>x", "rm a.md",
     "ls 2>/dev/nullx", "cat < x", "(ls)", "`ls`", "$(ls)", '"$x"', '"`x`"', "ls $x", "ls ${x}",
     "ls {a,b}", "ls # x", "cat ~/x", "l* a.md", "ls $'x'", "ls\nls", "ls\rls", "cat a.md | wc",
     "ls \x00", "ls \ud800", "ls '", 'ls "', "ls \\", "x" * 4001, "ls " + "a " * 200, "grep",
     "ls | head a.md", "head -n x n.md", "head -n +3 n.md", "cat -A a.md", "grep -P x a.md",
     "find . -delete", "find . -name a -o -name b", "find . -type l", "wc", "ls | xargs rm"],
)  # fmt: skip
def test_what_a_shell_would_act_on_is_refused(home: Home, command: str) -> None:
    """Chains, redirections, substitutions, comments, other programs and options are refused."""
    with home.view() as view:
        result = shell.run(command, view)
    assert result.fault == DENIED
    assert result.text.startswith("The command is refused: ")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=5))
def test_quoted_words_come_back(words: list[str]) -> None:
    """What is quoted for a shell comes back as it was, or the line is refused."""
    try:
        results = shell.split(shlex.join(words))
    except CommandRefusedError:
        return
    assert results == [words]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("ls", "MEMORY.md\na.md\nrule.md\nbroken.md\nsub/b.md\nn.md"),
        ("ls -la sub", "sub/b.md"),
        ("ls none.md sub 2>/dev/null", f"{GONE}\nsub/b.md"),
        ("ls -l | head -2", "MEMORY.md\na.md"),
        ("ls *.md | tail -n 1", "n.md"),
        ("find . -type f -name 'b*'", "broken.md\nsub/b.md"),
        ("cat n.md | head -n 1", "     1\tline 1"),
        ("head -1 n.md none.md", f"     1\tline 1\n[… there is more; read on with offset]\n{GONE}"),
        ("tail -1 n.md", "    20\tline 20"),
        ("tail -n +20 n.md", "    20\tline 20"),
        ("wc -l n.md", "20 n.md"),
        ("wc n.md", "20 40 151 n.md"),
        ("stat n.md sub", "n.md: 151 bytes, 2025-10-09 08:48\nsub: folder, "),
        ("grep -n 'line 2$' n.md", "n.md:2:line 2"),
        ("grep -ril BETA", "a.md\nsub/b.md"),
        ("grep -c line n.md", "n.md:20"),
        ("grep -e 'line 1$' -e 'line 3$' -A1 -m2 n.md", "n.md:1:line 1\nn.md-2-line 2"),
        ("grep -F 'line.' n.md", "(nothing found)"),
        ("grep -wE 'line (4|5)' n.md", "n.md:4:line 4\nn.md:5:line 5"),
        ("grep 'line 6\\|line 7' n.md", "n.md:6:line 6\nn.md:7:line 7"),
        ("grep -r beta --include=b* .", "sub/b.md:8:beta two"),
    ],
)
def test_commands_answer_as_the_tools_do(home: Home, command: str, text: str) -> None:
    """Each command is a call of Read, Grep or Glob; what goes wrong with a file is a line."""
    with home.view() as view:
        result = shell.run(command, view)
    assert result.text.startswith(text)
    assert bool(result.fault) is (GONE in text)


def test_one_bad_file_does_not_spoil_the_answer(home: Home) -> None:
    """What goes wrong with one file is a line of the answer, and its fault."""
    with home.view() as view:
        missing = shell.run("cat none.md a.md", view)
        refused = shell.run("cat none.md /etc/passwd a.md", view)
        pattern = shell.run("grep -E '((' a.md", view)
    assert (missing.fault, refused.fault, pattern.fault) == (FAILED, DENIED, FAILED)
    assert missing.text.startswith(GONE)
    assert "gamma" in missing.text


def test_a_search_does_not_tell_credentials(home: Home) -> None:
    """What looks like a credential is neither shown nor found piece by piece."""
    with home.view() as view:
        for end in range(4, len(TOKEN)):
            command = f"grep -rc '{TOKEN[:end]}' {home.project}/README.md"
            assert shell.run(command, view).text == "(nothing found)"
        text = shell.run(f"grep -r token {home.project}", view).text
    assert text.endswith("the token is [secret: github-token]")

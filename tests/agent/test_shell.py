"""Command lines from end to end: words, pipes, patterns, and each command's options."""

# ruff: noqa: E501 - tables of commands and answers

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

LINES = "".join(f"line {n}\n" for n in range(1, 21))
GONE = "none.md: there is no such file or folder."


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with text to search, and files of known ages."""
    home = Home(tmp_path)
    for age, name in enumerate(("MEMORY.md", "a.md", "rule.md", "broken.md", "sub/b.md", "sub")):
        os.utime(home.memory / name, (NOW - 60 * age, NOW - 60 * age))
    files = {
        "n.txt": LINES,
        "t.txt": "one (1)\ntwo\nTwo\nthree\nfour\nfive\ntwo two\n",
        "gaps.txt": "a\n\n\n\nb",
        "zh.txt": "中文 two\n",
        "none.txt": "",
    }
    for name, text in files.items():
        (home.project / "src" / name).write_text(text, encoding="utf-8")
    return home


def texts(command: str) -> list[list[str]]:
    """Return the words of each command."""
    return [[word.text for word in words] for words in shell.split(command)]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("  cat\ta.md |head -3 ", [["cat", "a.md"], ["head", "-3"]]),
        ("grep 'a b|c' x", [["grep", "a b|c", "x"]]),
        (r'grep "a \"b\" \$x \n" x', [["grep", r'a "b" $x \n', "x"]]),
        ('grep "end$" x$', [["grep", "end$", "x$"]]),
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


@pytest.mark.parametrize(
    "command",
    ["", " ", "|", "ls |", "| ls", "ls || x", "ls ; x", "ls & x", "ls > x", "ls 2>x", "rm a.md",
     "ls 2>/dev/nullx", "cat < x", "(ls)", "`ls`", "$(ls)", '"$x"', '"`x`"', "ls $x", "ls ${x}",
     "ls {a,b}", "ls # x", "cat ~/x", "l* a.md", "stat a.md", "ls $'x'", "ls\nls", "ls\rls",
     "ls \x00", "ls \ud800", "ls '", 'ls "', "ls \\", "x" * 4001, "ls|" * 6 + "ls", "ls " + "a " * 200],
)  # fmt: skip
def test_what_a_shell_would_act_on_is_refused(home: Home, command: str) -> None:
    """Chains, redirections, substitutions, groups, comments and other programs are refused."""
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
    assert [word.text for word in results[0]] == words
    assert len(results) == 1


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("ls", "MEMORY.md\na.md\nbroken.md\nrule.md\nsub"),
        ("ls -a .", "MEMORY.md\na.md\nbroken.md\nrule.md\nsub"),
        ("ls -F", "MEMORY.md\na.md\nbroken.md\nrule.md\nsub/"),
        ("ls -t", "MEMORY.md\na.md\nrule.md\nbroken.md\nsub"),
        ("ls -tr", "sub\nbroken.md\nrule.md\na.md\nMEMORY.md"),
        ("ls -d sub", "sub"),
        ("ls -l a.md", "-        81 2025-10-09 08:52 a.md"),
        ("ls -lhd sub", "d         0 2025-10-09 08:48 sub"),
        ("ls -R", ".:\nMEMORY.md\na.md\nbroken.md\nrule.md\nsub\n\n./sub:\nb.md"),
        ("ls a.md sub", "a.md\nsub:\nb.md"),
        ("ls none.md", f"ls: {GONE}"),
        ("ls sub/*.md", "sub/b.md"),
        ("ls ./s*/b.md", "./sub/b.md"),
        ("ls 's*'", "ls: s*: there is no such file or folder."),
        ("cat gaps.txt", "a\n\n\n\nb"),
        ("cat -n gaps.txt", "     1\ta\n     2\t\n     3\t\n     4\t\n     5\tb"),
        ("cat none.txt", "(no output)"),
        ("cat zh.txt - none.md", f"中文 two\ncat: {GONE}"),
        ("head -2 n.txt", "line 1\nline 2"),
        ("head -n 0 n.txt", "(no output)"),
        ("head n.txt | wc -l", "10"),
        ("head -qn1 n.txt gaps.txt", "line 1\na"),
        ("head -n 1 n.txt gaps.txt", "==> n.txt <==\nline 1\n==> gaps.txt <==\na"),
        ("tail -2 n.txt", "line 19\nline 20"),
        ("tail -n +19 n.txt", "line 19\nline 20"),
        ("tail -n +0 gaps.txt", "a\n\n\n\nb"),
        ("cat n.txt | tail -n 3 | head -n 1", "line 18"),
        ("head -n x n.txt", "The command is refused: it must be a number up to 1000000."),
        ("wc n.txt", "20 40 151 n.txt"),
        ("wc -m zh.txt", "7 zh.txt"),
        ("wc -lc n.txt zh.txt", "20 151 n.txt\n1 11 zh.txt\n21 162 total"),
        ("cat n.txt | wc -w", "40"),
        ("wc", "The command is refused: wc names no file, and nothing is piped into it."),
        ("grep two t.txt", "two\ntwo two"),
        ("grep -in TWO t.txt", "2:two\n3:Two\n7:two two"),
        ("grep -c two t.txt", "2"),
        ("grep -Hc two t.txt", "t.txt:2"),
        ("grep -v -n t t.txt", "1:one (1)\n3:Two\n5:four\n6:five"),
        ("grep -x two t.txt", "two"),
        ("grep -w fou t.txt", "(no output)"),
        ("grep -w four t.txt", "four"),
        ("grep -F '(1)' t.txt", "one (1)"),
        ("grep '(1)' t.txt", "one (1)"),
        ("grep -E 'one|three' t.txt", "one (1)\nthree"),
        ("grep 'one\\|three' t.txt", "one (1)\nthree"),
        ("grep -e one -e five t.txt", "one (1)\nfive"),
        ("grep -m1 two t.txt", "two"),
        ("grep -n -A1 three t.txt", "4:three\n5-four"),
        ("grep -n -B 1 three t.txt", "3-Two\n4:three"),
        ("grep -n -1 'one\\|five' t.txt", "1:one (1)\n2-two\n--\n5-four\n6:five\n7-two two"),
        ("grep two t.txt -l n.txt", "t.txt"),
        ("grep -L two t.txt n.txt", "n.txt"),
        ("grep -q two t.txt", "(no output)"),
        ("grep two t.txt zh.txt", "t.txt:two\nt.txt:two two\nzh.txt:中文 two"),
        ("grep -h two t.txt zh.txt", "two\ntwo two\n中文 two"),
        ("grep -rc beta sub", "sub/b.md:1"),
        ("grep -r beta", "./a.md:beta\n./sub/b.md:beta two"),
        ("grep -r beta --include=b* .", "./sub/b.md:beta two"),
        ("grep -r beta none.md sub", f"sub/b.md:beta two\ngrep: {GONE}"),
        ("grep -s beta none.md a.md", "a.md:beta"),
        ("grep beta sub", "grep: sub is a folder."),
        ("grep", "The command is refused: grep has no pattern."),
        ("cat t.txt | grep -n five", "6:five"),
        ("cat t.txt | grep -H five", "(standard input):five"),
        ("grep -E '((' a.md", None),
        ("grep -P x a.md", None),
        ("find sub", "sub\nsub/b.md"),
        ("find sub -print", "sub\nsub/b.md"),
        ("find . -name '[ab].md'", "./a.md\n./sub/b.md"),
        ("find . -iname 'MEM*'", "./MEMORY.md"),
        ("find . -path './s*'", "./sub\n./sub/b.md"),
        ("find . -type d", ".\n./sub"),
        ("find . -maxdepth 1 -type d", ".\n./sub"),
        ("find sub ! -name b.md", "sub"),
        ("find sub -not ! -name b.md", "sub/b.md"),
        ("find none.md sub", f"sub\nsub/b.md\nfind: {GONE}"),
        ("find sub -type f | wc -l", "1"),
        ("find . -type l", None),
        ("find . -delete", None),
        ("find . -name", None),
        ("find . -name a -o -name b", None),
    ],
)
def test_commands_answer_as_people_know_them(home: Home, command: str, text: str | None) -> None:
    """Options mean what they mean elsewhere; what is not offered is refused in words."""
    for name in ("n", "t", "gaps", "zh", "none"):
        (home.memory / f"{name}.txt").unlink(missing_ok=True)
    with home.view() as view:
        for name in ("n", "t", "gaps", "zh", "none"):
            command = command.replace(f"{name}.txt", f"{home.project}/src/{name}.txt")
        result = shell.run(command, view)
    if text is None:
        assert result.fault in (DENIED, FAILED)
    else:
        assert result.text.replace(f"{home.project}/src/", "") == text


def test_one_bad_file_does_not_spoil_the_answer(home: Home) -> None:
    """What goes wrong with one file is a line at the end of the answer, and its fault."""
    with home.view() as view:
        missing = shell.run("cat none.md a.md", view)
        refused = shell.run("cat none.md /etc/passwd a.md", view)
    assert (missing.fault, refused.fault) == (FAILED, DENIED)
    assert missing.text.endswith(f"gamma\ncat: {GONE}")


def test_a_search_does_not_tell_credentials(home: Home) -> None:
    """What looks like a credential is neither shown nor found piece by piece."""
    with home.view() as view:
        for end in range(4, len(TOKEN)):
            command = f"grep -rc '{TOKEN[:end]}' {home.project}/README.md"
            assert shell.run(command, view).text.endswith(":0")
        assert shell.run(f"grep -rh token {home.project}", view).text == (
            "the token is [secret: github-token]"
        )


def test_a_file_that_is_gone_meanwhile_is_a_line(home: Home) -> None:
    """A file that turns into a link while a search runs is refused then."""
    with home.view() as view:
        entry = view.entry("a.md")
        (home.memory / "a.md").unlink()
        (home.memory / "a.md").symlink_to(home.path / "secret.txt")
        assert "CANARY-" not in shell.run("grep -r CANARY .", view).text
        with pytest.raises(Exception, match="cannot be read"):
            list(view.pieces(entry))


@pytest.mark.parametrize("command", ["ls {}/*/*", "find {}"])
def test_what_looks_at_too_much_ends_in_words(home: Home, command: str) -> None:
    """A pattern or a search that looks at too many files ends with the limit's words."""
    for number in range(6):
        folder = home.project / f"d{number}"
        folder.mkdir()
        for name in range(6):
            (folder / f"{name}.txt").touch()
    with home.view(files=30) as view:
        result = shell.run(command.format(home.project), view)
    assert result.text.endswith("one call looks at 30 files at most. Ask for less at once.")

"""grep."""

# ruff: noqa: E501 - tables of commands and answers

from pathlib import Path

import pytest

from memd.agent import commands
from tests.agent.home import TOKEN, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with text to search."""
    home = Home(tmp_path)
    (home.memory / "t.md").write_text(
        "one (1)\ntwo\nTwo\nthree\nfour\nfive\ntwo two\n", encoding="utf-8"
    )
    return home


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("grep two t.md", "two\ntwo two"),
        ("grep -in TWO t.md", "2:two\n3:Two\n7:two two"),
        ("grep -c two t.md", "2"),
        ("grep -Hc two t.md", "t.md:2"),
        ("grep -v -n t t.md", "1:one (1)\n3:Two\n5:four\n6:five"),
        ("grep -x two t.md", "two"),
        ("grep -w fou t.md", "(no output)"),
        ("grep -w four t.md", "four"),
        ("grep -F '(1)' t.md", "one (1)"),
        ("grep '(1)' t.md", "one (1)"),
        ("grep -E 'one|three' t.md", "one (1)\nthree"),
        ("grep 'one\\|three' t.md", "one (1)\nthree"),
        ("grep -e one -e five t.md", "one (1)\nfive"),
        ("grep -m1 two t.md", "two"),
        ("grep -n -A1 three t.md", "4:three\n5-four"),
        ("grep -n -B1 three t.md", "3-Two\n4:three"),
        ("grep -n -1 'one\\|five' t.md", "1:one (1)\n2-two\n--\n5-four\n6:five\n7-two two"),
        ("grep -l two t.md a.md", "t.md"),
        ("grep -L two t.md a.md", "a.md"),
        ("grep -h beta a.md sub/b.md", "beta\nbeta two"),
        ("grep beta a.md sub/b.md", "a.md:beta\nsub/b.md:beta two"),
        ("grep -rc beta sub", "sub/b.md:1"),
        ("grep -r beta", "./a.md:beta\n./sub/b.md:beta two"),
        ("grep -r beta --include=b* .", "./sub/b.md:beta two"),
        ("grep -r beta --exclude=b* .", "./a.md:beta"),
        ("grep -r beta --exclude-dir=sub .", "./a.md:beta"),
        ("grep -r beta none sub", "grep: none: there is no such file or folder.\nsub/b.md:beta two"),
        ("grep -s beta none a.md", "a.md:beta"),
        ("grep beta sub", "grep: sub is a folder."),
        ("grep --color=never two t.md", "two\ntwo two"),
        ("grep --color=always two t.md", "grep: --color: nothing is coloured here."),
        ("grep", "The command is refused: grep has no pattern."),
        ("cat t.md | grep -n five", "6:five"),
        ("cat t.md | grep -H five", "(standard input):five"),
    ],
)  # fmt: skip
def test_lines_are_found(home: Home, command: str, text: str) -> None:
    """Answers are those of the command that people know."""
    with home.view() as view:
        assert commands.run(command, view).text == text


def test_a_search_does_not_tell_credentials(home: Home) -> None:
    """What looks like a credential is neither shown nor found piece by piece."""
    with home.view() as view:
        for line in range(4, len(TOKEN)):
            assert commands.run(
                f"grep -rc '{TOKEN[:line]}' {home.project}/README.md", view
            ).text.endswith(":0")
        assert commands.run(f"grep -rh token {home.project}", view).text == (
            "the token is [secret: github-token]"
        )


def test_a_file_that_is_gone_meanwhile_is_a_line(home: Home) -> None:
    """A file that turns into a link while a search runs is refused then."""
    with home.view() as view:
        entry = view.entry("t.md")
        (home.memory / "t.md").unlink()
        (home.memory / "t.md").symlink_to(home.path / "secret.txt")
        found = commands.run("grep -r CANARY .", view)
        assert "CANARY-" not in found.text
        with pytest.raises(Exception, match="cannot be read"):
            list(view.pieces(entry))

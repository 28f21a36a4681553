"""ls and stat."""

# ruff: noqa: E501 - tables of commands and answers

import os
from pathlib import Path

import pytest

from memd.agent import commands
from tests.agent.home import NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home whose files have known ages."""
    home = Home(tmp_path)
    for age, name in enumerate(("MEMORY.md", "a.md", "rule.md", "broken.md", "sub/b.md", "sub")):
        os.utime(home.memory / name, (NOW - 60 * age, NOW - 60 * age))
    return home


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("ls -a .", "MEMORY.md\na.md\nbroken.md\nrule.md\nsub"),
        ("ls -F", "MEMORY.md\na.md\nbroken.md\nrule.md\nsub/"),
        ("ls -t", "MEMORY.md\na.md\nrule.md\nbroken.md\nsub"),
        ("ls -tr", "sub\nbroken.md\nrule.md\na.md\nMEMORY.md"),
        ("ls -S *.md", "rule.md\na.md\nMEMORY.md\nbroken.md"),
        ("ls -d sub", "sub"),
        ("ls -l a.md", "-        81 2025-10-09 08:52 a.md"),
        ("ls -lhd sub", "d         0 2025-10-09 08:48 sub"),
        ("ls -R", ".:\nMEMORY.md\na.md\nbroken.md\nrule.md\nsub\n\n./sub:\nb.md"),
        ("ls a.md sub", "a.md\nsub:\nb.md"),
        ("ls none", "ls: none: there is no such file or folder."),
        ("stat a.md", "  File: a.md\n  Size: 81  Type: regular file\nModify: 2025-10-09 08:52:20 +0000"),
        ("stat -c '%n %s %Y %F %%d' sub", "sub 0 1759999700 directory %d"),
        ("stat -c '100%' a.md", "stat: -c: formats know %n, %s, %y, %Y and %F."),
        ("stat -c plain a.md none", "plain\nstat: none: there is no such file or folder."),
        ("stat", "The command is refused: stat names no file."),
    ],
)  # fmt: skip
def test_folders_are_listed(home: Home, command: str, text: str) -> None:
    """Listings have names, sizes and ages, and nothing hidden, linked or special."""
    with home.view() as view:
        assert commands.run(command, view).text == text

"""find."""

import os
from pathlib import Path

import pytest

from memd.agent import commands
from tests.agent.home import NOW, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home whose files have known ages."""
    home = Home(tmp_path)
    (home.memory / "empty").mkdir()
    (home.memory / "big.md").write_bytes(b"x" * 3000)
    for folder in (home.memory, home.memory / "sub"):
        for path in folder.iterdir():
            if path.suffix == ".md" and path.is_file() and not path.is_symlink():
                os.utime(path, (NOW - 90, NOW - 90))
    os.utime(home.memory / "a.md", (NOW - 3 * 86400, NOW - 3 * 86400))
    return home


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("find sub", "sub\nsub/b.md"),
        ("find sub -print", "sub\nsub/b.md"),
        ("find . -name '[ab].md'", "./a.md\n./sub/b.md"),
        ("find . -iname 'MEM*'", "./MEMORY.md"),
        ("find . -path './s*'", "./sub\n./sub/b.md"),
        ("find . -type d", ".\n./empty\n./sub"),
        ("find . -empty", "./empty"),
        ("find . -size +2k", "./big.md"),
        ("find . -size 3000c", "./big.md"),
        ("find . -size 6 -type f", "./big.md"),
        ("find . -mtime +2", "./a.md"),
        ("find . -mtime 3 -type f", "./a.md"),
        ("find sub -type f -mmin -5", "sub/b.md"),
        ("find . -newer a.md -name 'b*.md'", "./big.md\n./broken.md\n./sub/b.md"),
        ("find . -maxdepth 1 -type d", ".\n./empty\n./sub"),
        ("find . -mindepth 2", "./sub/b.md"),
        ("find sub ! -name b.md", "sub"),
        ("find sub -not ! -name b.md -a -true", "sub/b.md"),
        ("find . \\( -name a.md -o -name b.md \\) -type f", "./a.md\n./sub/b.md"),
        ("find none sub", "find: none: there is no such file or folder.\nsub\nsub/b.md"),
        ("find . -type l", "find: -type: types are f and d."),
        ("find . -delete", "find: -delete: it is not offered here."),
        ("find . -name", "find: -name: it needs a value."),
        ("find . -o", "find: -o: a condition or a bracket is missing."),
        ("find . \\( -true", "find: (: a condition or a bracket is missing."),
        ("find . -true \\)", "find: ): a condition or a bracket is missing."),
        ("find . -true sub", "find: sub: paths come before conditions."),
        ("find . " + "\\( " * 20, "find: (: conditions are nested too deep."),
    ],
)
def test_files_are_found(home: Home, command: str, text: str) -> None:
    """Conditions mean what they mean in find; those that act are refused."""
    with home.view() as view:
        assert commands.run(command, view).text == text


def test_an_early_limit_ends_the_search(home: Home) -> None:
    """A search that looks at too much ends with words."""
    (home.project / "d").mkdir()
    for number in range(40):
        (home.project / "d" / f"{number}").touch()
    with home.view(files=30) as view:
        found = commands.run(f"find {home.project}", view)
    assert found.text.endswith("one call looks at 30 files at most. Ask for less at once.")

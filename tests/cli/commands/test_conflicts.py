"""team resolve: a conflict is decided by one side, by a file or in the editor."""

import sys
from pathlib import Path
from typing import Any

from tests.cli.commands.test_team import CONFLICT, NOTHING, STATUS
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon


def test_a_text_that_is_dropped_is_still_shown(home: Home) -> None:
    """Who takes the team's text hears which command shows the own one; ours says that it stands."""
    status = {**STATUS, "conflicts": [CONFLICT]}
    answers = {"team.resolve": NOTHING, "team.status": status}
    with ScriptedDaemon(home.places.socket, answers):
        theirs = memctl(home, "team", "resolve", "team/b.md", "theirs")
        ours = memctl(home, "team", "resolve", "b.md", "ours")
    assert theirs.out == (
        "resolved: team/b.md has the team's text; yours is shown by: memctl diff c4\n"
    )
    assert ours.out == "resolved: team/b.md has your text\n"


def _resolve(home: Home, code: str) -> tuple[Any, ScriptedDaemon]:
    script = Path(home.path) / "editor.py"
    script.write_text(f"import sys; path = sys.argv[-1]\n{code}\n")
    both = {
        "path": "team/b.md", "state": "conflict", "diff": "", "ours": "same\nmine",
        "theirs": "same\ntheirs\n",
    }  # fmt: skip
    answers = {"team.diff": {"files": [both]}, "team.resolve": NOTHING}
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        editor = f"'{sys.executable}' '{script}'"
        return memctl(home, "team", "resolve", "team/b.md", "edit", EDITOR=editor), daemon


def test_a_conflict_is_edited(home: Home) -> None:
    """The editor gets both texts with marks where they differ; what is saved goes out."""
    code = (
        "text = open(path).read()\n"
        "marks = '<<<<<<< yours\\nmine\\n=======\\ntheirs\\n>>>>>>> the team\\'s\\n'\n"
        "assert text == 'same\\n' + marks, text\n"
        "open(path, 'w').write('same\\nboth\\n')"
    )
    ran, daemon = _resolve(home, code)
    assert ran.status == 0
    assert daemon.params("team.resolve")["text"] == "same\nboth\n"


def test_a_text_with_marks_decides_nothing(home: Home) -> None:
    """Who saves the marks has not decided: nothing is sent, and the text is kept."""
    ran, daemon = _resolve(home, "open(path, 'a').write('more\\n')")
    assert (ran.status, daemon.methods) == (1, ["team.diff"])
    assert "marks of the conflict" in ran.err
    assert "your text is kept in" in ran.err


def test_a_conflict_is_decided_by_a_file(home: Home) -> None:
    """A script brings the text in a file."""
    Path(home.cwd, "text").write_text("both\n")
    with ScriptedDaemon(home.places.socket, {"team.resolve": NOTHING}) as daemon:
        words = ("team", "resolve", "team/b.md", "edit", "--file", f"{home.cwd}/text")
        assert memctl(home, *words).status == 0
        unused = memctl(home, "team", "resolve", "team/b.md", "ours", "--file", f"{home.cwd}/text")
    assert daemon.params("team.resolve")["text"] == "both\n"
    assert (unused.status, daemon.methods) == (2, ["team.resolve"])
    assert "--file goes with edit" in unused.err

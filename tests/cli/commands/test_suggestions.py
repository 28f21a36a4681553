"""suggestions list, accept, edit and dismiss."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

SUGGESTION: dict[str, Any] = {
    "id": "s3",
    "text": "We indent\nwith \x1b[31mtabs.",
    "session": "a",
    "at": 1_772_539_200.0,
    "origin": "user",
    "type": "feedback",
    "reason": "unmarked",
    "offered": [],
}
TAKEN = {"suggestion": "s3", "path": "feedback_tabs.md", "change": "c7"}


@pytest.mark.parametrize("words", [("suggestions",), ("suggestions", "list")])
def test_what_waits_is_shown(home: Home, words: tuple[str, ...]) -> None:
    """Each is a quotation on one line, with its id, its age, and what accepts it."""
    other = {**SUGGESTION, "id": "s2", "origin": "assistant", "type": ""}
    pasted = {**SUGGESTION, "id": "s1", "origin": "outside", "type": ""}
    answer = {"suggestions": [SUGGESTION, other, pasted]}
    with ScriptedDaemon(home.places.socket, {"suggestion.list": answer}) as daemon:
        ran = memctl(home, *words)
        coloured = memctl(home, *words, terminal=True)
        as_json = memctl(home, *words, "--json")
    assert daemon.params("suggestion.list") == {"cwd": home.cwd}
    lines = ran.out.split("\n")
    assert lines[0].startswith("s3  said ")
    assert lines[0].endswith(" ago, feedback")
    assert lines[1] == '"We indent with \x1b[31mtabs."'
    assert "\x1b[31m" not in coloured.out
    assert lines[2] == "accept with: memctl suggestions accept s3"
    assert lines[4].startswith("s2  a model's wording, not found in what was said, ")
    assert lines[8].startswith("s1  perhaps another's words, ")
    assert as_json.json == answer


def test_nothing_waits(home: Home) -> None:
    """It is said aside, and the answer is empty."""
    with ScriptedDaemon(home.places.socket, {"suggestion.list": {"suggestions": []}}):
        ran = memctl(home, "suggestions")
    assert (ran.status, ran.out.strip()) == (0, "")
    assert ran.err == "nothing waits to be decided in this project\n"


def test_one_is_accepted_or_edited(home: Home) -> None:
    """Both say what was saved and how to take it back, and send what was said."""
    script = {"suggestion.accept": TAKEN, "suggestion.edit": TAKEN}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        ran = memctl(home, "suggestions", "accept", "s3")
        edited = memctl(
            home, "suggestions", "edit", "s3", "--text", "Tabs.", "--type", "project", "--json"
        )
    assert ran.out == "saved as feedback_tabs.md\nundo with: memctl undo c7\n"
    assert daemon.params("suggestion.accept") == {"cwd": home.cwd, "suggestion": "s3"}
    params = {"cwd": home.cwd, "suggestion": "s3", "text": "Tabs.", "type": "project"}
    assert daemon.params("suggestion.edit") == params
    assert edited.json == TAKEN


@pytest.mark.parametrize(
    ("change", "saved"), [("Tabs always.", "Tabs always."), ("", None), ("Use tabs.\n", None)]
)
def test_one_is_edited_in_the_editor(home: Home, change: str, saved: str | None) -> None:
    """Without --text the editor opens with the suggestion; no other words are nothing saved."""
    listed = {"suggestions": [{"id": "s3", "text": "Use tabs."}]}
    script = {"suggestion.list": listed, "suggestion.edit": TAKEN}
    editor = Path(home.path, "editor.py")
    editor.write_text(
        "import sys, pathlib\n"
        "path = pathlib.Path(sys.argv[1])\n"
        f"assert path.read_text() == 'Use tabs.\\n'\npath.write_text({change!r})\n"
    )
    command = shlex.join([sys.executable, str(editor)])
    with ScriptedDaemon(home.places.socket, script) as daemon:
        ran = memctl(home, "suggestions", "edit", "s3", EDITOR=command)
    assert ran.status == 0, ran.err
    if saved is None:
        assert (ran.out, "suggestion.edit" in daemon.methods) == (
            "nothing was changed, and nothing saved\n",
            False,
        )
    else:
        assert daemon.params("suggestion.edit")["text"] == saved
        assert ran.out.startswith("saved as feedback_tabs.md\n")


def test_one_is_dismissed(home: Home) -> None:
    """The answer says so."""
    with ScriptedDaemon(home.places.socket, {"suggestion.dismiss": {"suggestion": "s3"}}):
        ran = memctl(home, "suggestions", "dismiss", "s3")
    assert ran.out == "s3 is dismissed\n"

"""notes show, list, path, edit and rm."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import Ran, memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, ScriptedRefusal

STATE = "# Current State\n_Where it stands_\n\nThe port is \x1b[31m8731.\n# Current State\n\n"
ERRORS = "# Errors & Corrections\n*What failed*\n\n- pytest: 3 failed\n"
READ: dict[str, Any] = {
    "content": STATE + ERRORS,
    "path": "/home/p/session-memory/summary.md",
    "sections": [
        {"title": "Current State", "tokens": 9, "cut": False},
        {"title": "Errors & Corrections", "tokens": 5, "cut": False},
    ],
    "tokens": 14,
    "covers": "m7",
    "stale": False,
    "engine": "local",
    "empty": False,
    "hash": "h1",
}
SESSION = {"session": "4f2a-9c", "title": "The heron\nservice", "tokens": 1234, "at": 1.7e9}
LISTED = {"notes": [SESSION, {**SESSION, "session": "77"}]}
SCRIPT = {"notes.list": LISTED, "notes.read": READ, "notes.delete": {"deleted": True}}


@pytest.mark.parametrize("words", [("notes",), ("notes", "show")])
def test_the_newest_notes_are_shown(home: Home, words: tuple[str, ...]) -> None:
    """Without a session it is the one whose notes changed last; a terminal obeys none of it."""
    with ScriptedDaemon(home.places.socket, SCRIPT) as daemon:
        ran = memctl(home, *words)
        terminal = memctl(home, *words, terminal=True)
        as_json = memctl(home, *words, "--json")
    assert daemon.params("notes.list") == {"cwd": home.cwd, "limit": 1}
    assert daemon.params("notes.read") == {"cwd": home.cwd, "session_id": "4f2a-9c"}
    assert (ran.out, ran.err) == (READ["content"], "")
    assert "\x1b[31m" not in terminal.out
    assert as_json.json == READ


def test_one_session_and_one_section(home: Home) -> None:
    """A section is meant by its title or how that begins; a heading in its text is text."""
    with ScriptedDaemon(home.places.socket, SCRIPT) as daemon:
        state = memctl(home, "notes", "show", "77", "--section", "current")
        errors = memctl(home, "notes", "--section", "errors & corrections", "--json")
        wrong = memctl(home, "notes", "--section", "e&c")
    asked = [each.params for each in daemon.requested if each.method == "notes.read"]
    assert [each["session_id"] for each in asked] == ["77", "4f2a-9c", "4f2a-9c"]
    assert state.out == STATE
    assert errors.json == {**READ, "content": ERRORS, "sections": READ["sections"][1:]}
    assert wrong.status == 1
    assert "no section is e&c; there are: Current State, Errors & Corrections" in wrong.err


def test_notes_that_are_behind_say_so(home: Home) -> None:
    """The note goes to standard error."""
    with ScriptedDaemon(home.places.socket, {**SCRIPT, "notes.read": {**READ, "stale": True}}):
        ran = memctl(home, "notes")
    assert (ran.out, ran.err) == (
        READ["content"],
        "the conversation has gone on since these notes were written\n",
    )


def test_sessions_are_listed(home: Home) -> None:
    """One line each, and the session stands first, as completion takes it."""
    with ScriptedDaemon(home.places.socket, SCRIPT) as daemon:
        ran = memctl(home, "notes", "list", "--limit", "9")
        as_json = memctl(home, "notes", "list", "--json")
    assert daemon.requested[1].params == {"cwd": home.cwd, "limit": 9}
    first, second = ran.out.splitlines()
    assert first.startswith("4f2a-9c  ")
    assert first.endswith(" ago  1,234 tokens  The heron service")
    assert second.startswith("77 ")
    assert as_json.json == LISTED


@pytest.mark.parametrize("verb", ["show", "path", "edit", "rm"])
def test_a_project_without_notes_says_so(home: Home, verb: str) -> None:
    """What needs a session fails with a sentence; a list is empty."""
    with ScriptedDaemon(home.places.socket, {**SCRIPT, "notes.list": {"notes": []}}):
        ran = memctl(home, "notes", verb)
        listed = memctl(home, "notes", "list")
    words = f"no conversation in {home.cwd} has notes\n"
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"memctl: {words}")
    assert (listed.status, listed.out, listed.err) == (0, "", words)


def test_the_path_is_printed(home: Home) -> None:
    """Alone on its line, for another program."""
    with ScriptedDaemon(home.places.socket, SCRIPT):
        assert memctl(home, "notes", "path").out == f"{READ['path']}\n"
        assert memctl(home, "notes", "path", "--json").json == {"path": READ["path"]}


def test_notes_are_deleted(home: Home) -> None:
    """Those of a session, of the newest one, or of all that the project has."""
    with ScriptedDaemon(home.places.socket, SCRIPT) as daemon:
        one = memctl(home, "notes", "rm", "77")
        newest = memctl(home, "notes", "rm")
        every = memctl(home, "notes", "rm", "--all", "--json")
        calls = [call.params for call in daemon.requested if call.method == "notes.delete"]
    assert one.out == "deleted the notes of 77\n"
    assert newest.out == "deleted the notes of 4f2a-9c\n"
    assert every.json == {"deleted": ["4f2a-9c", "77"]}
    assert [call["session_id"] for call in calls] == ["77", "4f2a-9c", "4f2a-9c", "77"]
    assert {call["cwd"] for call in calls} == {home.cwd}


def test_a_session_without_notes_is_named_in_vain(home: Home) -> None:
    """A session's name that is misspelt is status 1; a project without notes is none."""
    answers = {**SCRIPT, "notes.delete": {"deleted": False}}
    with ScriptedDaemon(home.places.socket, answers):
        one = memctl(home, "notes", "rm", "nobody")
        every = memctl(home, "notes", "rm", "--all")
    assert (one.status, one.out) == (1, "nothing was deleted\n")
    assert (every.status, every.out) == (0, "nothing was deleted\n")


def test_foreign_notes_stay(home: Home) -> None:
    """Of all notes those of another program are left, and named; asked for alone it is refused."""
    foreign = ScriptedRefusal(1043, "/p/4f2a-9c.md is not memd's", {"kind": "foreign_notes"})
    delete = lambda params: foreign if params["session_id"] == "4f2a-9c" else {"deleted": True}  # noqa: E731
    with ScriptedDaemon(home.places.socket, {**SCRIPT, "notes.delete": delete}):
        every = memctl(home, "notes", "rm", "--all")
        one = memctl(home, "notes", "rm")
    assert (every.status, every.out) == (0, "deleted the notes of 77\n")
    assert every.err == "/p/4f2a-9c.md is not memd's\n"
    assert (one.status, one.out) == (1, "")


def _edit(
    home: Home, code: str, write: Any, *more: str, read: Any = READ
) -> tuple[Ran, ScriptedDaemon]:
    """Run notes edit with a Python program as the editor; ``text`` is what it finds and leaves."""
    script = Path(home.path) / "editor.py"
    begin = "import pathlib, sys\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text()\n"
    script.write_text(f"{begin}{code}\npath.write_text(text)\n")
    answers = {**SCRIPT, "notes.read": read, "notes.write": write}
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        ran = memctl(home, "notes", "edit", *more, EDITOR=f"'{sys.executable}' '{script}'")
    return ran, daemon


def test_changed_sections_are_written(home: Home) -> None:
    """Each alone, without its head, the second against the hash that the first one made."""
    hashes = iter(({"hash": "h2"}, {"hash": "h3"}))
    code = "text = text.replace('8731', '9000') + '- ruff: passed\\n'"
    ran, daemon = _edit(home, code, lambda _: next(hashes))
    calls = [call.params for call in daemon.requested if call.method == "notes.write"]
    assert ran.out == "wrote Current State, Errors & Corrections\n"
    shared = {"cwd": home.cwd, "session_id": "4f2a-9c"}
    state = "\nThe port is \x1b[31m9000.\n# Current State\n\n"
    errors = "\n- pytest: 3 failed\n- ruff: passed\n"
    assert calls == [
        {**shared, "section": "Current State", "content": state, "base_hash": "h1"},
        {**shared, "section": "Errors & Corrections", "content": errors, "base_hash": "h2"},
    ]


def test_one_section_is_edited(home: Home) -> None:
    """The editor gets that section alone."""
    code = "assert text.startswith('# Errors') and 'State' not in text; text += 'more\\n'"
    ran, daemon = _edit(home, code, {"hash": "h2"}, "77", "--section", "errors")
    params = daemon.params("notes.write")
    assert ran.out == "wrote Errors & Corrections\n"
    assert (params["section"], params["content"]) == (
        "Errors & Corrections",
        "\n- pytest: 3 failed\nmore\n",
    )


@pytest.mark.parametrize(
    "code",
    [
        "text = text.replace('# Errors', '# Mistakes')",
        "text = text.replace('*What failed*', 'What failed')",
        "text = 'above\\n' + text",
        "text = ''",
    ],
)
def test_titles_and_italic_lines_stay(home: Home, code: str) -> None:
    """A changed one is refused, nothing is written, and the text is kept."""
    ran, daemon = _edit(home, code, {"hash": "h2"})
    assert ran.status == 1
    assert "a title or a line in italics was changed" in ran.err
    assert "your text is kept in" in ran.err
    assert "notes.write" not in daemon.methods


def test_a_section_that_is_shown_cut_is_not_edited(home: Home) -> None:
    """Its end would be lost: it is left out, and a note says where it lies."""
    sections = [{**READ["sections"][0], "cut": True}, READ["sections"][1]]
    code = "assert text.startswith('# Errors'); text += 'more\\n'"
    ran, _ = _edit(home, code, {"hash": "h"}, read={**READ, "sections": sections})
    assert ran.out == "wrote Errors & Corrections\n"
    assert ran.err == f"Current State is left out: it is long; change it in {READ['path']}\n"


def test_nothing_changed_and_a_conflict(home: Home) -> None:
    """An unchanged text is not written; one that the daemon refuses is kept."""
    ran, daemon = _edit(home, "pass", {"hash": "h2"})
    assert (ran.out, "notes.write" in daemon.methods) == ("nothing was changed\n", False)
    conflict = ScriptedRefusal(1002, "the notes changed since they were read", {"retryable": True})
    ran, _ = _edit(home, "text += 'more\\n'", conflict)
    assert ran.status == 75
    assert "your text is kept in" in ran.err

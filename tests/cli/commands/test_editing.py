"""edit."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import Ran, memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, ScriptedRefusal

READ = {"path": "n/a.md", "content": "old\r\n", "hash": "h", "name": "a"}
WRITTEN = {"path": "n/a.md", "hash": "h2", "change": "c1", "status": "updated"}
APPEND = "open(path, 'ab').write('é\\n'.encode())"


def _edit(
    home: Home, code: str, write: Any = WRITTEN, *, variable: str = "EDITOR"
) -> tuple[Ran, ScriptedDaemon]:
    """Run edit with a Python program as the editor; ``path`` is the file's name in it."""
    script = Path(home.path) / "editor.py"
    script.write_text(f"import os, sys; path = sys.argv[-1]\n{code}\n")
    script_daemon = ScriptedDaemon(home.places.socket, {"memory.read": READ, "memory.write": write})
    with script_daemon as daemon:
        ran = memctl(home, "edit", "n/a.md", **{variable: f"'{sys.executable}' '{script}'"})  # type: ignore[arg-type]
    return ran, daemon


def _retained(home: Home) -> dict[str, bytes]:
    folder = Path(home.places.state_dir) / "kept"
    return {file.name: file.read_bytes() for file in folder.iterdir()} if folder.exists() else {}


@pytest.mark.parametrize("variable", ["EDITOR", "VISUAL"])
def test_what_was_edited_is_written_against_what_was_read(home: Home, variable: str) -> None:
    """The editor gets the file under its own name, and its text goes back with the hash read."""
    ran, daemon = _edit(home, f"assert path.endswith('/a.md'); {APPEND}", variable=variable)
    assert (ran.status, ran.out) == (0, "updated n/a.md; undo with: memctl undo c1\n")
    params = daemon.params("memory.write")
    assert params.pop("request_id")
    assert params == {
        "cwd": home.cwd,
        "path": "n/a.md",
        "content": "old\r\né\n",
        "base_hash": "h",
    }
    assert _retained(home) == {}


def test_an_unchanged_text_is_not_written(home: Home) -> None:
    """Closing the editor without a change asks for no write."""
    ran, daemon = _edit(home, "pass")
    assert (ran.status, ran.out) == (0, "unchanged n/a.md\n")
    assert daemon.methods == ["memory.read"]


def test_a_text_that_cannot_be_written_is_kept(home: Home) -> None:
    """A conflict leaves the user's text in a file that is named, each time in one of its own."""
    conflict = ScriptedRefusal(1002, "n/a.md changed since it was read", {})
    for name in ("1-a.md", "2-a.md"):
        ran, _ = _edit(home, APPEND, conflict)
        assert (ran.status, ran.out) == (1, "")
        path = f"{home.places.state_dir}/kept/{name}"
        assert f"your text is kept in {path}\n" in ran.err
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert _retained(home) == {name: "old\r\né\n".encode() for name in ("1-a.md", "2-a.md")}


def test_an_editor_that_fails_writes_nothing(home: Home) -> None:
    """A failing editor is an error; what it had changed is kept, what it had not is not."""
    ran, daemon = _edit(home, "sys.exit(3)")
    assert ran.status == 1
    assert "ended with status 3; nothing was written" in ran.err
    assert _retained(home) == {}
    ran, daemon = _edit(home, f"{APPEND}; sys.exit(3)")
    assert daemon.methods == ["memory.read"]
    assert list(_retained(home)) == ["1-a.md"]


def test_a_file_that_is_gone_cannot_be_kept(home: Home) -> None:
    """An editor that removes the file ends in a sentence."""
    ran, _ = _edit(home, "os.unlink(path)")
    assert ran.status == 1
    assert "cannot be read: No such file" in ran.err
    assert _retained(home) == {}


@pytest.mark.parametrize("editor", ["/nothing/here", "a 'b"])
def test_an_editor_must_be_there(home: Home, editor: str) -> None:
    """An editor that cannot be started is named, with what to do about it."""
    with ScriptedDaemon(home.places.socket, {"memory.read": READ}):
        ran = memctl(home, "edit", "n/a.md", VISUAL=editor)
    assert ran.status == 1
    assert f"the editor {editor} could not be started" in ran.err
    assert "set VISUAL or EDITOR" in ran.err


def test_without_a_terminal_no_editor_is_begun(home: Home) -> None:
    """Where nobody can type and no editor is named, vi is not started into a pipe."""
    with ScriptedDaemon(home.places.socket, {"memory.read": READ}):
        ran = memctl(home, "edit", "n/a.md", VISUAL="", EDITOR="")
    assert (ran.status, ran.out) == (1, "")
    assert "the editor vi needs a terminal; nothing was written" in ran.err
    assert "set VISUAL or EDITOR" in ran.err


def test_a_team_memory_is_edited_for_the_team(home: Home) -> None:
    """What lies below team/ goes back with its scope."""
    script = Path(home.path) / "editor.py"
    script.write_text(f"import sys; path = sys.argv[-1]\n{APPEND}\n")
    answers = {"memory.read": READ | {"path": "team/a.md"}, "memory.write": WRITTEN}
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        ran = memctl(home, "edit", "team/a.md", EDITOR=f"'{sys.executable}' '{script}'")
    assert (ran.status, daemon.params("memory.write")["scope"]) == (0, "team")

"""completion, help and hook."""

import json
import subprocess
import sys

import pytest

from memd import __version__
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ([], "usage: memctl [OPTION...]"),
        (["job", "list"], "usage: memctl job list"),
        (["setup"], "usage: memctl setup [--dry-run]"),
    ],
)
def test_help_is_the_commands_own(
    home: Home, words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Help before a command is the same as --help after it."""
    assert memctl(home, "help", *words).status == 0
    assert capsys.readouterr().out.startswith(usage)


@pytest.mark.parametrize("before", [[], ["--json"]])
def test_the_command_is_the_hook_file(home: Home, before: list[str]) -> None:
    """Memctl hands the event to the file that clients run, options of its own or not."""
    code = "import sys; from memd.cli.main import main; sys.exit(main())"
    with ScriptedDaemon(home.places.socket, {"hook": {"a": 1}}) as daemon:
        done = subprocess.run(
            [sys.executable, "-c", code, *before, "hook", "claude-code", "UserPromptSubmit"],
            input='{"cwd": "/p"}',
            env={**home.environ, "MEMD_HOOK_DEADLINE_MS": "10000"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"a": 1}, "")
    params = daemon.params("hook")
    assert (params["client"], params["event"]) == ("claude-code", "UserPromptSubmit")
    assert params["payload"] == {"cwd": "/p"}


def test_the_versions_are_printed_without_a_start(home: Home) -> None:
    """Memctl's own, and the daemon's where one runs."""
    assert "no memd is running" in memctl(home, "version").out
    with ScriptedDaemon(home.places.socket, {"status": {"version": "9.9"}}):
        assert memctl(home, "version", "--json").json == {"memctl": __version__, "memd": "9.9"}

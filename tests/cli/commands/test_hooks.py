"""hook as a command of memctl."""

import json
import subprocess
import sys

import pytest

from memd.testing.scripted_daemon import ScriptedDaemon
from tests.cli.home import Home


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

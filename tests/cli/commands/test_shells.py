"""completion and help."""

import pytest

from memd.cli.operation_table import SHELLS
from tests.cli.driver import memctl
from tests.cli.home import Home


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed(home: Home, shell: str) -> None:
    """The script is the answer, and with --json a member of it."""
    script = memctl(home, "completion", shell).out
    assert "memctl" in script
    assert memctl(home, "completion", shell, "--json").json == {"shell": shell, "script": script}


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ([], "usage: memctl [OPTION...]"),
        (["job", "list"], "usage: memctl job list"),
        (["setup"], "usage: memctl setup claude-code"),
    ],
)
def test_help_is_the_commands_own(
    home: Home, words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Help before a command is the same as --help after it."""
    assert memctl(home, "help", *words).status == 0
    assert capsys.readouterr().out.startswith(usage)

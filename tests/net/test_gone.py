"""What is gone names what to use instead (chapters 6.5, 6.10 and 7.1)."""

import pytest

from tests.net.kit import Home
from tests.net.wire import BIN

GONE = {
    "spend": "report",
    "usage": "report",
    "session start": "call",
    "message wait": "message read --wait",
    "version": "--version",
    "suggestions list": "review",
    "agent show a": "agent list",
    "sockname": "config",
    "discover": "call rpc.discover",
    "top": "status",
    "metrics": "status",
    "debug": "status",
    "watch": "log -f",
    "conformance": "",
    "instructions approve a": "instructions --allow",
    "restore a.md": "undo",
    "adopt a.md": "edit",
    "job retry j1": "extract",
    "agent merge": "",
    "team pull": "team sync",
    "team push": "team sync",
    "team diff a.md": "team status",
    "team members": "team log",
    "team keep a.md": "team resolve",
    "message status m1": "message log",
    "suggestions": "review",
    "dream review": "review",
    "dream accept 1": "review",
    "dream reject 1": "review",
    "message held": "review",
    "message accept m1": "review",
    "diff c1": "show",
    "purge --pattern x": "rm --purge",
}


def _names_the_replacement(home: Home, old: str, new: str) -> None:
    done = home.memctl("--no-start", *old.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert f"memctl {new}".rstrip() in done.stderr
    assert "is gone" in done.stderr


@pytest.mark.parametrize(("old", "new"), GONE.items())
def test_a_command_that_is_gone_names_its_replacement(home: Home, old: str, new: str) -> None:
    """A command that is gone is a wrong command line, and the answer says what to use."""
    _names_the_replacement(home, old, new)


def test_the_gateway_is_gone(home: Home) -> None:
    """``memd gateway`` is a wrong command line that names Keeper."""
    done = home.run(f"{BIN}/memd", "gateway")
    assert (done.returncode, "Keeper" in done.stderr) == (2, True)

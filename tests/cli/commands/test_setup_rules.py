"""memctl setup --rules: the hook that asks before a tool runs, in and out again."""

import json
from pathlib import Path

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.cli.setup.settings import rows, settings_file

PLACES = {
    "claude-code": (".claude/settings.json", "PreToolUse"),
    "codex": (".codex/hooks.json", "PreToolUse"),
    "gemini": (".gemini/settings.json", "BeforeTool"),
}
OWN = {"hooks": [{"type": "command", "command": "lint"}], "matcher": "Edit"}


@pytest.mark.parametrize("client", PLACES)
def test_tools_are_asked_about_until_that_is_taken_out(home: Home, client: str) -> None:
    """No tool's call starts a process but where --rules was given, until it is taken back."""
    name, event = PLACES[client]
    path = Path(home.path, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hooks": {event: [OWN]}}, indent=2))
    before = path.read_bytes()
    memctl(home, "setup", client)
    plain = path.read_bytes()
    assert json.loads(plain)["hooks"][event] == [OWN]
    assert memctl(home, "setup", client, "--rules").status == 0
    with_rules = path.read_bytes()
    ours, theirs = json.loads(with_rules)["hooks"][event]
    assert (theirs, "matcher" in ours) == (OWN, False)
    assert f"{client} {event})" in ours["hooks"][0]["command"]
    assert "already set up" in memctl(home, "setup", client).out
    assert "with rules" in memctl(home, "setup", client, "--status").out
    memctl(home, "setup", client, "--messages")
    assert len(json.loads(path.read_bytes())["hooks"][event]) == 2
    memctl(home, "setup", client, "--messages", "--remove")
    assert path.read_bytes() == with_rules
    assert memctl(home, "setup", client, "--rules", "--remove").status == 0
    assert json.loads(path.read_bytes()) == json.loads(plain)
    assert "with rules" not in memctl(home, "setup", client, "--status").out
    memctl(home, "setup", client, "--rules")
    memctl(home, "setup", client, "--remove")
    assert path.read_bytes() == before


def test_doctor_says_that_rules_are_asked(home: Home) -> None:
    """The row of a client that asks says so."""
    memctl(home, "setup", "claude-code", "--rules")
    (row,) = rows(home)
    assert (row["state"], row["detail"]) == ("ok", f"{settings_file(home)}, with rules")


@pytest.mark.parametrize("client", ["cursor", "opencode"])
def test_a_client_that_cannot_ask_is_refused_by_name(home: Home, client: str) -> None:
    """Where memd cannot stop a tool it says so and writes nothing."""
    ran = memctl(home, "setup", client, "--rules")
    assert (ran.status, "before a tool runs" in ran.err) == (2, True)
    assert not Path(home.path, f".{client}").exists()


def test_beside_the_plugin_the_hooks_are_set_up(home: Home) -> None:
    """Memd's plugin of Claude Code asks before no tool, so --rules writes the settings' hooks."""
    path = settings_file(home)
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"enabledPlugins": {"memd@memd-market": true}}')
    memctl(home, "setup", "claude-code", "--rules")
    assert "PreToolUse" in json.loads(path.read_bytes())["hooks"]

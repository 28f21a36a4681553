"""memctl setup --messages: what brings messages of other agents, in and out again."""

import json
from pathlib import Path

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.cli.setup.settings import rows, settings_file

PLACES = {
    "claude-code": (".claude/settings.json", "PostToolUse", "Write|Edit|MultiEdit"),
    "codex": (".codex/hooks.json", "PostToolUse", "apply_patch|Write|Edit"),
    "gemini": (".gemini/settings.json", "AfterTool", "write_file|replace"),
}


@pytest.mark.parametrize("client", PLACES)
def test_hooks_deliver_until_that_is_taken_out(home: Home, client: str) -> None:
    """They hear of every tool and say that they deliver, through a plain set-up too, until
    --messages --remove gives back what was there without.
    """  # noqa: D205 - one sentence
    name, event, matcher = PLACES[client]
    path = Path(home.path, name)
    memctl(home, "setup", client)
    plain = path.read_bytes()
    shown = memctl(home, "setup", client, "--messages", "--diff")
    assert (path.read_bytes(), shown.status) == (plain, 0)
    assert f"{event} messages)" in shown.out
    assert memctl(home, "setup", client, "--messages").status == 0
    with_messages = path.read_bytes()
    (group,) = json.loads(with_messages)["hooks"][event]
    assert "matcher" not in group
    line = group["hooks"][0]["command"].rstrip("'")
    assert line.endswith(f'{event} messages) && printf %s "$o"; exit 0')
    assert "already set up" in memctl(home, "setup", client).out
    assert path.read_bytes() == with_messages
    assert "with messages" in memctl(home, "setup", client, "--status").out
    assert memctl(home, "setup", client, "--messages", "--remove").status == 0
    (group,) = json.loads(path.read_bytes())["hooks"][event]
    assert group["matcher"] == matcher
    assert b" messages)" not in path.read_bytes()
    assert "with messages" not in memctl(home, "setup", client, "--status").out
    memctl(home, "setup", client, "--messages")
    memctl(home, "setup", client, "--remove")
    assert not path.exists() or b"memd" not in path.read_bytes()


def test_doctor_says_that_messages_arrive(home: Home) -> None:
    """The row of a client that delivers says so."""
    memctl(home, "setup", "claude-code", "--messages")
    (row,) = rows(home)
    assert (row["state"], row["detail"]) == ("ok", f"{settings_file(home)}, with messages")
    assert {"SubagentStart", "SubagentStop"} <= {
        *json.loads(settings_file(home).read_bytes())["hooks"]
    }


def test_the_plugin_of_opencode_delivers_where_that_is_wanted(home: Home) -> None:
    """Its one line is changed, stays so, and is changed back."""
    plugin = Path(home.path, ".config/opencode/plugins/memd.js")
    memctl(home, "setup", "opencode")
    plain = plugin.read_bytes()
    memctl(home, "setup", "opencode", "--messages")
    changed = plugin.read_bytes()
    assert changed == plain.replace(b"MESSAGES = false", b"MESSAGES = true")
    assert changed != plain
    memctl(home, "setup", "opencode")
    assert plugin.read_bytes() == changed
    memctl(home, "setup", "opencode", "--messages", "--remove")
    assert plugin.read_bytes() == plain


def test_a_client_without_hooks_is_refused_by_name(home: Home) -> None:
    """Where memd cannot bring anything into a turn it says so and writes nothing."""
    ran = memctl(home, "setup", "cursor", "--messages")
    assert (ran.status, "Cursor" in ran.err) == (2, True)
    assert not Path(home.path, ".cursor").exists()


def test_nothing_is_set_up_by_a_removal(home: Home) -> None:
    """--messages --remove for a client that is not connected connects nothing."""
    assert memctl(home, "setup", "claude-code", "--messages", "--remove").status == 0
    assert not settings_file(home).exists()

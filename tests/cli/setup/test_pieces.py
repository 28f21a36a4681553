"""Hooks, values and copies of files, as each stands in a client's file."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.errors import Busy, Refused
from memd.cli.commands import setup
from memd.cli.setup import files, jsonc
from memd.cli.setup.hooks import Hooks
from memd.cli.setup.pieces import Copy, JsonFile
from memd.cli.setup.plan import ClientEdit
from memd.hooks.dialects import DIALECTS
from tests.cli.driver import invocation, memctl
from tests.cli.home import Home
from tests.cli.setup.settings import row_state, settings_file
from tests.cli.setup.test_jsonc import documents

# As the versions before the hook had a place of its own wrote them.
OLD = {"type": "command", "command": "/old/python -I -S /old/memd/cli/hook.py claude-code Stop"}
OLD_EXEC = {"command": "/old/python", "args": ["-I", "/old/memd/cli/hook.py", "claude-code"]}
OTHER = {"type": "command", "command": "lint"}


def test_the_hook_is_named_by_a_place_of_its_own() -> None:
    """The command names no path of an installation or a version, quotes, and ends with 0."""
    hooks = Hooks("codex", "/a b/memd/hook.py", {"Stop": None, "SessionStart": "startup"})
    ((results,),) = (hooks.group("Stop")["hooks"],)
    assert set(results) == {"type", "command", "timeout"}
    assert results["command"].startswith("/bin/sh -c ")
    assert "/a b/memd/hook.py" in results["command"]
    assert hooks.group("SessionStart")["matcher"] == "startup"


def test_hooks_of_older_versions_make_way(home: Home) -> None:
    """A hook of an older memd, wherever it is, is replaced; others beside it stay."""
    old = {"Stop": [{"hooks": [OTHER, OLD]}, {"hooks": [OLD_EXEC]}], "Gone": [{"hooks": [OLD]}]}
    path = settings_file(home, json.dumps({"hooks": old}, indent=1).encode())
    assert row_state(home) == "warning"
    assert memctl(home, "setup", "claude-code").status == 0
    hooks = json.loads(path.read_bytes())["hooks"]
    assert "Gone" not in hooks
    assert [OTHER] in [group["hooks"] for group in hooks["Stop"]]
    assert path.read_text().count("hook.py claude-code") == path.read_text().count("/old/") == 0
    assert memctl(home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(path.read_bytes()) == {"hooks": {"Stop": [{"hooks": [OTHER]}]}}


def test_a_hook_under_another_matcher_or_twice_is_outdated(home: Home) -> None:
    """An event is set up only with the right command, once, under the right matcher."""
    memctl(home, "setup", "claude-code")
    path = settings_file(home)
    right = json.loads(path.read_bytes())
    for event, matcher in (("Stop", "x"), ("SessionStart", "startup")):
        wrong = json.loads(path.read_bytes())
        wrong["hooks"][event][0]["matcher"] = matcher
        path.write_text(json.dumps(wrong))
        assert memctl(home, "setup", "claude-code", "--status").status == 1
        memctl(home, "setup", "claude-code")
    path.write_text(
        path.read_text().replace(
            '"Stop": [', '"Stop": [' + json.dumps(right["hooks"]["Stop"][0]) + ",", 1
        )
    )
    assert memctl(home, "setup", "claude-code", "--status").status == 1
    memctl(home, "setup", "claude-code")
    assert json.loads(path.read_bytes()) == right


def test_values_of_others_under_memd_s_name_stay(home: Home) -> None:
    """A server named memd that runs something else is refused, and removing leaves it alone."""
    home_path = Path(home.path)
    foreign = {
        "gemini": (
            home_path / ".gemini/settings.json",
            '{"mcpServers": {"memd": {"command": "x"}}}',
        ),
        "codex": (home_path / ".codex/config.toml", '[mcp_servers.memd]\ncommand = "other"\n'),
    }
    for client, (path, text) in foreign.items():
        path.parent.mkdir()
        path.write_text(text)
        ran = memctl(home, "setup", client)
        assert (ran.status, "not memd's own" in ran.err) == (78, True)
        assert "foreign" in memctl(home, "setup", client, "--status").out
        memctl(home, "setup", client, "--remove")
        assert path.read_text() == text


def test_values_of_an_older_memd_make_way(home: Home) -> None:
    """Where memctl lay elsewhere before, its new place is written; doctor tells before that."""
    path = Path(home.path) / ".codex" / "config.toml"
    memctl(home, "setup", "codex")
    right = path.read_text()
    path.write_text(right.replace("command = ", 'command = "/gone/memctl" # ', 1))
    assert row_state(home) == "warning"
    assert memctl(home, "setup", "codex").status == 0
    assert path.read_text() == right


def test_prompts_get_the_time_that_a_model_needs() -> None:
    """The deadline stands in the hook of prompts alone, stays when unknown, and goes again."""
    hooks = Hooks("claude-code", "/d/memd/hook.py", {"UserPromptSubmit": None, "Stop": None})
    unknown = JsonFile("x", hooks)
    slow = JsonFile("x", hooks, wait=1_800)
    plain = unknown.with_part(b"{}")
    later = slow.with_part(plain)
    assert later.count(b"MEMD_HOOK_DEADLINE_MS=1800 ") == 1
    assert unknown.state(later) == "installed"
    assert unknown.with_part(later) == later
    assert JsonFile("x", hooks, wait=0).with_part(later) == plain
    older = later.replace(b'"timeout": 3', b'"timeout": 9')
    assert unknown.with_part(older) == later
    assert unknown.without_part(later, b"{}") == b"{}"


def test_newer_files_are_never_overwritten(home: Home) -> None:
    """A file that changed since it was read is left alone, and so is one that appeared."""
    path = settings_file(home, b"newer")
    for base, content in ((b"old", b"mine"), (None, b"mine"), (b"old", None)):
        with pytest.raises(Busy):
            files.write(str(path), content, base)
    assert path.read_bytes() == b"newer"
    assert os.listdir(path.parent) == ["settings.json"]


def test_a_disk_that_says_no_is_a_reason(home: Home) -> None:
    """Where a folder cannot be made, or a backup cannot be written, the sentence says why."""
    settings_file(home, b"{}")
    blocked = f"{settings_file(home)}/below/settings.json"
    with pytest.raises(Refused, match="directory"):
        files.write(blocked, b"x", None)
    large = Path(home.path) / "large.json"
    large.write_bytes(b" " * (files.MAX_BYTES + 1))
    with pytest.raises(Refused, match="larger"):
        files.read(str(large))


def test_a_plugin_s_files_are_copied_and_go_again(home: Home) -> None:
    """A copy of ours is replaced and removed with the folders that it left empty."""
    source = Path(home.path) / "memd.js"
    source.write_text("// memd\n")
    piece = Copy(f"{home.path}/a/b/memd.js", str(source))
    assert piece.state(None) == "absent"
    assert ClientEdit(piece, None, piece.with_part(None)).apply() is None
    there = Path(piece.path)
    assert piece.state(there.read_bytes()) == "installed"
    assert piece.state(b"// memd, older") == "outdated"
    assert piece.state(b"// mine") == "foreign"
    with pytest.raises(Refused, match="not memd's own"):
        piece.with_part(b"// mine")
    ClientEdit(piece, there.read_bytes(), piece.without_part(there.read_bytes(), None)).apply()
    assert not (Path(home.path) / "a").exists()
    source.unlink()
    with pytest.raises(Refused, match="No such file"):
        piece.with_part(None)


def test_each_hook_s_event_is_one_that_memd_knows(home: Home) -> None:
    """What is written for a client is what the daemon answers, and what the plugin has too."""
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[agents.memory]\nreviewer = "user"\n')
    hooks = {row.name: row.pieces[0] for row in setup.clients(invocation(home, "setup"))}
    for name, dialect in DIALECTS.items():
        piece = hooks[name]
        events = {event.split()[0] for event in dialect.events}
        if isinstance(piece, Copy):  # a plugin, which names the events that it hands on
            source = Path(piece.source).read_text()
            assert all(f'event: "{event}"' in source for event in events)
            continue
        assert isinstance(piece, JsonFile)
        assert piece.hooks
        assert {*piece.hooks.with_duty("messages").with_duty("rules").events} == events
    plugin = Path(setup.__file__).parents[3] / "clients/claude-code/hooks/hooks.json"
    claude = hooks["claude-code"]
    assert isinstance(claude, JsonFile)
    assert claude.hooks
    if plugin.exists():
        groups = json.loads(plugin.read_text())["hooks"]
        matchers = {event: group.get("matcher") for event, (group,) in groups.items()}
        assert {event: matchers.get(event) for event in claude.hooks.events} == claude.hooks.events


@given(text=documents(), wait=st.sampled_from([None, 1_800]), backed_up=st.booleans())
def test_any_file_is_given_back(text: str, wait: int | None, *, backed_up: bool) -> None:
    """Once is twice, out is as before; without a backup all that is not empty is as before."""
    hooks = Hooks("gemini", "/d/memd/hook.py", {"Stop": None, "Start": "x", "Other": None}, "Stop")
    values: dict[jsonc.Path, object] = {
        ("servers", "memd"): {"command": "/b/memctl", "args": ["mcp"]}
    }
    piece = JsonFile("x", hooks, values, wait)
    before = text.encode()
    into = piece.with_part(before)
    assert piece.state(before) == "absent"
    assert (piece.state(into), piece.with_part(into)) == ("installed", into)
    left = piece.without_part(into, before if backed_up else None) or b"{}"
    if backed_up:
        assert left == before
    root, old = jsonc.parse(left.decode()), jsonc.parse(text)
    assert root
    assert old
    for key in {*root.value, *old.value} - {"hooks", "servers"}:
        assert root.value[key] == old.value[key]

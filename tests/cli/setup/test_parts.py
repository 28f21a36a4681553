"""memd's parts of files: hooks and values that others wrote, or an older memd; copies."""

import json
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.errors import Busy, Refused
from memd.cli.setup import files, jsonc
from memd.cli.setup.hooks import WAIT, Hooks
from memd.cli.setup.parts import SettingsPart
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.cli.setup.settings import row_state, settings_file
from tests.cli.setup.test_jsonc import documents

# As the versions before the hook had a place of its own wrote them, and the one before the line
# began with memd's name.
OLD = {"type": "command", "command": "/old/python -I -S /old/memd/cli/hook.py claude-code Stop"}
OLD_EXEC = {"command": "/old/python", "args": ["-I", "/old/memd/cli/hook.py", "claude-code"]}
OLD_TRAP = {
    "type": "command",
    "command": "trap 'exit 0' 0; exec 2>/dev/null; h=/old/memd/hook.py; p=${h%hook.py}python; "
    '[ -x "$p" ] || p=python3; "$p" -I -S "$h" claude-code Stop; exit 0',
    "timeout": 3,
}
OTHER = {"type": "command", "command": "lint"}


def test_the_hook_is_named_by_a_place_of_its_own(home: Home) -> None:
    """The line says memd first, and names the hook's own place, quoted, in a shell of POSIX."""
    data = f"{home.path}/a b"
    memctl(home, "setup", "codex", XDG_DATA_HOME=data)
    hooks = json.loads(Path(home.path, ".codex/hooks.json").read_bytes())["hooks"]
    (item,) = hooks["Stop"][0]["hooks"]
    assert set(item) == {"type", "command", "timeout"}
    assert item["command"].startswith(": memd; ")
    line = shlex.split(item["command"].removeprefix(": memd; "))
    assert line[:3] == ["exec", "/bin/sh", "-c"]
    assert f"{data}/memd/hook.py" in shlex.split(line[3])[5]


def test_hooks_of_older_versions_make_way(home: Home) -> None:
    """A hook of an older memd, wherever it is, is replaced; others beside it stay."""
    stops = [{"hooks": [OTHER, OLD]}, {"hooks": [OLD_EXEC]}, {"hooks": [OLD_TRAP]}]
    old = {"Stop": stops, "Gone": [{"hooks": [OLD_TRAP]}]}
    path = settings_file(home, json.dumps({"hooks": old}, indent=1).encode())
    assert row_state(home) == "warning"
    assert memctl(home, "setup", "claude-code").status == 0
    hooks = json.loads(path.read_bytes())["hooks"]
    assert "Gone" not in hooks
    assert [OTHER] in [group["hooks"] for group in hooks["Stop"]]
    assert path.read_text().count("hook.py claude-code") == path.read_text().count("/old/") == 0
    assert memctl(home, "setup", "claude-code", "--remove").status == 0
    others = {"hooks": {"Stop": [{"hooks": [OTHER]}]}}
    assert json.loads(path.read_bytes()) == others
    path.write_text(json.dumps({"hooks": old}))
    assert memctl(home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(path.read_bytes()) == others


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
    part = SettingsPart("x", hooks=Hooks("claude-code", "/d/memd/hook.py", {}))
    plain = part.put(b"{}", {})
    later = part.put(plain, {WAIT: 1_800})
    assert later.count(b"MEMD_HOOK_DEADLINE_MS=1800 ") == 1
    assert part.state(later) == "installed"
    assert part.put(later, {}) == later
    assert part.put(later, {WAIT: 0}) == plain
    older = later.replace(b'"timeout": 3', b'"timeout": 9')
    assert part.put(older, {}) == later
    assert part.without(later, b"{}") == b"{}"


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


def test_a_plugin_s_file_is_copied_and_goes_again(home: Home) -> None:
    """A plugin of ours is replaced and removed with the folder; another of its name is refused."""
    plugin = Path(home.path, ".config/opencode/plugins/memd.js")
    memctl(home, "setup", "opencode")
    right = plugin.read_bytes()
    plugin.write_text("// memd, older")
    assert "outdated" in memctl(home, "setup", "opencode", "--status").out
    memctl(home, "setup", "opencode")
    assert plugin.read_bytes() == right
    memctl(home, "setup", "opencode", "--remove")
    assert not plugin.parent.exists()
    plugin.parent.mkdir(parents=True)
    plugin.write_text("// mine")
    ran = memctl(home, "setup", "opencode")
    assert (ran.status, "not memd's own" in ran.err) == (78, True)
    memctl(home, "setup", "opencode", "--remove")
    assert plugin.read_text() == "// mine"


@given(text=documents(), wait=st.sampled_from([0, 1_800]), backed_up=st.booleans())
def test_any_file_is_given_back(text: str, wait: int, *, backed_up: bool) -> None:
    """Once is twice, out is as before; without a backup all that is not empty is as before."""
    hooks = Hooks("gemini", "/d/memd/hook.py", {}, milliseconds=True)
    values: dict[jsonc.Path, object] = {
        ("servers", "memd"): {"command": "/b/memctl", "args": ["mcp"]}
    }
    part = SettingsPart("x", values, hooks)
    before = text.encode()
    into = part.put(before, {WAIT: wait})
    assert part.state(before) == "absent"
    assert (part.state(into), part.put(into, {})) == ("installed", into)
    left = part.without(into, before if backed_up else None) or b"{}"
    if backed_up:
        assert left == before
    root, old = jsonc.parse(left.decode()), jsonc.parse(text)
    assert root
    assert old
    for key in {*root.value, *old.value} - {"hooks", "servers"}:
        assert root.value[key] == old.value[key]

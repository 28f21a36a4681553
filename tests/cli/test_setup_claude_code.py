"""memd's hooks in Claude Code's settings."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.cli import setup_claude_code as setup

HOOK = "/home/you/.local/share/memd/hook.py"
OTHER = {"type": "command", "command": "lint", "timeout": 10}
# As the versions before the hook had a place of its own wrote them.
OLD = {"type": "command", "command": "/old/python -I -S /old/memd/cli/hook.py claude-code Stop"}
OLD_EXEC = {
    "type": "command",
    "command": "/old/venv/bin/python",
    "args": ["-I", "-S", "/old/venv/lib/memd/cli/hook.py", "claude-code", "Stop"],
    "timeout": 3,
}

_hook = st.sampled_from([OTHER, {"type": "http", "url": "u"}, {"args": 3}, {}])
_ours = st.sampled_from([OLD, OLD_EXEC, setup.entry("Stop", HOOK), setup.entry("X", f"/x y{HOOK}")])
_group = st.fixed_dictionaries(
    {"hooks": st.lists(_hook, max_size=2)}, optional={"matcher": st.sampled_from(["a", ""])}
)
_events = st.sampled_from([*setup.EVENTS, "PostToolUse"])
FOREIGN = st.fixed_dictionaries(
    {},
    optional={"hooks": st.dictionaries(_events, st.lists(_group, max_size=2)), "model": st.text()},
)


def test_the_hook_is_named_by_a_place_of_its_own() -> None:
    """The command names no path of an installation or a version, quotes, and ends with 0."""
    results = setup.entry("Stop", HOOK)
    assert set(results) == {"type", "command", "timeout"}
    assert f"h={HOOK};" in results["command"]
    assert results["command"].endswith("claude-code Stop; exit 0")
    assert os.path.dirname(sys.executable) not in results["command"]
    assert "h='/a b/memd/hook.py';" in setup.entry("Stop", "/a b/memd/hook.py")["command"]


@given(FOREIGN)
def test_in_and_out_leaves_what_was_there(settings: dict[str, Any]) -> None:
    """Installing adds each hook once, again changes nothing, and removing restores the rest."""
    installed = setup.install(settings, HOOK)
    assert set(setup.states(installed, HOOK).values()) == {"installed"}
    assert setup.install(installed, HOOK) == installed
    removed = setup.remove(installed)
    hooks = {event: groups for event, groups in settings.get("hooks", {}).items() if groups}
    left = {event: groups for event, groups in removed.get("hooks", {}).items() if groups}
    assert left == hooks
    assert {**removed, "hooks": 0} == {**settings, "hooks": 0}


@given(FOREIGN, _events, _ours)
def test_old_hooks_are_replaced(settings: dict[str, Any], event: str, ours: Any) -> None:
    """A hook of an older memd, wherever it is, makes way; removing leaves none of ours."""
    settings.setdefault("hooks", {}).setdefault(event, []).append({"hooks": [OTHER, ours]})
    installed = setup.install(settings, HOOK)
    assert set(setup.states(installed, HOOK).values()) == {"installed"}
    text = json.dumps(setup.remove(installed))
    assert "hook.py" not in text
    assert '"lint"' in text


def test_states_tell_what_is_missing() -> None:
    """An event is installed only with the right command, once, under the right matcher."""
    right = setup.entry("Stop", HOOK)
    start = setup.entry("SessionStart", HOOK)
    settings = {
        "hooks": {
            "Stop": [{"hooks": [right, right]}],
            "SessionStart": [{"matcher": "startup", "hooks": [start]}],
            "SessionEnd": [{"hooks": [OTHER, "text"]}, {"matcher": "x"}],
        }
    }
    assert setup.states(settings, HOOK) == {
        "SessionStart": "outdated",
        "UserPromptSubmit": "absent",
        "Stop": "outdated",
        "PreCompact": "absent",
        "SessionEnd": "absent",
    }


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"\xff{}",
        b'{"a":1,"a":2}',
        b'{"a":1e999}',
        b'{"hooks":[]}',
        b'{"hooks":{"Stop":{}}}',
        b'{"hooks":{"Stop":[1]}}',
        b'{"hooks":{"Stop":[{"hooks":{}}]}}',
        b"[" * 100_000,
    ],
)
def test_what_cannot_be_kept_is_refused(content: bytes) -> None:
    """Broken JSON, a key twice and hooks of another shape are errors that name the file."""
    with pytest.raises(setup.SettingsUnreadableError, match=r"settings\.json"):
        setup.parse(content, "settings.json")


@pytest.mark.parametrize(
    "content",
    [
        b'{\n  "a": 1,\n  "b": [\n    "\xc3\xa9"\n  ]\n}\n',
        b'{\n    "a": 1\n}',
        b'{\n\t"a": {\n\t\t"b": true\n\t}\n}\n',
        b'{\r\n  "a": 1\r\n}\r\n',
        b'\xef\xbb\xbf{\n  "a": 1\n}\n',
        b'{"a": 1, "b": [1, 2]}\n',
        b'{"a":1,"b":[1,2.5]}',
        b'{\n  "a": "\\u00e9 \\ud800"\n}\n',
        b"{}\n",
    ],
)
def test_the_layout_stays(content: bytes) -> None:
    """Indentation, line ends, byte order mark, escapes and the last newline are the file's own."""
    assert setup.dump(setup.parse(content, "x"), content) == content


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """Mode and link stay, the directory is made, and nothing else is left behind."""
    path = tmp_path / "new" / "settings.json"
    setup.write(str(path), b"one", None)
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o600
    target = tmp_path / "dotfiles.json"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to("dotfiles.json")
    setup.write(str(link), b"new", b"old")
    assert link.is_symlink()
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", 0o640)
    assert sorted(os.listdir(tmp_path)) == ["dotfiles.json", "link.json", "new"]


def test_newer_settings_are_never_overwritten(tmp_path: Path) -> None:
    """A file that changed since it was read is left alone, and so is one that appeared."""
    path = tmp_path / "settings.json"
    path.write_bytes(b"newer")
    for base in (b"old", None):
        with pytest.raises(setup.SettingsChangedError):
            setup.write(str(path), b"mine", base)
    assert path.read_bytes() == b"newer"
    assert os.listdir(tmp_path) == ["settings.json"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file is none; a directory in its place is an error."""
    assert setup.read(f"{tmp_path}/none") is None
    with pytest.raises(setup.SettingsUnreadableError, match="directory"):
        setup.read(str(tmp_path))

"""setup claude-code."""

import json
import os
from pathlib import Path

import pytest

from memd.cli import setup_claude_code
from memd.cli.commands import setup
from memd.client import hook_file
from memd.testing.scripted_daemon import ScriptedDaemon
from tests.cli.driver import invocation, memctl
from tests.cli.home import Home

BEFORE = b'{\n    "model": "\xc3\xa9",\n    "hooks": {\n        "Stop": []\n    }\n}\n'


def _settings(home: Home, content: bytes | None = None) -> Path:
    path = Path(home.path) / ".claude" / "settings.json"
    if content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return path


def test_hooks_go_in_and_out_again(home: Home) -> None:
    """Set-up keeps a backup, a second run does nothing, and removing leaves the rest."""
    path = _settings(home, BEFORE)
    path.chmod(0o640)
    ran = memctl(home, "setup", "claude-code")
    backup = Path(f"{path}.memd-backup-1")
    assert (ran.status, ran.out) == (0, f"wrote memd's hooks into {path}\n")
    assert str(backup) in ran.err
    assert backup.read_bytes() == BEFORE
    assert backup.stat().st_mode & 0o777 == path.stat().st_mode & 0o777 == 0o640
    settings = json.loads(path.read_bytes())
    hook = hook_file.hook_path(home.places)
    assert settings["hooks"]["Stop"][0]["hooks"] == [setup_claude_code.entry("Stop", hook)]
    assert hook_file.is_current(home.places)
    written = path.read_bytes()
    assert written.startswith(b'{\n    "model": "\xc3\xa9",\n')
    again = memctl(home, "setup", "claude-code")
    assert (again.status, again.out, again.err) == (0, f"already set up: {path}\n", "")
    assert path.read_bytes() == written
    ran = memctl(home, "setup", "claude-code", "--remove", "--json")
    assert ran.json == {"settings": str(path), "changed": True, "backup": f"{path}.memd-backup-2"}
    assert json.loads(path.read_bytes()) == {"model": "é"}
    assert not os.path.exists(home.places.data_dir)
    ran = memctl(home, "setup", "claude-code", "--remove")
    assert ran.out == f"none of memd's hooks is in {path}\n"


@pytest.mark.parametrize(
    ("config", "suggested"),
    [("", True), ("[recall]\n", True), ("[model]\nenabled = false\n", False), ("[", True)],
)
def test_a_program_that_is_here_is_suggested(home: Home, config: str, *, suggested: bool) -> None:
    """Set-up says that it could learn on the person's own plan, where no model is named."""
    program = Path(home.path) / "bin" / "codex"
    program.parent.mkdir()
    program.touch(mode=0o755)
    settings = Path(home.places.config)
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(config)
    ran = memctl(home, "setup", "claude-code", PATH=str(program.parent))
    assert ('preset = "codex"' in ran.err and "your own plan" in ran.err) is suggested
    assert settings.read_text() == config


def test_a_dry_run_shows_the_change(home: Home) -> None:
    """The diff is printed and nothing is written, for both directions and for programs."""
    path = _settings(home, b'{"a": 1}')
    ran = memctl(home, "setup", "claude-code", "--dry-run")
    assert ran.out.startswith(f'--- {path}\n+++ {path} (with memd)\n@@ -1 +1 @@\n-{{"a": 1}}\n+{{')
    assert path.read_bytes() == b'{"a": 1}'
    ran = memctl(home, "setup", "claude-code", "--dry-run", "--json")
    assert ran.json["changed"] is True
    assert ran.json["diff"].startswith("---")
    new = memctl(home, "setup", "claude-code", "--dry-run", "--settings", f"{home.path}/no.json")
    assert new.out.startswith("--- ")
    assert os.listdir(path.parent) == ["settings.json"]


def test_hooks_that_are_switched_off_are_noticed(home: Home) -> None:
    """Installed hooks that the client never runs are no success."""
    memctl(home, "setup", "claude-code")
    path = _settings(home)
    path.write_text(json.dumps({**json.loads(path.read_text()), "disableAllHooks": True}))
    ran = memctl(home, "setup", "claude-code", "--status")
    assert ran.status == 1
    assert "disableAllHooks" in ran.err
    assert setup.check(invocation(home, "doctor"))["state"] == "warning"


def test_settings_that_cannot_be_kept_stay_untouched(home: Home) -> None:
    """Invalid JSON is an error of the configuration and nothing is written."""
    path = _settings(home, b"{nonsense")
    ran = memctl(home, "setup", "claude-code")
    assert (ran.status, ran.out) == (78, "")
    assert str(path) in ran.err
    assert path.read_bytes() == b"{nonsense"
    assert os.listdir(path.parent) == ["settings.json"]


def test_a_hook_file_that_is_lost_is_brought_back(home: Home) -> None:
    """Without its file the set-up is not whole; setting up again mends it and leaves the rest."""
    memctl(home, "setup", "claude-code")
    before = _settings(home).read_bytes()
    os.unlink(hook_file.hook_path(home.places))
    ran = memctl(home, "setup", "claude-code", "--status", "--json")
    assert (ran.status, ran.json["hook"]) == (1, False)
    assert setup.check(invocation(home, "doctor"))["state"] == "warning"
    ran = memctl(home, "setup", "claude-code", "--json")
    assert (ran.status, ran.json["changed"], ran.json["backup"]) == (0, True, None)
    assert hook_file.is_current(home.places)
    assert _settings(home).read_bytes() == before


def test_the_doctor_looks_at_the_hooks(home: Home) -> None:
    """No hooks is no fault, old ones are worth a remedy, and broken settings are a failure."""

    def state() -> str:
        return setup.check(invocation(home, "doctor"))["state"]

    assert state() == "off"
    memctl(home, "setup", "claude-code")
    assert state() == "ok"
    path = _settings(home)
    path.write_bytes(path.read_bytes().replace(b'"timeout": 3', b'"timeout": 4', 1))
    assert state() == "warning"
    path.write_bytes(b"[]")
    assert state() == "failed"


def test_prompts_get_the_time_that_a_model_needs() -> None:
    """The deadline stands in the hook of prompts alone, stays when unknown, and goes again."""
    plain = setup_claude_code.install({}, "/d/memd/hook.py")
    slow = setup_claude_code.install(plain, "/d/memd/hook.py", 1_800)
    assert setup_claude_code.deadline(slow) == 1_800
    assert str(slow).count("MEMD_HOOK_DEADLINE_MS=1800 ") == 1
    assert set(setup_claude_code.states(slow, "/d/memd/hook.py").values()) == {"installed"}
    assert setup_claude_code.install(slow, "/d/memd/hook.py") == slow
    assert setup_claude_code.install(slow, "/d/memd/hook.py", 0) == plain
    assert setup_claude_code.remove(slow) == {}


@pytest.mark.parametrize(
    ("probe", "wait", "words"),
    [
        ((0.9, 1_650, ""), 1_650, "the model chose in 0.9 s: prompts wait 1650 ms at most"),
        ((None, 0, "no key"), 0, "prompts get their memories without a model: no key"),
    ],
)
def test_set_up_measures_the_model(
    home: Home, probe: tuple[float | None, int, str], wait: int, words: str
) -> None:
    """Where a model is named, one request tells how long a prompt has to wait for it."""
    settings = Path(home.places.config)
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[model]\n")
    ran = memctl(home, "setup", "claude-code")
    assert "the model was not measured" in ran.err
    answer = dict(zip(("seconds", "deadline_ms", "problem"), probe, strict=True))
    with ScriptedDaemon(home.places.socket, {"recall.probe": answer}):
        ran = memctl(home, "setup", "claude-code")
        assert memctl(home, "setup", "claude-code").out.startswith("already set up")
    assert words in ran.err
    assert setup_claude_code.deadline(json.loads(_settings(home).read_bytes())) == wait


def test_a_file_of_our_own_goes_with_the_hooks(home: Home) -> None:
    """Where there were no settings there are none after removing, and no backup of nothing."""
    path = _settings(home)
    assert memctl(home, "setup", "claude-code").status == 0
    assert path.exists()
    assert memctl(home, "setup", "claude-code", "--remove").status == 0
    assert os.listdir(path.parent) == []

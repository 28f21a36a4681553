"""setup: what a person sees, and what is done."""

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.cli.commands import setup
from memd.cli.setup.hooks import Hooks
from memd.client import hook_file
from tests.cli.driver import Stream, invocation, memctl, surroundings
from tests.cli.home import Home
from tests.cli.setup.settings import row_state, settings_file
from tests.support.scripted_daemon import ScriptedDaemon

BEFORE = b'{\n    "model": "\xc3\xa9",\n    "hooks": {\n        "Stop": []\n    }\n}\n'


def test_hooks_go_in_and_out_again(home: Home) -> None:
    """Set-up keeps one private backup, a second run does nothing, and removing leaves none."""
    path = settings_file(home, BEFORE)
    path.chmod(0o640)
    ran = memctl(home, "setup", "claude-code")
    backup = Path(f"{path}.memd-backup")
    assert (ran.status, ran.out) == (0, f"Claude Code: wrote {path}\n")
    assert str(backup) in ran.err
    assert backup.read_bytes() == BEFORE
    assert (backup.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o600, 0o640)
    settings = json.loads(path.read_bytes())
    hook = hook_file.hook_path(home.places)
    assert settings["hooks"]["Stop"] == [Hooks("claude-code", hook, {"Stop": None}).group("Stop")]
    assert hook_file.is_current(home.places)
    written = path.read_bytes()
    assert set(BEFORE.splitlines()) - set(written.splitlines()) == {b'        "Stop": []'}
    again = memctl(home, "setup", "claude-code")
    assert (again.status, again.out, again.err) == (0, "Claude Code: already set up\n", "")
    assert path.read_bytes() == written
    (report,) = memctl(home, "setup", "claude-code", "--remove", "--json").json["clients"]
    assert (report["changed"], report["files"][0]["backup"]) == (True, None)
    assert path.read_bytes() == BEFORE
    assert os.listdir(path.parent) == [path.name]
    assert not os.path.exists(home.places.data_dir)
    ran = memctl(home, "setup", "claude-code", "--remove")
    assert ran.out == "Claude Code: nothing of memd is there\n"


@pytest.mark.parametrize(
    ("config", "matcher"),
    [
        ("[context]\nhook_spill = true\n", "Write|Edit|MultiEdit|Grep|WebFetch|mcp__.*"),
        ("[context]\nhook_spill = 1\n", "Write|Edit|MultiEdit"),
        ("context = true\n", "Write|Edit|MultiEdit"),
        ("[context", "Write|Edit|MultiEdit"),
    ],
)
def test_results_are_heard_of_where_the_settings_say_so(
    home: Home, config: str, matcher: str
) -> None:
    """With context.hook_spill more tools have their hooks run; until then set-up is outdated."""
    memctl(home, "setup", "claude-code")
    path = Path(home.places.config)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config)
    assert memctl(home, "setup", "claude-code", "--status").status == int("mcp" in matcher)
    memctl(home, "setup", "claude-code")
    (group,) = json.loads(settings_file(home).read_bytes())["hooks"]["PostToolUse"]
    assert group["matcher"] == matcher
    assert memctl(home, "setup", "claude-code", "--status").status == 0


def test_folders_that_are_moved_are_honoured(home: Home) -> None:
    """Each client's own variables say where its files are; relative ones count for nothing."""
    run = invocation(
        home,
        "setup",
        CLAUDE_CONFIG_DIR="/x/claude/",
        CODEX_HOME="/x/codex",
        GEMINI_CLI_HOME="/x/gemini",
        XDG_CONFIG_HOME="/x/config",
        XDG_DATA_HOME="relative",
        COPILOT_HOME="/x/copilot",
    )
    rows = setup.clients(run)
    paths = {row.name: row.pieces[-1].path for row in rows if row.pieces}
    assert paths["claude-code"] == "/x/claude/settings.json"
    assert paths["codex"] == "/x/codex/config.toml"
    assert paths["gemini"] == "/x/gemini/.gemini/settings.json"
    assert paths["opencode"] == "/x/config/opencode/opencode.json"
    assert paths["vscode"] == "/x/config/Code/User/mcp.json"
    assert paths["goose"] == "/x/config/goose/config.yaml"
    assert paths["copilot"] == "/x/copilot/mcp-config.json"


def test_the_file_with_comments_of_opencode_is_itssettings_file(home: Home) -> None:
    """Where only opencode.jsonc is there, that is what is edited."""
    path = Path(home.path) / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text("{\n  // mine\n}\n")
    assert memctl(home, "setup", "opencode").status == 0
    assert "memctl" in path.read_text()


def test_without_a_name_clients_are_only_listed(home: Home) -> None:
    """Nobody is there to say yes, so nothing is written; with --yes each that is here is."""
    for folder in (".claude", ".gemini"):
        (Path(home.path) / folder).mkdir()
    ran = memctl(home, "setup", PATH="/nothing")
    assert ran.out.count("not set up") == 2
    assert "memctl setup --yes" in ran.err
    assert not settings_file(home).exists()
    reports = memctl(home, "setup", "--json", PATH="/nothing").json["clients"]
    assert [(r["client"], r["changed"]) for r in reports] == [
        ("claude-code", False),
        ("gemini", False),
    ]
    assert "hook.py" in reports[0]["files"][0]["diff"]
    settings_file(home, b"{nonsense")
    ran = memctl(home, "setup", "--yes", PATH="/nothing")
    assert ran.status == 78
    assert "settings.json is left as it is" in ran.out
    assert memctl(home, "setup", "gemini", "--status", PATH="/nothing").status == 0
    ran = memctl(home, "setup", "--remove", PATH="/nothing")
    assert "Gemini CLI: took memd out of" in ran.out
    assert list((Path(home.path) / ".gemini").iterdir()) == []


def test_a_person_is_asked_for_each_client(home: Home) -> None:
    """On a terminal the change is shown and only a yes writes it."""
    for folder in (".claude", ".gemini"):
        (Path(home.path) / folder).mkdir()
    around = surroundings(home, terminal=True, PATH="/nothing")
    around = replace(around, stdin=Stream("n\ny\n", terminal=True))
    run = invocation(home, "setup")
    run.surroundings = around
    run.screen = type(run)(run.options, around).screen
    assert setup.setup(run) == 0
    assert isinstance(around.stderr, Stream)
    assert around.stderr.getvalue().count("? [y/N] ") == 2
    assert not settings_file(home).exists()
    assert (Path(home.path) / ".gemini/settings.json").exists()


def test_nothing_here_is_said(home: Home) -> None:
    """Where no client is, the ones that could be set up are named."""
    ran = memctl(home, "setup", PATH="/nothing")
    assert (ran.status, ran.out) == (0, "")
    assert "claude-code, codex" in ran.err
    assert memctl(home, "setup", "--remove", PATH="/nothing").err == "no client is set up\n"


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
    path = settings_file(home, b'{"a": 1}')
    ran = memctl(home, "setup", "claude-code", "--dry-run")
    assert ran.out.startswith(f'--- {path}\n+++ {path} (changed)\n@@ -1 +1 @@\n-{{"a": 1}}\n+{{')
    assert path.read_bytes() == b'{"a": 1}'
    (report,) = memctl(home, "setup", "claude-code", "--dry-run", "--json").json["clients"]
    assert report["changed"] is True
    assert report["files"][0]["diff"].startswith("---")
    new = memctl(home, "setup", "claude-code", "--dry-run", "--settings", f"{home.path}/no.json")
    assert new.out.startswith("--- ")
    assert os.listdir(path.parent) == ["settings.json"]
    assert memctl(home, "setup", "codex", "--settings", f"{home.path}/no.json").status == 2


def test_a_hook_file_that_is_lost_is_brought_back(home: Home) -> None:
    """Without its file the set-up is not whole; setting up again mends it and leaves the rest."""
    memctl(home, "setup", "claude-code")
    before = settings_file(home).read_bytes()
    os.unlink(hook_file.hook_path(home.places))
    assert memctl(home, "setup", "claude-code", "--status").status == 1
    assert row_state(home) == "warning"
    (report,) = memctl(home, "setup", "claude-code", "--json").json["clients"]
    assert (report["changed"], report["files"]) == (True, [])
    assert hook_file.is_current(home.places)
    assert settings_file(home).read_bytes() == before


def test_the_hook_stays_while_a_client_runs_it(home: Home) -> None:
    """Only the last client whose hooks go takes the hook file along, another file of it too."""
    memctl(home, "setup", "claude-code")
    memctl(home, "setup", "claude-code", "--settings", f"{home.path}/other.json")
    memctl(home, "setup", "claude-code", "--settings", f"{home.path}/other.json", "--remove")
    assert hook_file.is_current(home.places)
    memctl(home, "setup", "gemini")
    memctl(home, "setup", "claude-code", "--remove")
    assert hook_file.is_current(home.places)
    memctl(home, "setup", "gemini", "--remove")
    assert not os.path.exists(home.places.data_dir)


@pytest.mark.parametrize(
    ("chosen", "wait", "words"),
    [
        ({"strategy": "model", "note": None}, 500, "prompts wait 500 ms at most"),
        ({"strategy": "local", "note": None}, 2500, "no memory here to measure the model with"),
        ({"strategy": "local", "note": "no key"}, 0, "their memories without a model: no key"),
    ],
)
def test_set_up_measures_the_model(
    home: Home, chosen: dict[str, str | None], wait: int, words: str
) -> None:
    """Where a model is named, one prefetch tells how long a prompt has to wait for it."""
    settings = Path(home.places.config)
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[model]\n")
    ran = memctl(home, "setup", "claude-code")
    assert "the model was not measured" in ran.err
    with ScriptedDaemon(home.places.socket, {"prefetch": chosen, "status": {"version": "1.2.3"}}):
        ran = memctl(home, "setup", "claude-code")
        assert memctl(home, "setup", "claude-code").out.endswith("already set up\n")
    assert words in ran.err
    assert (f"MEMD_HOOK_DEADLINE_MS={wait} " in settings_file(home).read_text()) is bool(wait)


def test_the_chain_is_looked_at_in_the_end(home: Home) -> None:
    """After a set-up it says whether memd answers, or what helps."""
    with ScriptedDaemon(home.places.socket, {"status": {"version": "1.2.3"}}):
        ran = memctl(home, "setup", "claude-code")
    assert f"memd 1.2.3 answers at {home.places.socket}" in ran.err
    assert "no memd runs yet" in memctl(home, "setup", "zed").err
    with ScriptedDaemon(home.places.socket, {}):
        assert "→ memctl doctor" in memctl(home, "setup", "gemini").err

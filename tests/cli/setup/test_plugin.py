"""The plugins of Claude Code and OpenCode, beside what set-up writes."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from memd.base.client_events import EVENTS
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.cli.setup.settings import settings_file
from tests.house.source import ROOT

PLUGIN = ROOT / "clients" / "claude-code"


def _run(event: str, environ: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [str(PLUGIN / "bin" / "memd-hook"), event],
        env=dict(environ),
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_it_hears_the_same_events(home: Home) -> None:
    """The plugin's hooks have the events and matchers of the settings, each with its own name."""
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[agents.memory]\nreviewer = "user"\n')  # a plugin cannot know of none
    memctl(home, "setup", "claude-code")
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    written = json.loads(settings_file(home).read_bytes())["hooks"]
    matchers = [
        {event: group.get("matcher") for event, (group,) in each.items()}
        for each in (hooks, written)
    ]
    assert matchers[0] == matchers[1]
    named = {event: hook["args"] for event, (group,) in hooks.items() for hook in group["hooks"]}
    assert named == {event: [event] for event in hooks}


def test_opencode_hands_on_the_events_that_memd_knows() -> None:
    """The plugin of OpenCode names each event that the daemon answers."""
    source = (ROOT / "clients/opencode/memd.js").read_text()
    assert all(f'event: "{event}"' in source for event in EVENTS["opencode"])


def test_its_hook_runs_where_the_settings_do_not(home: Home) -> None:
    """It runs the hook's file, is silent beside settings that do so, and never fails."""
    environ = dict(home.environ) | {"PATH": "/usr/bin:/bin"}
    assert _run("Stop", environ) == (0, "")
    memctl(home, "setup", "claude-code")
    python = Path(home.places.data_dir) / "python"
    python.unlink()
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o700)
    assert _run("Stop", environ) == (0, "")
    settings_file(home).unlink()
    hook = f"{home.places.data_dir}/hook.py"
    assert _run("Stop", environ) == (0, f"-I -S {hook} claude-code Stop")
    python.write_text('#!/bin/sh\necho "$@"\nexit 2\n')
    assert _run("Stop", environ) == (0, "")

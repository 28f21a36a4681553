"""What doctor says of clients."""

import os
from pathlib import Path

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.cli.setup.settings import row_state, rows, settings_file


def test_the_doctor_looks_at_the_hooks(home: Home) -> None:
    """No hooks is no fault, old ones are worth a remedy, and broken settings are a failure."""
    (row,) = rows(home)
    assert (row["name"], row["state"]) == ("clients", "off")
    settings_file(home, b"{}")
    assert row_state(home) == "off"
    memctl(home, "setup", "claude-code")
    assert row_state(home) == "ok"
    path = settings_file(home)
    path.write_bytes(path.read_bytes().replace(b'"timeout": 3', b'"timeout": 4', 1))
    assert row_state(home) == "warning"
    path.write_bytes(b"[]")
    assert row_state(home) == "failed"


def test_the_doctor_names_what_keeps_hooks_from_running(home: Home) -> None:
    """A lost interpreter, a switch in any settings and a second memory are each named."""
    memctl(home, "setup", "claude-code")
    path = settings_file(home)
    for name in (str(path), f"{home.cwd}/.claude/settings.local.json"):
        Path(name).parent.mkdir(exist_ok=True)
        before = Path(name).read_text() if Path(name).exists() else "{}"
        Path(name).write_text(
            before.replace("{", '{"disableAllHooks": true, ', 1).replace(", }", "}")
        )
        (row,) = rows(home)
        assert (row["state"], name in row["detail"]) == ("warning", True)
        assert "disableAllHooks" in row["remedy"]
        assert memctl(home, "setup", "claude-code", "--status").status == 1
        Path(name).write_text(before)
    plugins = '{"enabledPlugins": {"claude-mem@x": true, "memd@y": true, "off-memory@z": false}, '
    path.write_text(path.read_text().replace("{", plugins, 1))
    details = [row["detail"] for row in rows(home)]
    assert details == [
        "memd's plugin memd@y is enabled, and its settings have the hooks too",
        "claude-mem@x remembers here as well",
    ]
    link = f"{home.places.data_dir}/interpreter"
    os.unlink(link)
    os.symlink("/gone/python", link)
    assert "the Python of the hook is gone: /gone/python" in [row["detail"] for row in rows(home)]


def test_a_plugin_is_enough(home: Home) -> None:
    """Where memd's plugin is enabled nothing more has to be set up."""
    settings_file(home, b'{"enabledPlugins": {"memd@memd": true}}')
    (row,) = rows(home)
    assert (row["state"], row["detail"]) == ("ok", "memd's plugin memd@memd is enabled")
    before = settings_file(home).read_bytes()
    assert memctl(home, "setup", "claude-code").out.endswith("enabled, nothing else is needed\n")
    assert settings_file(home).read_bytes() == before


def test_switches_of_other_clients_are_seen(home: Home) -> None:
    """Hooks that Codex or Gemini CLI are told not to run are worth a warning."""
    codex, gemini = Path(home.path) / ".codex", Path(home.path) / ".gemini"
    codex.mkdir()
    gemini.mkdir()
    (codex / "config.toml").write_text("[features]\nhooks = false\n")
    (gemini / "settings.json").write_text('{"hooksConfig": {"enabled": false}}')
    memctl(home, "setup", "--yes", PATH="/nothing")
    assert {row["name"]: row["remedy"] for row in rows(home)} == {
        "codex": "see features.hooks there",
        "gemini": "see hooksConfig.enabled there",
    }

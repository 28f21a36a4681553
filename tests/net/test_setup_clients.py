"""What setup writes into each client's files, what it leaves alone and what it refuses."""

import json
import os
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import Home

PROGRAMS = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
}
SETTINGS = {"claude-code": ".claude/settings.json", "gemini": ".gemini/settings.json"}


def _setup(home: Home, *arguments: str, **options: Any) -> str:
    """Run setup without a daemon; return what it printed."""
    done = home.memctl("--no-start", "setup", *arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _json(home: Home, name: str) -> Any:
    return json.loads((home.path / "h" / name).read_text())


def _commands(hooks: Any) -> dict[str, list[str]]:
    """Return the command lines of each event."""
    return {
        event: [hook["command"] for row in rows for hook in row["hooks"]]
        for event, rows in hooks.items()
    }


def _some(names: Iterable[str], *quick: str) -> list[Any]:
    """Return parameters of a test, of which only some are quick."""
    rest = [pytest.param(name, marks=pytest.mark.full) for name in names if name not in quick]
    return [*quick, *rest]


EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostToolUse", "SessionEnd"}


def test_claude_code_gets_one_line_an_event(own: Home) -> None:
    """Each event has one command, for every way in which a session starts."""
    _setup(own, "claude-code")
    hooks = _json(own, ".claude/settings.json")["hooks"]
    assert set(hooks) == EVENTS
    assert all(len(lines) == 1 for lines in _commands(hooks).values())
    matcher = hooks["SessionStart"][0]["matcher"].split("|")
    assert {"startup", "resume", "clear", "compact"} <= set(matcher)
    assert all(event in lines[0] for event, lines in _commands(hooks).items())


@pytest.mark.full
def test_messages_and_rules_are_asked_for(own: Home) -> None:
    """Events of sub-agents come with --messages, and the one before a tool with --rules."""
    _setup(own, "claude-code", "--messages")
    with_messages = set(_json(own, ".claude/settings.json")["hooks"])
    assert with_messages >= EVENTS | {"SubagentStart", "SubagentStop"}
    assert "PreToolUse" not in with_messages
    _setup(own, "claude-code", "--rules")
    assert "PreToolUse" in _json(own, ".claude/settings.json")["hooks"]


def test_claude_code_gets_the_server(own: Home) -> None:
    """The MCP server is registered at user scope."""
    _setup(own, "claude-code")
    assert (own.path / "h/.claude.json").exists()
    server = _json(own, ".claude.json")["mcpServers"]["memd"]
    assert server["args"] == ["mcp"]


def test_codex_gets_hooks_and_the_server(own: Home) -> None:
    """Hooks and mcp_servers.memd are written, and that Codex asks for trust is said."""
    file = own.path / "h/.codex/config.toml"
    file.parent.mkdir()
    file.write_text('# mine\nmodel = "o9"\n\n[mcp_servers.other]\ncommand = "x"  # keep\n')
    said = _setup(own, "codex")
    written = file.read_text()
    assert written.startswith(
        '# mine\nmodel = "o9"\n\n[mcp_servers.other]\ncommand = "x"  # keep\n'
    )
    servers = tomllib.loads(written)["mcp_servers"]
    assert set(servers) == {"memd", "other"}
    assert "UserPromptSubmit" in (own.path / "h/.codex/hooks.json").read_text()
    assert "trust" in said


@pytest.mark.full
def test_gemini_gets_hooks_and_the_server(own: Home) -> None:
    """Hooks of Gemini's events and the server are in its settings."""
    _setup(own, "gemini")
    settings = _json(own, ".gemini/settings.json")
    events = {"SessionStart", "BeforeAgent", "AfterAgent", "AfterTool", "SessionEnd"}
    assert set(settings["hooks"]) >= events
    assert "memd" in settings["mcpServers"]


@pytest.mark.full
def test_opencode_gets_plugin_and_server(own: Home) -> None:
    """The plugin's file is there, and the server in the configuration with its comments."""
    file = own.path / "h/.config/opencode/opencode.jsonc"
    file.parent.mkdir(parents=True)
    file.write_text('{\n  // mine\n  "theme": "dark",\n}\n')
    _setup(own, "opencode")
    assert "// mine" in file.read_text()
    assert '"memd"' in file.read_text()
    assert list(file.parent.glob("plugin*/memd.js"))


@pytest.mark.full
@pytest.mark.parametrize("client", ["cursor", "zed"])
def test_other_clients_get_a_snippet(own: Home, client: str) -> None:
    """For a client that is not set up the snippet and its file are printed, and none is written."""
    for option in ("--yes", "--status", "--dry-run"):
        done = own.memctl("--no-start", "setup", client, option)
        assert (done.returncode, "mcp" in done.stdout) == (0, True)
    files = [path for path in (own.path / "h").rglob("*.json") if path.is_file()]
    assert files == []


def test_only_programs_that_are_there_are_offered(own: Home) -> None:
    """Without a client's name setup speaks of the programs on PATH or with files, and no others."""
    folder = own.path / "bin"
    folder.mkdir()
    (folder / "gemini").write_text("#!/bin/sh\n")
    (folder / "gemini").chmod(0o755)
    environ = {"PATH": f"{folder}:{own.environ['PATH']}"}
    said = _setup(own, environ=environ)
    assert "Gemini" in said
    assert "Codex" not in said


def test_where_no_program_is_found_it_says_so(own: Home) -> None:
    """With none of the clients on PATH setup names the programs that it looked for."""
    said = _setup(own)
    assert "was found on PATH" in said
    assert all(program in said for program in PROGRAMS.values())


MOVED = {
    "CLAUDE_CONFIG_DIR": ("claude-code", "settings.json"),
    "CODEX_HOME": ("codex", "config.toml"),
    "GEMINI_CLI_HOME": ("gemini", ".gemini/settings.json"),
    "XDG_CONFIG_HOME": ("opencode", "opencode/opencode.json"),
}


@pytest.mark.parametrize("variable", _some(MOVED, "CLAUDE_CONFIG_DIR", "CODEX_HOME"))
def test_a_variable_moves_the_files(own: Home, variable: str) -> None:
    """The client's own variable says where its files are, and nothing is written elsewhere."""
    client, name = MOVED[variable]
    folder = own.path / "moved"
    folder.mkdir()
    _setup(own, client, environ={variable: str(folder)})
    assert "memd" in (folder / name).read_text()
    assert not (own.path / "h" / f".{client.removesuffix('-code')}").exists()
    assert not (own.path / "h/.config").exists()


BROKEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "broken": ("claude-code", lambda path: path.write_text('{"hooks": [')),
    "no object": ("claude-code", lambda path: path.write_text("[1, 2]\n")),
    "hooks of another shape": ("claude-code", lambda path: path.write_text('{"hooks": 7}\n')),
    "no UTF-8": ("claude-code", lambda path: path.write_bytes(b'{"a": "\xff\xfe"}\n')),
    "a key twice": ("claude-code", lambda path: path.write_text('{"hooks": {}, "hooks": {}}\n')),
    "a folder": ("claude-code", lambda path: path.mkdir()),
    "a pipe": ("claude-code", os.mkfifo),
    "a foreign memd": (
        "gemini",
        lambda path: path.write_text('{"mcpServers": {"memd": {"command": "other"}}}\n'),
    ),
}


def _content(path: Path) -> object:
    return path.read_bytes() if path.is_file() else path.lstat().st_mode


@pytest.mark.parametrize("name", _some(BROKEN, "broken", "a key twice", "a foreign memd"))
def test_a_file_that_cannot_be_kept_is_refused(own: Home, name: str) -> None:
    """Such a file is untouched, the reason names it, and no other file is left behind."""
    client, make = BROKEN[name]
    path = own.path / "h" / SETTINGS[client]
    path.parent.mkdir()
    make(path)
    before = _content(path)
    done = own.memctl("--no-start", "setup", client)
    assert done.returncode != 0
    assert path.name in done.stderr
    assert "raceback" not in done.stderr
    assert _content(path) == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_of_another_user_is_refused(own: Home) -> None:
    """A settings file that belongs to somebody else is untouched, whoever may write it."""
    path = own.path / "h/.claude/settings.json"
    path.parent.mkdir()
    path.write_text("{}\n")
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 65534, 65534)
    assert own.memctl("--no-start", "setup", "claude-code").returncode != 0
    assert path.read_text() == "{}\n"


def test_a_link_is_followed_to_the_persons_file(own: Home) -> None:
    """A settings file that is a link stays one, and the file behind it is changed."""
    real = own.path / "h/dotfiles/settings.json"
    real.parent.mkdir()
    real.write_text('{"a": 1}\n')
    (own.path / "h/.claude").mkdir()
    link = own.path / "h/.claude/settings.json"
    link.symlink_to(real)
    _setup(own, "claude-code")
    assert link.is_symlink()
    assert "hooks" in json.loads(real.read_text())
    _setup(own, "claude-code", "--remove")
    assert real.read_text() == '{"a": 1}\n'
    assert link.is_symlink()


def test_hooks_of_others_stay(own: Home) -> None:
    """Entries of other programs, unknown keys and the order of keys are kept, before and after."""
    path = own.path / "h/.claude/settings.json"
    path.parent.mkdir()
    other = {"hooks": [{"type": "command", "command": "other-tool"}], "matcher": "Bash"}
    given = {"z": 1, "hooks": {"PreToolUse": [other], "Stop": [other]}, "a": {"memd": "mine"}}
    path.write_text(json.dumps(given, indent=4) + "\n")
    _setup(own, "claude-code")
    hooks = _json(own, ".claude/settings.json")["hooks"]
    assert hooks["PreToolUse"] == [other]
    assert other in hooks["Stop"]
    assert len(hooks["Stop"]) == 2
    edited = path.read_text().replace('"z": 1', '"z": 2')
    path.write_text(edited)
    _setup(own, "claude-code", "--remove")
    assert path.read_text() == json.dumps(given | {"z": 2}, indent=4) + "\n"


def test_the_snippet_of_a_project_is_taken_out_again(own: Home) -> None:
    """What a person put into a file of their own choice goes with --remove and its name."""
    text = own.memctl("setup", "vscode").stdout
    file = own.path / "mcp.json"
    file.write_text(text)
    _setup(own, "vscode", "--remove", "--settings", str(file))
    assert not file.exists()
    file.write_text(text.replace("{", '{"inputs": [], ', 1))
    _setup(own, "vscode", "--remove", "--settings", str(file))
    assert json.loads(file.read_text()) == {"inputs": []}


@pytest.mark.full
def test_status_says_what_is_set_up(own: Home) -> None:
    """The option --status has a row for each client, and doctor agrees."""
    _setup(own, "claude-code")
    rows = dict(line.split()[:2] for line in _setup(own, "--status").splitlines() if line)
    assert rows["claude-code"] == "installed"
    assert rows["codex"] != "installed"
    (own.path / "h/.local/share/memd/hook.py").unlink()
    done = own.memctl("--no-start", "doctor")
    assert "claude-code" in done.stdout
    assert done.returncode != 0

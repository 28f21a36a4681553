"""The table of clients: where each keeps its configuration, and what memd keeps in it.

An environment variable that moves a client's folder is honoured. What nobody has tried with the
program itself says so in ``untried``: the place and the shape are those of its documentation.
"""

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memd.cli.setup import toml, yaml
from memd.cli.setup.hooks import Hooks
from memd.cli.setup.pieces import Copy, JsonFile, Piece, TableEntry

_HERE = os.path.abspath(__file__)
_REPOSITORY = _HERE.rsplit("/", 4)[0]
_STARTS = "startup|resume|clear|compact|fork"
_CLAUDE = {
    "SessionStart": _STARTS,
    "UserPromptSubmit": None,
    "Stop": None,
    "PreCompact": None,
    "SessionEnd": None,
    "PostToolUse": "Write|Edit|MultiEdit",
}
_CODEX: dict[str, str | None] = {
    **dict.fromkeys(("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostCompact")),
    "SessionEnd": None,
    "PostToolUse": "apply_patch|Write|Edit",
}
_GEMINI: dict[str, str | None] = {
    **dict.fromkeys(("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd")),
    "AfterTool": "write_file|replace",
}
_ANEW = "start it anew"
_DOCUMENTED = "by its documentation; not tried with the program itself"


@dataclass(frozen=True, slots=True)
class Switch:
    """A value in a JSON or TOML file with which somebody keeps a client from running hooks."""

    path: str
    keys: tuple[str, ...]
    off: bool


@dataclass(frozen=True, slots=True)
class Around:
    """What the table is made from: this user's environment and home, memd's hook and program.

    ``cwd`` is the project that ``doctor`` looks at. ``wait`` is what a prompt gets in ms, ``None``
    for what it gets now.
    """

    environ: Mapping[str, str]
    home: str
    cwd: str
    hook: str
    memctl: str
    wait: int | None = None
    platform: str = sys.platform

    def folder(self, variable: str, default: str) -> str:
        """Return an absolute folder that a variable may name; ``default`` is below the home."""
        value = self.environ.get(variable, "")
        return value.rstrip("/") if value.startswith("/") else f"{self.home}/{default}"

    @property
    def config(self) -> str:
        """Where programs of a desktop keep what they are told."""
        if self.platform == "darwin":
            return f"{self.home}/Library/Application Support"
        return self.folder("XDG_CONFIG_HOME", ".config")


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One client. ``folders`` or ``programs`` that exist tell that it is in use.

    ``then`` says what the person does after the set-up.
    """

    name: str
    title: str
    programs: tuple[str, ...]
    folders: tuple[str, ...]
    pieces: tuple[Piece, ...]
    then: str = _ANEW
    untried: str = ""
    switches: tuple[Switch, ...] = ()


def table(around: Around) -> tuple[ClientRow, ...]:
    """Return all clients that memd knows how to set up."""
    return (*_with_hooks(around), *_editors(around), *_others(around))


def _with_hooks(around: Around) -> tuple[ClientRow, ...]:
    claude = around.folder("CLAUDE_CONFIG_DIR", ".claude")
    codex = around.folder("CODEX_HOME", ".codex")
    gemini = f"{around.folder('GEMINI_CLI_HOME', '')}".rstrip("/") + "/.gemini"
    hook, wait = around.hook, around.wait
    server = {"command": around.memctl, "args": ["mcp"]}
    return (
        ClientRow(
            "claude-code",
            "Claude Code",
            ("claude",),
            (claude,),
            (JsonFile(f"{claude}/settings.json", Hooks("claude-code", hook, _CLAUDE), wait=wait),),
            "it reads its hooks when it starts: start it anew. Its own tools for memories: "
            f"claude mcp add --scope user memd -- {around.memctl} mcp",
            switches=_claude_switches(claude, around),
        ),
        ClientRow(
            "codex",
            "Codex CLI",
            ("codex",),
            (codex,),
            (
                JsonFile(f"{codex}/hooks.json", Hooks("codex", hook, _CODEX), wait=wait),
                TableEntry(f"{codex}/config.toml", toml, "mcp_servers", server),
            ),
            "it runs hooks only once you trust them: start it anew and say yes, or use /hooks",
            switches=(Switch(f"{codex}/config.toml", ("features", "hooks"), off=False),),
        ),
        ClientRow(
            "gemini",
            "Gemini CLI",
            ("gemini",),
            (gemini,),
            (
                JsonFile(
                    f"{gemini}/settings.json",
                    Hooks("gemini", hook, _GEMINI, "BeforeAgent", milliseconds=True),
                    {("mcpServers", "memd"): server},
                    wait,
                ),
            ),
            switches=(
                Switch(f"{gemini}/settings.json", ("hooksConfig", "enabled"), off=False),
                Switch("/etc/gemini-cli/settings.json", ("hooksConfig", "enabled"), off=False),
            ),
        ),
    )


def _claude_switches(folder: str, around: Around) -> tuple[Switch, ...]:
    policy = (
        "/Library/Application Support/ClaudeCode"
        if around.platform == "darwin"
        else "/etc/claude-code"
    )
    managed = f"{policy}/managed-settings.json"
    own = [f"{folder}/settings.json", managed]
    own += [f"{around.cwd}/.claude/settings{kind}.json" for kind in ("", ".local")]
    return (
        *(Switch(path, ("disableAllHooks",), off=True) for path in own),
        Switch(managed, ("allowManagedHooksOnly",), off=True),
    )


def _editors(around: Around) -> tuple[ClientRow, ...]:
    server = {"command": around.memctl, "args": ["mcp"]}
    config = around.folder("XDG_CONFIG_HOME", ".config")
    cursor, code = f"{around.home}/.cursor", f"{around.config}/Code/User"
    zed = f"{around.home}/.config/zed" if around.platform == "darwin" else f"{config}/zed"
    packages = f"{around.folder('XDG_DATA_HOME', '.local/share')}/nvim/site/pack/memd/start/memd"
    return (
        ClientRow(
            "cursor",
            "Cursor",
            ("cursor", "cursor-agent"),
            (cursor,),
            (_server(f"{cursor}/mcp.json", "mcpServers", server),),
            untried=_DOCUMENTED,
        ),
        ClientRow(
            "vscode",
            "Visual Studio Code",
            ("code",),
            (code,),
            (_server(f"{code}/mcp.json", "servers", {"type": "stdio", **server}),),
            untried=_DOCUMENTED,
        ),
        ClientRow(
            "zed",
            "Zed",
            ("zed", "zeditor"),
            (zed,),
            (_server(f"{zed}/settings.json", "context_servers", {**server, "env": {}}),),
            "it reads its settings at once",
            _DOCUMENTED,
        ),
        ClientRow(
            "neovim",
            "Neovim",
            ("nvim",),
            (f"{config}/nvim",),
            tuple(
                Copy(f"{packages}/{name}", source)
                for name, source in _shipped("neovim", "plugin/memd.lua")
            ),
            "it loads the plugin when it starts: start it anew, and :helptags ALL once",
        ),
    )


def _others(around: Around) -> tuple[ClientRow, ...]:
    server = {"command": around.memctl, "args": ["mcp"]}
    config = around.folder("XDG_CONFIG_HOME", ".config")
    opencode, goose = f"{config}/opencode", f"{config}/goose"
    # It reads both names; the one that is there is the person's.
    names = (f"{opencode}/opencode.json", f"{opencode}/opencode.jsonc")
    settings = next((name for name in names if os.path.exists(name)), names[0])
    local = {"type": "local", "command": [around.memctl, "mcp"], "enabled": True}
    desktop = f"{around.config}/Claude"
    copilot = around.folder("COPILOT_HOME", ".copilot")
    extension = {
        "enabled": True,
        "type": "stdio",
        "name": "memd",
        "cmd": around.memctl,
        "args": ["mcp"],
        "timeout": 60,
    }
    return (
        ClientRow(
            "opencode",
            "OpenCode",
            ("opencode",),
            (opencode,),
            (
                *(
                    Copy(f"{opencode}/plugins/{name}", path)
                    for name, path in _shipped("opencode", "memd.js")
                ),
                _server(settings, "mcp", local),
            ),
        ),
        ClientRow(
            "claude-desktop",
            "Claude Desktop",
            ("claude-desktop",),
            (desktop,),
            (_server(f"{desktop}/claude_desktop_config.json", "mcpServers", server),),
            untried=_DOCUMENTED,
        ),
        ClientRow(
            "copilot",
            "Copilot CLI",
            ("copilot",),
            (copilot,),
            (
                _server(
                    f"{copilot}/mcp-config.json",
                    "mcpServers",
                    {"type": "local", **server, "tools": ["*"]},
                ),
            ),
            untried=_DOCUMENTED,
        ),
        ClientRow(
            "goose",
            "goose",
            ("goose",),
            (goose,),
            (TableEntry(f"{goose}/config.yaml", yaml, "extensions", extension),),
            untried=_DOCUMENTED,
        ),
    )


def _server(path: str, group: str, value: dict[str, Any]) -> JsonFile:
    return JsonFile(path, None, {(group, "memd"): value})


def _shipped(name: str, main: str) -> tuple[tuple[str, str], ...]:
    """Return the files of a client's plugin: names below its folder, and where they are.

    They are beside the package in a checkout, and where the installer puts data otherwise; where
    they are not, ``main`` stands for them, so that copying it fails.
    """
    data = (sysconfig.get_path("data"), sysconfig.get_path("data", "posix_user"))
    folders = (f"{_REPOSITORY}/clients", *(f"{folder}/share/memd-clients" for folder in data))
    root = next((f"{folder}/{name}" for folder in folders if os.path.isdir(f"{folder}/{name}")), "")
    if not root:
        return ((main, f"{folders[1]}/{name}/{main}"),)
    files = [
        f"{folder}/{file}".removeprefix(f"{root}/")
        for folder, _, names in os.walk(root)
        for file in names
        if file.endswith((".js", ".lua", ".txt")) and "/test" not in folder.removeprefix(root)
    ]
    return tuple((file, f"{root}/{file}") for file in sorted(files))

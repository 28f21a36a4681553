"""The table of clients: the configuration files of each, and what memd puts into them.

An environment variable that moves a client's folder is honoured.
"""

import json
import os
import shlex
import shutil
import site
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from memd.base.client_events import EventKind
from memd.cli.setup.hooks import Hooks
from memd.cli.setup.jsonc import Path
from memd.cli.setup.parts import Copy, FilePart, Line, SettingsPart

_THIS_FILE = os.path.abspath(__file__)
_REPOSITORY = _THIS_FILE.rsplit("/", 4)[0]
_COMPLETIONS = os.path.join(os.path.dirname(os.path.dirname(_THIS_FILE)), "completions")
# Causes of a session's start in Claude Code, and its tools whose results memd stores if
# context.hook_spill is on.
_START_CAUSES = "startup|resume|clear|compact|fork"
_SPILL_TOOLS = "|Grep|WebFetch|mcp__.*"
_START_ANEW = "start it anew"


class Switch(NamedTuple):
    """A value in a JSON or TOML file; while it equals ``off``, the client runs no hooks."""

    path: str
    keys: tuple[str, ...]
    off: bool


class MachineFacts(NamedTuple):
    """The machine that a table is made for: the user's environment and folders, memd's programs.

    ``cwd`` is the project that ``doctor`` looks at. ``spills`` is the setting context.hook_spill,
    ``subagents`` says whether the setting agents.memory names any sub-agent.
    """

    environ: Mapping[str, str]
    home: str
    cwd: str
    hook: str
    memctl: str
    spills: bool = False
    subagents: bool = False
    platform: str = sys.platform

    def folder(self, variable: str, default: str) -> str:
        """Return the absolute folder that a variable names, else ``default`` below home."""
        value = self.environ.get(variable, "")
        # XDG says to ignore relative paths.
        return value.rstrip("/") if value.startswith("/") else f"{self.home}/{default}"

    @property
    def config(self) -> str:
        """The folder in which desktop programs keep their configuration."""
        if self.platform == "darwin":
            return f"{self.home}/Library/Application Support"
        return self.folder("XDG_CONFIG_HOME", ".config")

    @property
    def server(self) -> dict[str, Any]:
        """The program that serves MCP to a client."""
        return {"command": self.memctl, "args": ["mcp"]}


class ClientRow(NamedTuple):
    """One client: memd's parts of its files, and how to tell that it is installed.

    It is in use if its ``program`` is on PATH or its ``folder`` exists. Without ``parts`` memd's
    installer has connected it. ``next_step`` says what the person does after the set-up.
    ``keeps`` says what the program itself keeps after a removal. ``snippet`` is what a person adds
    to a file, and the file, where memd writes nothing: its parts are then what an older memd wrote.
    """

    name: str
    title: str
    program: str = ""
    folder: str = ""
    parts: tuple[FilePart, ...] = ()
    next_step: str = _START_ANEW
    switches: tuple[Switch, ...] = ()
    keeps: str = ""
    snippet: tuple[str, str] | None = None

    def is_in_use(self, environ: Mapping[str, str]) -> bool:
        """Return whether the client seems installed."""
        path = environ.get("PATH", os.defpath)
        is_on_path = bool(self.program) and shutil.which(self.program, path=path) is not None
        return is_on_path or os.path.isdir(self.folder)

    @property
    def has_hooks(self) -> bool:
        """Whether the client's settings run memd's hook file."""
        return any(isinstance(part, SettingsPart) and part.hooks for part in self.parts)


def table(machine: MachineFacts) -> tuple[ClientRow, ...]:
    """Return all clients that memd knows."""
    return (
        _claude_code(machine),
        _codex(machine),
        _gemini(machine),
        _opencode(machine),
        _neovim(machine),
        *_shells(machine),
        *_with_snippets(machine),
    )


def _claude_code(machine: MachineFacts) -> ClientRow:
    """Return Claude Code: hooks in its settings, the server among those of the user."""
    folder = machine.folder("CLAUDE_CONFIG_DIR", ".claude")
    servers = machine.folder("CLAUDE_CONFIG_DIR", "").rstrip("/") + "/.claude.json"
    tools = "Write|Edit|MultiEdit" + (_SPILL_TOOLS if machine.spills else "")
    matchers = {EventKind.SESSION_START: _START_CAUSES, EventKind.TOOL_USED: tools}
    hooks = Hooks("claude-code", machine.hook, matchers, subagents=machine.subagents)
    server = {"type": "stdio", **machine.server, "env": {}}
    policy = (
        "/Library/Application Support/ClaudeCode"
        if machine.platform == "darwin"
        else "/etc/claude-code"
    )
    # An administrator's settings override those of users and projects.
    managed = f"{policy}/managed-settings.json"
    settings = [f"{folder}/settings.json", managed]
    settings += [f"{machine.cwd}/.claude/settings{kind}.json" for kind in ("", ".local")]
    return ClientRow(
        "claude-code",
        "Claude Code",
        "claude",
        folder,
        (
            SettingsPart(f"{folder}/settings.json", hooks=hooks),
            SettingsPart(servers, {("mcpServers", "memd"): server}),
        ),
        "it reads its hooks and servers when it starts: start it anew",
        (
            *(Switch(path, ("disableAllHooks",), off=True) for path in settings),
            Switch(managed, ("allowManagedHooksOnly",), off=True),
        ),
        "permissions that you gave to its tools (mcp__memd__…) stay in its settings",
    )


def _codex(machine: MachineFacts) -> ClientRow:
    """Return Codex CLI."""
    folder = machine.folder("CODEX_HOME", ".codex")
    hooks = Hooks("codex", machine.hook, {EventKind.TOOL_USED: "apply_patch|Write|Edit"})
    return ClientRow(
        "codex",
        "Codex CLI",
        "codex",
        folder,
        (
            SettingsPart(f"{folder}/hooks.json", hooks=hooks),
            SettingsPart(f"{folder}/config.toml", {("mcp_servers", "memd"): machine.server}),
        ),
        "it runs hooks only once you trust them: start it anew and say yes, or use /hooks",
        (Switch(f"{folder}/config.toml", ("features", "hooks"), off=False),),
        f"it keeps the trust that you gave these hooks in {folder}/config.toml",
    )


def _gemini(machine: MachineFacts) -> ClientRow:
    """Return Gemini CLI; GEMINI_CLI_HOME names the directory that holds .gemini."""
    folder = machine.folder("GEMINI_CLI_HOME", "").rstrip("/") + "/.gemini"
    matchers = {EventKind.TOOL_USED: "write_file|replace"}
    hooks = Hooks("gemini", machine.hook, matchers, milliseconds=True)
    values: dict[Path, Any] = {("mcpServers", "memd"): machine.server}
    return ClientRow(
        "gemini",
        "Gemini CLI",
        "gemini",
        folder,
        (SettingsPart(f"{folder}/settings.json", values, hooks),),
        "start it anew; its tools for memories wait until you trust the folder (/permissions)",
        tuple(
            Switch(f"{place}/settings.json", ("hooksConfig", "enabled"), off=False)
            for place in (folder, "/etc/gemini-cli")
        ),
    )


def _opencode(machine: MachineFacts) -> ClientRow:
    """Return OpenCode: a plugin, and the server in its configuration."""
    folder = f"{machine.folder('XDG_CONFIG_HOME', '.config')}/opencode"
    # OpenCode reads both names; if one exists, the person uses that one.
    names = (f"{folder}/opencode.json", f"{folder}/opencode.jsonc")
    settings = next((name for name in names if os.path.exists(name)), names[0])
    server = {"type": "local", "command": [machine.memctl, "mcp"], "enabled": True}
    plugin = _plugin_files("opencode", "memd.js", f"{folder}/plugins")
    parts = (*plugin, SettingsPart(settings, {("mcp", "memd"): server}))
    return ClientRow("opencode", "OpenCode", "opencode", folder, parts)


def _neovim(machine: MachineFacts) -> ClientRow:
    """Return Neovim, which gets a plugin."""
    data = machine.folder("XDG_DATA_HOME", ".local/share")
    return ClientRow(
        "neovim",
        "Neovim",
        "nvim",
        f"{machine.folder('XDG_CONFIG_HOME', '.config')}/nvim",
        _plugin_files("neovim", "plugin/memd.lua", f"{data}/nvim/site/pack/memd/start/memd"),
        "it loads the plugin when it starts: start it anew, and :helptags ALL once",
    )


def _with_snippets(machine: MachineFacts) -> tuple[ClientRow, ...]:
    """Return the clients whose files memd does not write."""
    server, config = machine.server, machine.folder("XDG_CONFIG_HOME", ".config")
    zed = f"{machine.home}/.config" if machine.platform == "darwin" else config
    copilot = f"{machine.folder('COPILOT_HOME', '.copilot')}/mcp-config.json"
    desktop = f"{machine.config}/Claude/claude_desktop_config.json"
    goose = (
        "extensions:\n  memd:\n    enabled: true\n    type: stdio\n    name: memd\n"
        f"    cmd: {json.dumps(machine.memctl)}\n    args: [mcp]\n    timeout: 60"
    )
    rows = (
        ("cursor", "Cursor", f"{machine.home}/.cursor/mcp.json", "mcpServers", server),
        (
            "vscode",
            "Visual Studio Code",
            f"{machine.config}/Code/User/mcp.json",
            "servers",
            {"type": "stdio", **server},
        ),
        ("zed", "Zed", f"{zed}/zed/settings.json", "context_servers", {**server, "env": {}}),
        ("claude-desktop", "Claude Desktop", desktop, "mcpServers", server),
        (
            "copilot",
            "Copilot CLI",
            copilot,
            "mcpServers",
            {"type": "local", **server, "tools": ["*"]},
        ),
    )
    return (
        *(
            ClientRow(
                name,
                title,
                parts=(SettingsPart(path, {(group, "memd"): entry}),),
                snippet=(json.dumps({group: {"memd": entry}}, indent=2), path),
            )
            for name, title, path, group, entry in rows
        ),
        ClientRow("goose", "goose", snippet=(goose, f"{config}/goose/config.yaml")),
    )


def _shells(machine: MachineFacts) -> tuple[ClientRow, ...]:
    """Return the shells; each gets a completion file for memctl, zsh a line in .zshrc as well."""
    fish = f"{machine.folder('XDG_CONFIG_HOME', '.config')}/fish"
    data = machine.folder("XDG_DATA_HOME", ".local/share")
    functions = f"{data}/zsh/site-functions"
    line = (
        f"fpath+=({shlex.quote(functions)}); autoload -Uz _memctl; "
        "(( $+functions[compdef] )) && compdef _memctl memctl || true"
    )
    rc = Line(f"{machine.folder('ZDOTDIR', '').rstrip('/')}/.zshrc", line)
    target_paths = {
        "bash": f"{data}/bash-completion/completions/memctl",
        "zsh": f"{functions}/_memctl",
        "fish": f"{fish}/completions/memctl.fish",
    }
    needs = {"bash": "the package bash-completion", "zsh": "compinit in .zshrc"}
    # Every machine has bash, so only the login shell counts as in use.
    login_shell = os.path.basename(machine.environ.get("SHELL", ""))
    return tuple(
        ClientRow(
            shell,
            f"completion in {shell}",
            shell if shell == login_shell else "",
            fish if shell == "fish" else "",
            (
                # A file that the installer of memd puts in place is the installer's to remove.
                *(() if _is_installed(path) else (_completion_file(shell, path),)),
                *((rc,) if shell == "zsh" else ()),
            ),
            f"open a new shell. It needs {needs[shell]}" if shell in needs else "open a new shell",
        )
        for shell, path in target_paths.items()
    )


def _completion_file(shell: str, path: str) -> Copy:
    """Return the file that loads memctl's completion in a shell."""
    return Copy(path, f"{_COMPLETIONS}/{shell}/{os.path.basename(path)}")


def _is_installed(path: str) -> bool:
    """Return whether an installer put a file in place: pipx makes links, pip records its files."""
    if not os.path.isfile(path) or os.path.islink(path):
        return os.path.isfile(path)
    from importlib import metadata  # noqa: PLC0415 - 10 ms, and seldom needed

    with suppress(metadata.PackageNotFoundError):
        recorded = metadata.files("memdir-daemon") or ()
        name, real_path = os.path.basename(path), os.path.realpath(path)
        return any(
            file.name == name and os.path.realpath(file.locate()) == real_path for file in recorded
        )
    return False


def _plugin_files(name: str, main_file: str, target: str) -> tuple[Copy, ...]:
    """Return the files of a client's plugin, each with its place in the folder ``target``.

    The sources are in ``clients/`` of a checkout, or where the installer put data files. If there
    are none, ``main_file`` is returned with a source that does not exist, so that copying it fails.
    """
    data = (sys.prefix, site.getuserbase())
    folders = (f"{_REPOSITORY}/clients", *(f"{folder}/share/memd-clients" for folder in data))
    roots = (f"{folder}/{name}" for folder in folders)
    root = next((path for path in roots if os.path.isdir(path)), "")
    if not root:
        return (Copy(f"{target}/{main_file}", f"{folders[1]}/{name}/{main_file}"),)
    files: list[str] = []
    for folder, _, file_names in os.walk(root):
        below_root = folder.removeprefix(root)  # "" or "/…"
        if "/test" not in below_root:
            paths = (f"{below_root}/{file}".removeprefix("/") for file in file_names)
            files += [path for path in paths if path.endswith((".js", ".lua", ".txt"))]
    return tuple(Copy(f"{target}/{file}", f"{root}/{file}") for file in sorted(files))

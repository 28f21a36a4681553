"""The table of clients: the configuration files of each, and what memd writes into them.

An environment variable that moves a client's folder is honoured.
"""

import json
import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata

from msgspec import Struct

from memd.cli.setup.hooks import MESSAGES, RULES, Hooks
from memd.cli.setup.lines import Line
from memd.cli.setup.pieces import Copy, JsonFile, Piece, TableEntry

_THIS_FILE = os.path.abspath(__file__)
_REPOSITORY = _THIS_FILE.rsplit("/", 4)[0]
_COMPLETIONS = os.path.join(os.path.dirname(os.path.dirname(_THIS_FILE)), "completions")
# Matchers of Claude Code: causes of a session's start, and names of tools.
_START_CAUSES = "startup|resume|clear|compact|fork"
_WRITE_TOOLS = "Write|Edit|MultiEdit"
# memd stores large results of these tools if context.hook_spill is on.
_SPILL_TOOLS = "|Grep|WebFetch|mcp__.*"
# The events of each client's hooks, with a matcher or ``None`` for all.
_CLAUDE_EVENTS = {
    "SessionStart": _START_CAUSES,
    "UserPromptSubmit": None,
    "Stop": None,
    "PreCompact": None,
    "SessionEnd": None,
    "PostToolUse": _WRITE_TOOLS,
}
_CODEX_EVENTS: dict[str, str | None] = {
    **dict.fromkeys(("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostCompact")),
    "SessionEnd": None,
    "PostToolUse": "apply_patch|Write|Edit",
}
_GEMINI_EVENTS: dict[str, str | None] = {
    **dict.fromkeys(("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd")),
    "PreCompress": "manual",  # automatic ones come with every request and compress nothing
    "AfterTool": "write_file|replace",
}
# Events added to deliver messages of other agents: every tool, and sub-agents.
_CLAUDE_MESSAGE_EVENTS: dict[str, str | None] = dict.fromkeys(
    ("PostToolUse", "SubagentStart", "SubagentStop")
)
_START_ANEW = "start it anew"


class Switch(Struct, frozen=True):
    """A value in a JSON or TOML file; while it equals ``off``, the client runs no hooks."""

    path: str
    keys: tuple[str, ...]
    off: bool


class MachineFacts(Struct, frozen=True):
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


class ClientRow(Struct, frozen=True):
    """One client: its configuration files, and how to tell that it is installed.

    It counts as installed if its ``folder`` exists or one of ``programs``, names separated by
    spaces, is on PATH. Without ``pieces`` memd's installer has connected it. ``next_step`` says
    what the person does after the set-up.
    """

    name: str
    title: str
    programs: str
    folder: str
    pieces: tuple[Piece, ...]
    next_step: str = _START_ANEW
    switches: tuple[Switch, ...] = ()


class Snippet(Struct, frozen=True):
    """What a person adds to a client's file so that it runs memd's MCP server."""

    title: str
    path: str
    text: str

    def is_there(self) -> bool:
        """Return whether the file names memctl: an older memd, or the person, wrote it there."""
        with suppress(OSError), open(self.path, "rb") as file:
            return b"memctl" in file.read()
        return False


def table(machine: MachineFacts) -> tuple[ClientRow, ...]:
    """Return all clients that memd knows how to set up."""
    return (*_with_hooks(machine), *_with_plugins(machine), *_shells(machine))


def _with_hooks(machine: MachineFacts) -> tuple[ClientRow, ...]:
    """Return the clients that run memd's hook: Claude Code, Codex CLI and Gemini CLI."""
    claude = machine.folder("CLAUDE_CONFIG_DIR", ".claude")
    codex = machine.folder("CODEX_HOME", ".codex")
    # GEMINI_CLI_HOME names the directory that holds .gemini.
    gemini = machine.folder("GEMINI_CLI_HOME", "").rstrip("/") + "/.gemini"
    hook, server = machine.hook, {"command": machine.memctl, "args": ["mcp"]}
    of_gemini = Hooks(
        "gemini",
        hook,
        _GEMINI_EVENTS,
        "BeforeAgent",
        milliseconds=True,
        duty_events={MESSAGES: {"AfterTool": None}, RULES: {"BeforeTool": None}},
    )
    result_events = {"PostToolUse": _WRITE_TOOLS + _SPILL_TOOLS} if machine.spills else {}
    subagent_events: dict[str, str | None] = {"SubagentStart": None} if machine.subagents else {}
    rule_events: dict[str, dict[str, str | None]] = {RULES: {"PreToolUse": None}}
    events = _CLAUDE_EVENTS | result_events | subagent_events
    of_claude = Hooks(
        "claude-code", hook, events, duty_events={MESSAGES: _CLAUDE_MESSAGE_EVENTS, **rule_events}
    )
    of_codex = Hooks(
        "codex", hook, _CODEX_EVENTS, duty_events={MESSAGES: {"PostToolUse": None}, **rule_events}
    )
    command = f"claude mcp add --scope user memd -- {machine.memctl} mcp"
    return (
        ClientRow(
            "claude-code",
            "Claude Code",
            "claude",
            claude,
            (JsonFile(f"{claude}/settings.json", of_claude),),
            f"it reads its hooks when it starts: start it anew. Its tools for memories: {command}",
            switches=_claude_switches(claude, machine),
        ),
        ClientRow(
            "codex",
            "Codex CLI",
            "codex",
            codex,
            (
                JsonFile(f"{codex}/hooks.json", of_codex),
                TableEntry(f"{codex}/config.toml", "mcp_servers", server),
            ),
            "it runs hooks only once you trust them: start it anew and say yes, or use /hooks",
            switches=(Switch(f"{codex}/config.toml", ("features", "hooks"), off=False),),
        ),
        ClientRow(
            "gemini",
            "Gemini CLI",
            "gemini",
            gemini,
            (JsonFile(f"{gemini}/settings.json", of_gemini, {("mcpServers", "memd"): server}),),
            switches=tuple(
                Switch(f"{folder}/settings.json", ("hooksConfig", "enabled"), off=False)
                for folder in (gemini, "/etc/gemini-cli")
            ),
        ),
    )


def _claude_switches(folder: str, machine: MachineFacts) -> tuple[Switch, ...]:
    """Return the settings with which a user or administrator turns Claude Code's hooks off."""
    policy = (
        "/Library/Application Support/ClaudeCode"
        if machine.platform == "darwin"
        else "/etc/claude-code"
    )
    # An administrator's settings override those of users and projects.
    managed = f"{policy}/managed-settings.json"
    own = [f"{folder}/settings.json", managed]
    own += [f"{machine.cwd}/.claude/settings{kind}.json" for kind in ("", ".local")]
    return (
        *(Switch(path, ("disableAllHooks",), off=True) for path in own),
        Switch(managed, ("allowManagedHooksOnly",), off=True),
    )


def snippets(machine: MachineFacts) -> dict[str, Snippet]:
    """Return the clients whose files memd does not write, by name."""
    server: dict[str, object] = {"command": machine.memctl, "args": ["mcp"]}
    config = machine.folder("XDG_CONFIG_HOME", ".config")
    zed = f"{machine.home}/.config" if machine.platform == "darwin" else config
    copilot = f"{machine.folder('COPILOT_HOME', '.copilot')}/mcp-config.json"
    goose = (
        "extensions:\n  memd:\n    enabled: true\n    type: stdio\n    name: memd\n"
        f"    cmd: {json.dumps(machine.memctl)}\n    args: [mcp]\n    timeout: 60"
    )
    return {
        "cursor": _json_snippet("Cursor", f"{machine.home}/.cursor/mcp.json", server),
        "vscode": _json_snippet(
            "Visual Studio Code",
            f"{machine.config}/Code/User/mcp.json",
            {"type": "stdio", **server},
            "servers",
        ),
        "zed": _json_snippet(
            "Zed", f"{zed}/zed/settings.json", {**server, "env": {}}, "context_servers"
        ),
        "claude-desktop": _json_snippet(
            "Claude Desktop", f"{machine.config}/Claude/claude_desktop_config.json", server
        ),
        "copilot": _json_snippet(
            "Copilot CLI", copilot, {"type": "local", **server, "tools": ["*"]}
        ),
        "goose": Snippet("goose", f"{config}/goose/config.yaml", goose),
    }


def _json_snippet(
    title: str, path: str, server: dict[str, object], group: str = "mcpServers"
) -> Snippet:
    """Return the snippet of a client that keeps its servers in an object of a JSON file."""
    return Snippet(title, path, json.dumps({group: {"memd": server}}, indent=2))


def _with_plugins(machine: MachineFacts) -> tuple[ClientRow, ...]:
    """Return the clients that get a plugin: OpenCode and Neovim."""
    config = machine.folder("XDG_CONFIG_HOME", ".config")
    packages = f"{machine.folder('XDG_DATA_HOME', '.local/share')}/nvim/site/pack/memd/start/memd"
    opencode = f"{config}/opencode"
    # OpenCode reads both names; if one exists, the person uses that one.
    names = (f"{opencode}/opencode.json", f"{opencode}/opencode.jsonc")
    settings = next((name for name in names if os.path.exists(name)), names[0])
    server = {"type": "local", "command": [machine.memctl, "mcp"], "enabled": True}
    return (
        ClientRow(
            "opencode",
            "OpenCode",
            "opencode",
            opencode,
            (
                *_plugin_files("opencode", "memd.js", f"{opencode}/plugins"),
                JsonFile(settings, None, {("mcp", "memd"): server}),
            ),
        ),
        ClientRow(
            "neovim",
            "Neovim",
            "nvim",
            f"{config}/nvim",
            _plugin_files("neovim", "plugin/memd.lua", packages),
            "it loads the plugin when it starts: start it anew, and :helptags ALL once",
        ),
    )


def _shells(machine: MachineFacts) -> tuple[ClientRow, ...]:
    """Return the shells; each gets a completion file for memctl, zsh a line in .zshrc as well."""
    config = f"{machine.folder('XDG_CONFIG_HOME', '.config')}/fish"
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
        "fish": f"{config}/completions/memctl.fish",
    }
    needs = {"bash": "the package bash-completion", "zsh": "compinit in .zshrc"}
    # Every machine has bash, so only the login shell counts as in use.
    login_shell = os.path.basename(machine.environ.get("SHELL", ""))
    return tuple(
        ClientRow(
            shell,
            f"completion in {shell}",
            shell if shell == login_shell else "",
            config if shell == "fish" else "",
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
    data = (sysconfig.get_path("data"), sysconfig.get_path("data", "posix_user"))
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

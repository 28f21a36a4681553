"""Real programs, unchanged, around one memory: each recalls what the one before it saved."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e import hooks, mcp, sockets
from tests.e2e.programs import INSTALLED, ROOT, learn_from_scripts, memctl, program, version
from tests.e2e.relay import Relay, Run, write_table
from tests.support.daemon import daemon_process, throw_away_home

pytestmark = pytest.mark.e2e
LEAST = 12  # programs that a full run has


class Program(NamedTuple):
    """A program: its name in the table, how it is run, and the command that prints its version."""

    name: str
    run: Run
    version: tuple[str, ...]


def _of(package: str) -> tuple[str, ...]:
    """Return a command that prints the version of a package in the programs' Python."""
    return ("python", "-c", f"import importlib.metadata as m; print(m.version('{package}'))")


def _json(folder: Path) -> tuple[str, ...]:
    """Return a command that prints the version of a package of npm."""
    return ("node24", "-p", f"require('{folder}/package.json').version")


_RPC = INSTALLED / "vscode-jsonrpc/node_modules/vscode-jsonrpc"
PROGRAMS = (
    Program("nc (OpenBSD)", sockets.nc, ("nc", "-h")),
    Program("Claude Code", hooks.claude_code, ("claude", "--version")),
    Program("socat", sockets.socat, ("socat", "-V")),
    Program("Claude Code, plugin", hooks.claude_plugin, ("claude", "--version")),
    Program("Codex CLI", hooks.codex, ("codex", "--version")),
    Program("Gemini CLI", hooks.gemini, ("gemini", "--version")),
    Program("OpenCode", hooks.opencode, ("opencode", "--version")),
    Program("vscode-jsonrpc", sockets.vscode_jsonrpc, _json(_RPC)),
    Program("VS Code extension", sockets.vscode, _json(ROOT / "clients/vscode")),
    Program("MCP Inspector", mcp.inspector, ("inspector", "--version")),
    Program("MCP SDK (Python)", mcp.sdk, _of("mcp")),
    Program("FastMCP", mcp.fastmcp, _of("fastmcp")),
    Program("python-lsp-jsonrpc", sockets.pylsp, _of("python-lsp-jsonrpc")),
    Program("Vim", sockets.vim, ("vim", "--version")),
    Program("Emacs", sockets.emacs, ("emacs", "--version")),
    Program("Neovim", sockets.neovim, ("nvim", "--version")),
    Program("Neovim", sockets.neovim7, ("nvim7", "--version")),
    Program("bash", sockets.bash, ("bash", "--version")),
    Program("zsh", sockets.zsh, ("zsh", "--version")),
    Program("fish", sockets.fish, ("fish", "--version")),
)


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    """Run a daemon on a home of its own, in which a first memory is saved."""
    with throw_away_home() as home:
        (Path(home.path) / ".codex" / ".tmp").mkdir(parents=True)  # Codex's own, no leak of memd
        learn_from_scripts(home)
        with daemon_process(home):
            started = Relay(home, home.project())
            started.begin()
            yield started


@pytest.mark.parametrize("each", PROGRAMS, ids=lambda each: each.name)
def test_each_recalls_what_the_last_one_saved(relay: Relay, each: Program) -> None:
    """A program recalls what the one before it saved, and the store has what it saved itself."""
    try:
        command = [program(each.version[0]), *each.version[1:]]
        seen = each.run(relay, relay.step())
    except pytest.skip.Exception as absent:
        relay.skipped(each.name, str(absent))
        raise
    relay.done(each.name, version(relay.home, command), seen)


def test_the_runs_are_written_down(relay: Relay) -> None:
    """The last memory is found by memctl, and a full run writes the table of docs/clients.md."""
    last = relay.step().recalls
    assert last.said(memctl(relay.home, "search", last.question, cwd=relay.project))
    if len(relay.rows) < len(PROGRAMS):
        pytest.skip("not every program was run, or one failed: the table stays as it is")
    write_table(relay.rows)
    assert len([row for row in relay.rows if row[1]]) >= LEAST

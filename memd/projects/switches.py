"""Say whether memory is on for a caller in a project, and which switch says so. Pure.

The first of these that speaks decides; every method, hook and job goes by this one answer.

1. ``MEMD_DISABLE`` or ``CLAUDE_CODE_DISABLE_AUTO_MEMORY`` of the caller: a truthy value says off, a
   falsy one on.
2. ``CLAUDE_CODE_SIMPLE``, or ``CLAUDE_CODE_REMOTE`` without a remote directory, says off.
3. ``enabled = false`` in memd's settings, or ``autoMemoryEnabled: false`` in Claude Code's settings
   in the repository or in its policy, says off. A repository can say nothing else.
4. ``autoMemoryEnabled: false`` in the person's own settings of Claude Code says off to Claude Code
   and to what runs below it, unless ``claude_code.bring_memory`` is set.
"""

import os
from collections.abc import Callable, Collection, Mapping

from memd.base.agents import FindProcess, lineage
from memd.projects.claude_code import ENABLED, ClientMemory

CLAUDE_CODE = "claude-code"
CLAUDE_PROGRAM = "claude"  # the name of its process
CLIENT_SWITCH = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
REMOTE_BASE = "CLAUDE_CODE_REMOTE_MEMORY_DIR"
FALSY = frozenset(("0", "false", "no", "off"))
CLAUDE_NAMES = (CLAUDE_CODE, f"mcp {CLAUDE_CODE}")  # of a hook or program, and of the MCP server
_SWITCHES = ("MEMD_DISABLE", CLIENT_SWITCH)

Environ = Mapping[str, str]


def reason_for_off(
    environ: Environ,
    off_in: str,
    client: ClientMemory,
    in_claude_code: Callable[[], bool],
) -> str:
    """Return which switch says that memory is off, "" if it is on.

    ``environ`` are the caller's variables, none for work without a caller. ``off_in`` is the file
    of memd's settings that says off, or "". ``in_claude_code`` says whether the person's own
    settings of Claude Code count; it is called only where they say off.
    """
    for name in _SWITCHES:
        if value := environ.get(name, "").strip():
            return "" if value.lower() in FALSY else f"{name} is set"
    if _is_true(environ.get("CLAUDE_CODE_SIMPLE", "")):
        return "the client runs in bare mode (CLAUDE_CODE_SIMPLE)"
    if _is_true(environ.get("CLAUDE_CODE_REMOTE", "")) and not environ.get(REMOTE_BASE):
        return f"the client runs remotely (CLAUDE_CODE_REMOTE) without {REMOTE_BASE}"
    if off_in:
        return f"enabled is false in {off_in}"
    client_off_in = client.off_in
    if not client_off_in and client.person_off_in and in_claude_code():
        client_off_in = client.person_off_in
    return f"{ENABLED} is false in {client_off_in}" if client_off_in else ""


def by_files(environ: Environ) -> Environ:
    """Return the variables without those that say on or off, so that files alone decide."""
    return {name: value for name, value in environ.items() if name not in _SWITCHES}


def is_below(find: FindProcess, pid: int, programs: Collection[str]) -> bool:
    """Return whether a process or one of its ancestors has the name of one of these programs.

    Ancestors of this process are left out: every program of the session may have them. Blocks.
    """
    own_pids = {process.pid for process in lineage(find, os.getpid())}
    return any(
        process.name in programs for process in lineage(find, pid) if process.pid not in own_pids
    )


def _is_true(value: str) -> bool:
    """Return whether the value of a variable means "yes"."""
    return bool(value.strip()) and value.strip().lower() not in FALSY

"""What Claude Code's own settings say about its auto memory.

Where Claude Code loads the instructions and the index by itself, memd adds nothing of these to the
start of a session; where a user switched that off, memd is the one who brings them.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memd.core.values import Project

_SETTINGS_BYTES = 4 * 1024 * 1024
_SHARED_SOURCES = (  # what Claude Code goes by as well
    "default",
    "CLAUDE_CODE_REMOTE_MEMORY_DIR",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE",
)


def loads_memory(project: Project, environ: Mapping[str, str], home: str) -> bool:
    """Return whether Claude Code itself loads this project's memory directory.

    It does unless a settings file says ``"autoMemoryEnabled": false``, or memd's own settings or
    variables chose a directory that Claude Code does not know.
    """
    if project.source not in _SHARED_SOURCES:
        return False
    folder = environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    files = (
        f"{folder}/settings.json",
        f"{project.root}/.claude/settings.json",
        f"{project.root}/.claude/settings.local.json",
    )
    return all(_read(path).get("autoMemoryEnabled") is not False for path in files)


def _read(path: str) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            parsed = json.loads(file.read(_SETTINGS_BYTES))
        if isinstance(parsed, dict):
            return parsed
    return {}

"""Projects of one daemon: finding them, their settings, and what Claude Code does by itself.

Where Claude Code loads the instructions and the index by itself, memd adds nothing of these to the
start of a session; where a user switched that off, memd is the one who brings them.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from memd.core.settings import Settings
from memd.core.text import read_object
from memd.core.values import Project
from memd.projects.configuration import Configuration
from memd.projects.project import find_project, locate
from memd.state.database import StateUnusableError
from memd.state.tables import Roots

# Who chose the whole path wants it for every project that asks.
_CHOSEN = frozenset(
    {"MEMD_MEMORY_PATH", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "auto_memory_directory"}
)

_SETTINGS_BYTES = 4 * 1024 * 1024
_SHARED_SOURCES = (  # what Claude Code goes by as well
    "default",
    "CLAUDE_CODE_REMOTE_MEMORY_DIR",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE",
)


class Projects:
    """Where working directories keep their memories, for one daemon."""

    def __init__(
        self, configuration: Configuration, roots: Roots, environ: Mapping[str, str], home: str
    ) -> None:
        self._configuration = configuration
        self._roots = roots
        self._environ = environ
        self._home = home

    def where(
        self, cwd: str, environ: Mapping[str, str]
    ) -> tuple[Project, Settings, tuple[str, ...]]:
        """Return a project, its settings and a sentence for each problem in their files. Blocks.

        Raises NoProjectError (1009).
        """
        place = locate(cwd)
        settings, problems = self._configuration.current(place[1])
        project = find_project(place, settings, self._environ, environ, self._home)
        return with_other_root(project, self._roots), settings, problems


def with_other_root(project: Project, roots: Roots) -> Project:
    """Return the project with a problem named when another root has the same directory.

    A root that is gone (a repository that was moved) gives its directory up. Blocks.
    """
    if project.source in _CHOSEN:
        return project
    with suppress(StateUnusableError):  # then nobody can know; memory goes on
        owner = roots.owner(project.memory_dir, project.root)
        if owner != project.root and not os.path.isdir(owner):
            roots.move(project.memory_dir, project.root)
            owner = project.root
        if owner != project.root:
            problem = (
                f"{project.memory_dir} is also the memory of {owner}: the two paths differ only in "
                "characters that its name cannot keep; give one of them a directory of its own "
                "with MEMD_MEMORY_PATH"
            )
            return replace(project, problems=(*project.problems, problem))
    return project


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
    return all(_read_settings(path).get("autoMemoryEnabled") is not False for path in files)


def _read_settings(path: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):  # ValueError: no possible file name
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return read_object(file.read(_SETTINGS_BYTES))
    return {}

"""Finding projects, and telling two that meet in one memory directory."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from memd.core.values import Project
from memd.projects.configuration import Configuration
from memd.projects.project import find_project, find_root
from memd.state.database import StateUnusableError
from memd.state.roots import Roots

# Who chose the whole path wants it for every project that asks.
_CHOSEN = frozenset(
    {"MEMD_MEMORY_PATH", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "auto_memory_directory"}
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

    def find(self, cwd: str, environ: Mapping[str, str]) -> Project:
        """Return the project of a directory for a client with these variables. Blocks.

        Raises NoProjectError (1009).
        """
        settings, _ = self._configuration.current(find_root(cwd))
        project = find_project(cwd, settings, self._environ, environ, self._home)
        return with_other_root(project, self._roots)


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

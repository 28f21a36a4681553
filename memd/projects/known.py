"""All projects of this user that can be found. Blocks.

A project is known because somebody worked in it, because its root is remembered, or because its
folder lies where the memories of projects do. Of the last kind nobody knows the root.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from memd.core.values import Project
from memd.projects.project import slug, transcript_folders


@dataclass(frozen=True, slots=True)
class KnownProject:
    """A project: the real path of its memory directory, its root ("" where that is unknown).

    ``sessions`` are folders with one folder for each session. ``config`` is the client's folder,
    in which memories of sub-agents lie that belong to no project.
    """

    directory: str
    root: str
    sessions: tuple[str, ...]
    config: str

    @property
    def name(self) -> str:
        """What its directory is called; where nobody knows that, the end of its folder's name."""
        if self.root:
            return os.path.basename(self.root)
        return os.path.basename(os.path.dirname(self.directory)).rpartition("-")[2]


def known_project(project: Project) -> KnownProject:
    """Return a project that somebody works in as a known one."""
    real = os.path.realpath(project.memory_dir)
    config = os.path.dirname(project.transcripts)
    return KnownProject(real, project.root, transcript_folders(project), config)


def known_projects(
    base: str, roots: Mapping[str, str], visited: Iterable[Project]
) -> tuple[KnownProject, ...]:
    """Return all projects whose memory directory is there, by that directory.

    ``base`` holds a folder for each project, ``roots`` are those remembered by memory directory,
    ``visited`` the projects in which somebody worked.
    """
    config = os.path.dirname(base)
    every = [known_project(project) for project in visited]
    for directory, root in roots.items():
        real = os.path.realpath(directory)
        every.append(KnownProject(real, root, (f"{base}/{slug(root)}",), config))
    with suppress(OSError):
        for name in os.listdir(base):
            real = os.path.realpath(f"{base}/{name}/memory")
            every.append(KnownProject(real, "", (f"{base}/{name}",), config))
    first = {each.directory: each for each in reversed(every)}
    return tuple(first[real] for real in sorted(first) if os.path.isdir(real))

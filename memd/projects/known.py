"""All projects of this user that can be found. Blocks.

A project is known because somebody worked in it, because its root is remembered, or because its
folder lies where the memories of projects do. Of the last kind nobody knows the root, unless a
transcript in the folder names a working directory that the folder is called after.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from memd.core.errors import MemdError
from memd.core.text import read_json
from memd.core.values import Project
from memd.files.directory import Directory
from memd.projects.project import slug, transcript_folders

_HEAD_BYTES = 64 * 1024  # of a transcript
_TRANSCRIPTS = 5  # of a folder; the first lines of one may name no directory
# Claude Code escapes nothing else in a path, and so it holds no half of a character.
_CWD = re.compile(rb'"cwd" ?: ?("/(?:[^"\\]|\\["\\]){0,4095}")')


@dataclass(frozen=True, slots=True)
class KnownProject:
    """A project: the real path of its memory directory, its root ("" where that is unknown).

    ``sessions`` are folders with one folder for each session. ``config`` is the client's folder,
    in which memories of sub-agents lie that belong to no project. ``cwd`` is where somebody worked
    last, ``at`` when, in seconds since 1970; "" and 0 where memd saw nobody.
    """

    directory: str
    root: str
    sessions: tuple[str, ...]
    config: str
    cwd: str = ""
    at: float = 0.0

    @property
    def name(self) -> str:
        """What its directory is called; where nobody knows that, the end of its folder's name."""
        if self.root:
            return os.path.basename(self.root)
        return os.path.basename(os.path.dirname(self.directory)).rpartition("-")[2]


def known_project(project: Project, at: float = 0.0) -> KnownProject:
    """Return a project that somebody works in, or did ``at`` a time, as a known one."""
    real = os.path.realpath(project.memory_dir)
    config = os.path.dirname(project.transcripts)
    return KnownProject(real, project.root, transcript_folders(project), config, project.cwd, at)


def known_projects(
    base: str, roots: Mapping[str, str], visited: Iterable[KnownProject]
) -> tuple[KnownProject, ...]:
    """Return all projects whose memory directory is there, by that directory.

    ``base`` holds a folder for each project, ``roots`` are those remembered by memory directory,
    ``visited`` the projects in which somebody worked.
    """
    config = os.path.dirname(base)
    every = [*visited]
    for directory, root in roots.items():
        real = os.path.realpath(directory)
        every.append(KnownProject(real, root, (f"{base}/{slug(root)}",), config))
    with suppress(OSError):
        for name in os.listdir(base):
            real = os.path.realpath(f"{base}/{name}/memory")
            every.append(KnownProject(real, "", (f"{base}/{name}",), config))
    first = {each.directory: each for each in reversed(every)}
    return tuple(first[real] for real in sorted(first) if os.path.isdir(real))


def working_directory(known: KnownProject) -> str:
    """Return where a project can be worked in, "" where no such directory is there.

    That is where somebody worked last, its root, or what a transcript says if the folder has the
    name that it would be given.
    """
    if known.root:
        places = (known.cwd, known.root)
        return next((place for place in places if place and os.path.isdir(place)), "")
    for folder in known.sessions:
        for cwd in _named(folder):
            if slug(cwd) == os.path.basename(folder) and os.path.isdir(cwd):
                return cwd
    return ""


def _named(folder: str) -> Iterator[str]:
    """Yield the working directories that some transcripts of a folder name."""
    with suppress(OSError, MemdError):
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
        with Directory(folder) as opened:
            for name in sorted(names)[:_TRANSCRIPTS]:
                head = opened.read_head(name, _HEAD_BYTES)
                match = _CWD.search(head[0]) if head else None
                cwd = read_json(match[1]) if match else None
                if cwd is not None:
                    yield cwd

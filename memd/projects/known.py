"""All projects of this user that can be found. Functions block and raise StateUnusableError.

A project is known because somebody worked in it, because its root is stored, or because it has a
folder among those of all projects. The root of the last kind is unknown, unless a transcript in the
folder names a working directory whose slug is the folder's name.

The last client of each memory directory is stored: a timer that looks for dreams that are due has
no client to ask, and needs the working directory and the forwarded variables
(``places.FORWARDED``).
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from msgspec import Struct

from memd.base.errors import MemdError
from memd.base.text import read_json
from memd.base.values import Caller, Project
from memd.projects.project import slug, transcript_folders
from memd.state import docs
from memd.state.docs import Docs
from memd.store.directory import Directory

VISITS_KEPT = 1000  # directories; the timer looks at each of them
_DAY_SECONDS = 86_400.0
_HEAD_BYTES = 64 * 1024  # of a transcript
_TRANSCRIPTS = 5  # read per folder, as the beginning of one may name no directory
# Claude Code escapes only these two, so no match ends within a character.
_CWD = rb'"cwd" ?: ?("/(?:[^"\\]|\\["\\]){0,4095}")'


@dataclass(frozen=True, slots=True)
class Visit:
    """A client's last contact: its working directory, name and forwarded variables.

    ``session`` is its session or "". ``at`` is the time of a stored visit in seconds since 1970.
    """

    cwd: str
    client: str
    environment: Mapping[str, str]
    session: str = ""
    at: float = field(default=0.0, compare=False)

    @classmethod
    def of(cls, caller: Caller, cwd: str, session: str) -> "Visit":
        """Return a caller's visit, with its session in a working directory."""
        return cls(cwd, caller.client, caller.environment, session)

    @property
    def caller(self) -> tuple[str, Mapping[str, str], str]:
        """The working directory, variables and name, as ``Projects.where`` takes them."""
        return self.cwd, self.environment, self.client


class KnownProject(Struct, frozen=True):
    """A project: the real path of its memory directory, its root ("" where that is unknown).

    ``sessions`` are folders with one folder for each session. ``config`` is the client's folder,
    which has the memories of sub-agents that belong to no project. ``cwd`` is the directory last
    worked in, ``at`` the time of that in seconds since 1970; "" and 0 if there was no visit.
    """

    directory: str
    root: str
    sessions: tuple[str, ...]
    config: str
    cwd: str = ""
    at: float = 0.0

    @property
    def name(self) -> str:
        """Return the base name of its root, or the last part of its folder's name if unknown."""
        if self.root:
            return os.path.basename(self.root)
        return os.path.basename(os.path.dirname(self.directory)).rpartition("-")[2]


def remember_visit(table: Docs, directory: str, visit: Visit, at: float) -> None:
    """Store a client's visit without its session, unless an equal one was stored today.

    ``at`` is in seconds since 1970. Beyond ``VISITS_KEPT`` directories the oldest are deleted.
    """
    visit = replace(visit, session="", at=at)
    stored = table.get(Visit, directory)
    if stored == visit and abs(at - stored.at) < _DAY_SECONDS:
        return
    with table.transaction() as cursor:
        docs.put(cursor, visit, directory)
        docs.keep_newest(cursor, Visit, VISITS_KEPT)


def last_visits(table: Docs) -> tuple[Visit, ...]:
    """Return the last visit to each directory, the newest first."""
    return tuple(reversed(table.list_all(Visit).values()))


def visits_by_directory(table: Docs) -> dict[str, Visit]:
    """Return the last visit to each directory by the directory's real path."""
    visits = table.list_all(Visit).items()
    return {os.path.realpath(directory): visit for (directory, _), visit in visits}


def known_project(project: Project, at: float = 0.0) -> KnownProject:
    """Return a visited project as a known one; ``at`` is the time of the visit."""
    memory_dir = os.path.realpath(project.memory_dir)
    config_dir = os.path.dirname(project.transcripts)  # Claude Code's, which has the transcripts
    transcripts = transcript_folders(project)
    return KnownProject(memory_dir, project.root, transcripts, config_dir, project.cwd, at)


def known_projects(
    base: str, roots: Mapping[str, str], visited: Iterable[KnownProject]
) -> tuple[KnownProject, ...]:
    """Return all projects whose memory directory exists, sorted by that directory.

    ``base`` has a folder for each project, ``roots`` are the stored roots by memory directory,
    ``visited`` the projects in which somebody worked.
    """
    config = os.path.dirname(base)
    projects = [*visited]
    for directory, root in roots.items():
        real = os.path.realpath(directory)
        projects.append(KnownProject(real, root, (f"{base}/{slug(root)}",), config))
    with suppress(OSError):
        for name in os.listdir(base):
            real = os.path.realpath(f"{base}/{name}/memory")
            projects.append(KnownProject(real, "", (f"{base}/{name}",), config))
    # The first entry of a directory counts: visits know most, folders least.
    by_directory = {project.directory: project for project in reversed(projects)}
    return tuple(by_directory[real] for real in sorted(by_directory) if os.path.isdir(real))


def working_directory(known: KnownProject) -> str:
    """Return an existing directory of a project, or "" if none is known.

    It is the directory last worked in, or the root. Without a root, it is one that a transcript
    names and whose slug is the folder's name.
    """
    if known.root:
        places = (known.cwd, known.root)
        return next((place for place in places if place and os.path.isdir(place)), "")
    for folder in known.sessions:
        for cwd in _cwds_named(folder):
            if slug(cwd) == os.path.basename(folder) and os.path.isdir(cwd):
                return cwd
    return ""


def _cwds_named(folder: str) -> Iterator[str]:
    """Yield a working directory from each of a folder's first five transcripts that name one."""
    with suppress(OSError, MemdError), Directory(folder) as opened:
        names = [name for name in os.listdir(opened.fd) if name.endswith(".jsonl")]
        for name in sorted(names)[:_TRANSCRIPTS]:
            head = opened.read(name, _HEAD_BYTES, whole=False)
            match = re.search(_CWD, head[0]) if head else None
            cwd = read_json(match[1]) if match else None
            if cwd is not None:
                yield cwd

"""Projects of one daemon: finding them and their settings."""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import Invalid
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.values import Project
from memd.projects import agents
from memd.projects.claude_code import ClaudeSettings
from memd.projects.configuration import Configuration
from memd.projects.git import find_checkout, git_paths
from memd.projects.known import KnownProject, known_project, known_projects
from memd.projects.project import find_project, locate, projects_folder
from memd.projects.roots import Roots
from memd.projects.switches import is_claude_code, reason_for_off
from memd.projects.visits import Visit
from memd.state.database import StateUnusableError

# Sources that name the whole path: several projects may share it on purpose.
_CHOSEN = frozenset(
    {
        "MEMD_MEMORY_PATH",
        "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE",
        "auto_memory_directory",
        "autoMemoryDirectory",
    }
)


class ClientFolders(Struct, frozen=True):
    """The folders in which Claude Code looks for instruction files; absolute paths.

    ``checkout`` is the folder with the nearest ``.git``, else the working directory. ``config`` is
    the user's own, ``managed`` that of the machine's policy. ``excludes`` are globs of files that
    its settings keep it from loading.
    """

    checkout: str
    home: str
    config: str
    managed: str
    excludes: tuple[str, ...]


class _Answer(Struct, frozen=True):
    """An answer of ``where``; it counts while the files that it depends on are the same."""

    paths: tuple[str, ...]
    identities: tuple[object, ...]
    project: Project
    settings: Settings
    problems: tuple[str, ...]


class Projects:
    """Finds the projects of working directories, for one daemon.

    ``below_claude_code`` says whether a process was started by Claude Code, and blocks.
    """

    def __init__(
        self,
        configuration: Configuration,
        roots: Roots,
        environ: Mapping[str, str],
        home: str,
        below_claude_code: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._configuration = configuration
        self._roots = roots  # which project's root uses which memory directory
        self._environ = environ  # the daemon's variables, behind those of a client
        self._home = home
        self._below_claude_code = below_claude_code
        self._client = ClaudeSettings(home)
        self._answers: Recent[tuple[object, ...], _Answer] = Recent()

    async def find(
        self,
        cwd: str,
        environ: Mapping[str, str],
        client: str = "",
        pid: int = 0,
        *,
        by_files: bool = False,
    ) -> tuple[Project, Settings, tuple[str, ...]]:
        """Return what ``where`` returns, in a worker thread; raises what it raises."""
        find = partial(self.where, cwd, environ, client, pid, by_files=by_files)
        return await to_thread.run_sync(find)

    async def settings(self, project: Project | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings in force and a sentence per problem in their files."""
        root = project.root if project else None
        return await to_thread.run_sync(self._configuration.current, root)

    def base(self, environ: Mapping[str, str]) -> str:
        """Return the folder that has one folder for each project. Blocks."""
        settings, _ = self._configuration.current()
        return projects_folder(settings, (environ, self._environ), self._home, [])[0]

    def where(
        self,
        cwd: str,
        environ: Mapping[str, str],
        client: str = "",
        pid: int = 0,
        *,
        by_files: bool = False,
    ) -> tuple[Project, Settings, tuple[str, ...]]:
        """Return a project, its settings and a sentence for each problem in their files. Blocks.

        ``client`` and ``pid`` are the caller's name and process. With ``by_files`` no variable
        switches memory on or off, as for work that nobody called for. Raises Invalid (1009).
        """
        key = (cwd, tuple(sorted(environ.items())), is_claude_code(client), by_files)
        answer = self._answers.get(key)
        if answer is None or answer.identities != _identities(answer.paths):
            answer = self._find(cwd, environ, client, pid, by_files=by_files)
            self._answers[key] = answer
        return self._with_other_root(answer.project), answer.settings, answer.problems

    def _find(
        self, cwd: str, environ: Mapping[str, str], client: str, pid: int, *, by_files: bool
    ) -> _Answer:
        """Return the answer of ``where`` with the files on which it depends."""
        forwarded, environs = {**self._environ, **environ}, (environ, self._environ)
        real, root = locate(cwd)
        paths = (
            *(cwd, self._home, *git_paths(real)),
            *self._configuration.files(root),
            *self._client.files((real, root), forwarded),
        )
        identities = _identities(paths)  # before anything is read
        place = locate(cwd)
        settings, problems = self._configuration.current(place[1])
        claude = self._client.memory(place, forwarded)

        def in_claude_code() -> bool:
            """Return whether the person's own settings of Claude Code count for the caller."""
            if settings.claude_code.bring_memory:
                return False
            return is_claude_code(client) or bool(pid and self._below_claude_code(pid))

        off_in = "" if settings.enabled else self._configuration.off_in(place[1])
        switches = () if by_files else environs
        off = reason_for_off(switches, off_in, claude, in_claude_code)
        project = find_project(place, settings, environs, self._home, claude, off=off)
        paths += (project.memory_dir,)  # a link there may come to lead to the home
        identities += _identities((project.memory_dir,))
        # Which process asks is not among what an answer is stored by.
        is_stored = place == (real, root) and not claude.person_off_in
        return _Answer(paths, identities if is_stored else (), project, settings, problems)

    def off_by_files(self, root: str) -> str:
        """Return which file switches memory off in a project's root, "" if none does. Blocks."""
        with suppress(Invalid):  # moved or removed
            return self.where(root, {}, by_files=True)[0].reason
        return ""

    def claude_code_switch(self, environ: Mapping[str, str]) -> tuple[str, bool]:
        """Return the person's file that switches Claude Code's memory off, and if memd is off too.

        The file is "" if there is none. Blocks.
        """
        at_home = (self._home, self._home)
        path = self._client.memory(at_home, {**self._environ, **environ}).person_off_in
        brings = self._configuration.current()[0].claude_code.bring_memory
        return path, bool(path) and not brings

    def switch_problems(self, cwd: str, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return a sentence for each of Claude Code's settings files with no usable switch. Blocks.

        Raises Invalid.
        """
        return self._client.problems(locate(cwd), {**self._environ, **environ})

    def known(self, visits: Iterable[Visit]) -> tuple[KnownProject, ...]:
        """Return all projects that can be found, from visits, stored roots and folders. Blocks.

        Raises StateUnusableError.
        """
        visited = []
        for visit in visits:
            with suppress(Invalid):  # moved or removed
                project = self.where(visit.cwd, visit.environment, by_files=True)[0]
                visited.append(known_project(project, visit.at))
        return known_projects(self.base({}), self._roots.all(), visited)

    def client_folders(self, project: Project, environ: Mapping[str, str]) -> ClientFolders:
        """Return the folders in which Claude Code looks for a project's instructions. Blocks."""
        config = self._config(environ)
        return ClientFolders(
            checkout=find_checkout(project.cwd),
            home=self._home,
            config=config,
            managed=self._client.managed,
            excludes=self._client.excludes(config),
        )

    def loads_memory(self, project: Project, agent: str, environ: Mapping[str, str]) -> bool:
        """Return whether Claude Code itself loads the memory of a sub-agent. Blocks."""
        config = self._config(environ)
        return agents.loads_memory(
            agents.definition_folders(project.cwd, project.root, config), agent
        )

    def _with_other_root(self, project: Project) -> Project:
        """Return the project, with a problem added if another root uses the same directory."""
        if project.source in _CHOSEN:
            return project
        with suppress(StateUnusableError):  # then the check is skipped; memory still works
            other = self._roots.other(project.memory_dir, project.root)
            if other:
                problem = (
                    f"{project.memory_dir} is also the memory of {other}: the two paths differ only"
                    " in characters that its name cannot keep; give one of them a directory of its"
                    " own with MEMD_MEMORY_PATH"
                )
                return replace(project, problems=(*project.problems, problem))
        return project

    def _config(self, environ: Mapping[str, str]) -> str:
        """Return the folder of Claude Code: what its variable names, if absolute, or ~/.claude."""
        value = environ.get("CLAUDE_CONFIG_DIR") or self._environ.get("CLAUDE_CONFIG_DIR", "")
        folder = value if value.startswith("/") else f"{self._home}/.claude"
        return folder.rstrip("/")


def _identities(paths: tuple[str, ...]) -> tuple[object, ...]:
    """Return what tells a change of each file: inode, mtime, size and mode; of a folder its inode.

    A file that does not exist is ``None``. A link is told from what it leads to.
    """
    result: list[object] = []
    for path in paths:
        try:
            status = os.stat(path)
            link = os.lstat(path).st_ino
        except (OSError, ValueError):  # ValueError: no possible file name
            result.append(None)
            continue
        if stat.S_ISDIR(status.st_mode):
            result.append((link, status.st_ino, status.st_dev))
        else:
            result.append((link, status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode))
    return tuple(result)

"""Projects of one daemon: finding them and their settings."""

import os
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
from memd.projects.configuration import Configuration, identities
from memd.projects.git import ProjectPlace, find_place
from memd.projects.known import (
    KnownProject,
    Visit,
    known_project,
    known_projects,
    visits_by_directory,
)
from memd.projects.project import CLIENT_FOLDER, WHOLE_PATH, find_project, locate, projects_folder
from memd.projects.switches import CLAUDE_NAMES, reason_for_off
from memd.state.database import StateUnusableError
from memd.state.docs import Docs

# A project, its settings, and a sentence for each problem in their files.
Located = tuple[Project, Settings, tuple[str, ...]]


class OwnerRoot(Struct, frozen=True):
    """The root that owns a memory directory (the document's place), and another that came later.

    Two roots can have the same slug, and so the same directory; they would share memories although
    nobody wants that. So the first root that uses a directory owns it, and both are told.
    """

    root: str
    other: str = ""


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

    files: tuple[str, ...]
    identities: tuple[object, ...]
    located: Located


class Projects:
    """Finds the projects of working directories, for one daemon.

    ``below_claude_code`` says whether a process was started by Claude Code, and blocks.
    """

    def __init__(
        self,
        configuration: Configuration,
        docs: Docs,
        environ: Mapping[str, str],
        home: str,
        below_claude_code: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._configuration = configuration
        self._docs = docs  # which project's root uses which memory directory
        self.environ = environ  # the daemon's variables, for work without a caller
        self._home = home
        self._below_claude_code = below_claude_code
        self._client = ClaudeSettings(home)
        self._answers: Recent[tuple[object, ...], _Answer] = Recent()

    async def find(
        self, cwd: str, environ: Mapping[str, str], client: str = "", *, by_files: bool = False
    ) -> Located:
        """Return what ``where`` returns, in a worker thread; raises what it raises."""
        return await to_thread.run_sync(
            partial(self.where, cwd, environ, client, by_files=by_files)
        )

    async def settings(self, project: Project | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings in force and a sentence per problem in their files."""
        root = project.root if project else None
        return await to_thread.run_sync(self._configuration.current, root)

    def base(self, environ: Mapping[str, str]) -> str:
        """Return the folder that has one folder for each project. Blocks."""
        settings, _ = self._configuration.current()
        return projects_folder(settings, environ, self._home, [])[0]

    def where(
        self,
        cwd: str,
        environ: Mapping[str, str],
        client: str = "",
        pid: int = 0,
        *,
        by_files: bool = False,
    ) -> Located:
        """Return a project, its settings and a sentence for each problem in their files. Blocks.

        ``client`` and ``pid`` are the caller's name and process. With ``by_files`` no variable
        switches memory on or off, as for work that nobody called for. Raises Invalid (1009).
        """
        key = (cwd, frozenset(environ.items()), client in CLAUDE_NAMES, by_files)
        answer = self._answers.get(key)
        if answer is None or answer.identities != identities(answer.files):
            answer = self._find(cwd, environ, client, pid, by_files=by_files)
            self._answers[key] = answer
        return answer.located

    def off_by_files(self, root: str) -> str:
        """Return which file switches memory off in a project's root, "" if none does. Blocks."""
        with suppress(Invalid):  # moved or removed
            return self.where(root, self.environ, by_files=True)[0].reason
        return ""

    def claude_code_switch(self, environ: Mapping[str, str]) -> tuple[str, bool]:
        """Return the person's file that switches Claude Code's memory off, and if memd is off too.

        The file is "" if there is none. Blocks.
        """
        at_home = ProjectPlace(self._home, self._home, self._home)
        path = self._client.memory(at_home, environ).person_off_in
        brings = self._configuration.current()[0].claude_code.bring_memory
        return path, bool(path) and not brings

    def switch_problems(self, cwd: str, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return a sentence for each of Claude Code's settings files with no usable switch. Blocks.

        Raises Invalid.
        """
        return self._client.problems(locate(cwd), environ)

    def known(self, visits: Iterable[Visit]) -> tuple[KnownProject, ...]:
        """Return all projects that can be found, from visits, stored roots and folders. Blocks.

        Raises StateUnusableError.
        """
        visited = []
        for visit in visits:
            with suppress(Invalid):  # moved or removed
                project = self.where(visit.cwd, visit.environment, by_files=True)[0]
                visited.append(known_project(project, visit.at))
        owners = self._docs.list_all(OwnerRoot).items()
        roots = {directory: owner.root for (directory, _), owner in owners}
        return known_projects(self.base(self.environ), roots, visited)

    def roots(self) -> dict[str, str]:
        """Return the root of each memory directory (its real path) where one is known. Blocks.

        Where no root is stored, it is the directory last worked in. Raises StateUnusableError.
        """
        owners = self._docs.list_all(OwnerRoot).items()
        roots = {
            directory: visit.cwd for directory, visit in visits_by_directory(self._docs).items()
        }
        return roots | {os.path.realpath(directory): owner.root for (directory, _), owner in owners}

    def client_folders(self, project: Project, environ: Mapping[str, str]) -> ClientFolders:
        """Return the folders in which Claude Code looks for a project's instructions. Blocks."""
        config = self._config(environ)
        return ClientFolders(
            checkout=find_place(project.cwd).checkout,
            home=self._home,
            config=config,
            managed=self._client.managed,
            excludes=self._client.excludes(config),
        )

    def loads_memory(self, project: Project, agent: str, environ: Mapping[str, str]) -> bool:
        """Return whether Claude Code itself loads the memory of a sub-agent. Blocks."""
        config = self._config(environ)
        return agents.loads_memory(project.cwd, project.root, config, agent)

    def _find(
        self, cwd: str, environ: Mapping[str, str], client: str, pid: int, *, by_files: bool
    ) -> _Answer:
        """Return the answer of ``where`` with the files on which it depends."""
        place = locate(cwd)
        files = dict.fromkeys(  # each once
            (
                *(cwd, self._home, *place.files),
                *self._configuration.files(place.root),
                *self._client.files(place, environ),
            )
        )
        before = identities(files)
        is_stored = locate(cwd) == place
        settings, problems = self._configuration.current(place.root)
        claude = self._client.memory(place, environ)

        def in_claude_code() -> bool:
            """Return whether the person's own settings of Claude Code count for the caller."""
            if settings.claude_code.bring_memory:
                return False
            return client in CLAUDE_NAMES or bool(pid and self._below_claude_code(pid))

        off_in = "" if settings.enabled else self._configuration.off_in(place.root)
        off = reason_for_off({} if by_files else environ, off_in, claude, in_claude_code)
        project = find_project(place, settings, environ, self._home, claude, off=off)
        more = [project.memory_dir]  # a link there may come to lead to the home
        if project.source not in WHOLE_PATH:  # such a one may be shared on purpose
            try:
                other = self._other_root(project.memory_dir, place.root)
            except StateUnusableError:  # then the check is skipped; memory still works
                other, is_stored = "", False
            more += [other] if other else []
            if other and os.path.isdir(other):
                problem = (
                    f"{project.memory_dir} is also the memory of {other}: the two paths differ only"
                    " in characters that its name cannot keep; give one of them a directory of its"
                    " own with MEMD_MEMORY_PATH"
                )
                project = replace(project, problems=(*project.problems, problem))
        # Which process asks is not among what an answer is stored by.
        is_stored = is_stored and not claude.person_off_in
        now = (*before, *identities(more)) if is_stored else ()
        return _Answer((*files, *more), now, (project, settings, problems))

    def _other_root(self, directory: str, root: str) -> str:
        """Return another root whose memory directory this is too, "" if there is none.

        A root becomes the owner of a directory that has none, or whose owner no longer exists.
        Raises StateUnusableError.
        """
        owner = self._docs.get(OwnerRoot, directory)
        if owner is None or (owner.root != root and not os.path.isdir(owner.root)):
            changed = OwnerRoot(root)
        elif root not in (owner.root, owner.other):
            changed = OwnerRoot(owner.root, root)
        else:
            return owner.other if owner.root == root else owner.root
        self._docs.put(changed, directory)
        self._answers.clear()  # the owner's answer does not know the other root
        return "" if changed.root == root else changed.root

    def _config(self, environ: Mapping[str, str]) -> str:
        """Return the folder of Claude Code: what its variable names, if absolute, or ~/.claude."""
        value = environ.get("CLAUDE_CONFIG_DIR", "")
        folder = value if value.startswith("/") else f"{self._home}/{CLIENT_FOLDER}"
        return folder.rstrip("/")

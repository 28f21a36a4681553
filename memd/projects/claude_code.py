"""Find where Claude Code itself keeps and loads a project's memory, by its own settings.

Observed with Claude Code 2.1.329: of policy, local, project and user settings the first that sets
an option wins; project settings lie in the working directory, local settings there or in the
project's root. A value other than 0 of CLAUDE_CODE_DISABLE_AUTO_MEMORY switches its memory off, 0
switches it on whatever the settings say. It compacts by itself unless ``autoCompactEnabled`` is
false in these settings or in its older ``.claude.json``, or a variable disables it.

memd believes less than Claude Code: ``settings.json``, which a repository brings, never chooses a
directory, and ``settings.local.json`` only in a folder that the person trusts. Otherwise a checkout
could read the memory of another project.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from memd.base.text import read_json
from memd.projects.git import ProjectPlace, upwards

T = TypeVar("T")
POLICY = (
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)
_FILE_BYTES = 4 * 1024 * 1024  # of a settings file that are read
# Options in the settings.
_EXCLUDES = "claudeMdExcludes"
ENABLED, _DIRECTORY = "autoMemoryEnabled", "autoMemoryDirectory"
_COMPACTS = "autoCompactEnabled"
_NEVER_COMPACTS = ("DISABLE_COMPACT", "DISABLE_AUTO_COMPACT")  # variables of the environment
_FALSY = ("", "0", "false", "no", "off")


class ClientMemory(Struct, frozen=True):
    """Claude Code's memory settings.

    ``directory`` is where Claude Code keeps the memories, ``allowed_directory`` the same by the
    files that memd believes; "" for the default one. ``off_in`` is the file of the repository or of
    the policy that switches memory off, or "", and ``person_off_in`` the person's own one if it
    does and the policy does not say otherwise.
    """

    enabled: bool = True
    directory: str = ""
    allowed_directory: str = ""
    compacts: bool = True  # whether Claude Code compacts a conversation by itself
    off_in: str = ""
    person_off_in: str = ""


class ClaudeSettings:
    """Claude Code's settings files. Methods block and never fail.

    ``policy`` is the administrator's settings file, ``managed`` the folder of all that the
    administrator manages. A ``place`` is that of a working directory, ``environ`` its variables.
    """

    def __init__(self, home: str, policy: str = POLICY) -> None:
        self._home = home
        self._policy = policy
        self.managed = os.path.dirname(policy)

    def files(self, place: ProjectPlace, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the paths of all files on which ``memory`` depends."""
        older, ranked, repository = self._files(place, environ)
        return (older, *ranked, *repository)

    def memory(self, place: ProjectPlace, environ: Mapping[str, str]) -> ClientMemory:
        """Return the memory settings that hold in a place."""
        older_file, ranked, repository = self._files(place, environ)
        older = _read(older_file)[0]
        read = {path: _read(path)[0] for path in {*ranked, *repository}}
        user_file, _, *local, _ = ranked
        believed = (user_file, *(local if _trusts(older, place.cwd) else ()), self._policy)
        by_rank = [read[path] for path in ranked]
        compacts = _last([older, *by_rank], _COMPACTS, bool, default=True)
        switches = [environ.get(name, "").strip().lower() for name in _NEVER_COMPACTS]
        policy_says = isinstance(read[self._policy].get(ENABLED), bool)
        is_off = read[user_file].get(ENABLED) is False and not policy_says
        switching = (self._policy, *repository)
        return ClientMemory(
            enabled=_last(by_rank, ENABLED, bool, default=True),
            directory=_last(by_rank, _DIRECTORY, str, default=""),
            allowed_directory=_last([read[path] for path in believed], _DIRECTORY, str, default=""),
            compacts=compacts and all(value in _FALSY for value in switches),
            off_in=next((path for path in switching if read[path].get(ENABLED) is False), ""),
            person_off_in=user_file if is_off else "",
        )

    def problems(self, place: ProjectPlace, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return a sentence for each file whose switch of memory cannot be read."""
        _, (user_file, *_), repository = self._files(place, environ)
        problems = [_read(path)[1] for path in (user_file, *repository, self._policy)]
        return tuple(filter(None, problems))

    def excludes(self, config: str) -> tuple[str, ...]:
        """Return the globs of instruction files that are not to be loaded.

        They come from the user's settings in the folder ``config`` and from the policy. Those of a
        repository do not count, or it could hide what the user wrote.
        """
        result: list[str] = []
        for path in (f"{config}/settings.json", self._policy):
            globs = _read(path)[0].get(_EXCLUDES)
            if isinstance(globs, list):
                result += [glob for glob in globs if isinstance(glob, str)]
        return tuple(result)

    def _files(
        self, place: ProjectPlace, environ: Mapping[str, str]
    ) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Return the older settings file, the settings files by rank, and the repository's own.

        Of the second the last that sets an option wins. By the third a repository may switch memory
        off: they lie in the project's root, in the checkout of a worktree and, since Claude Code
        reads them there, in the working directory. The folder of the person's own settings is no
        repository's.
        """
        config = environ.get("CLAUDE_CONFIG_DIR", "")
        user_file = f"{config or f'{self._home}/.claude'}/settings.json"
        person_folder = os.path.realpath(os.path.dirname(user_file))
        repository: list[str] = []
        for directory in dict.fromkeys((place.root, place.checkout, place.cwd)):
            folder = f"{directory.rstrip('/')}/.claude"
            if folder != person_folder:
                repository += (f"{folder}/settings.json", f"{folder}/settings.local.json")
        in_cwd = [
            f"{place.cwd}/.claude/{name}" for name in ("settings.json", "settings.local.json")
        ]
        local_in_root = f"{place.root}/.claude/settings.local.json"
        ranked = (user_file, *in_cwd, local_in_root, self._policy)
        return f"{config or self._home}/.claude.json", ranked, tuple(repository)


def _last(files: Sequence[Mapping[str, Any]], name: str, kind: type[T], *, default: T) -> T:
    """Return the value of an option in the last file that sets it to such a value but ""."""
    values = [options.get(name) for options in files]
    return next((v for v in reversed(values) if isinstance(v, kind) and v != ""), default)


def _trusts(older: Mapping[str, Any], cwd: str) -> bool:
    """Return whether the person has trusted a directory or one above it in Claude Code."""
    projects = older.get("projects")
    by_path = projects if isinstance(projects, dict) else {}
    facts = [by_path.get(path) for path in upwards(cwd)]
    return any(isinstance(f, dict) and f.get("hasTrustDialogAccepted") is True for f in facts)


def _read(path: str) -> tuple[dict[str, Any], str]:
    """Return the options in a settings file, and why its switch of memory cannot be read, or ""."""
    try:
        with open(path, "rb", opener=_opener) as file:
            options = read_json(file.read(_FILE_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return {}, ""
    except (OSError, ValueError) as error:  # ValueError: no possible file name
        why = getattr(error, "strerror", None) or "the path has an impossible character"
        return {}, f"{path} cannot be read: {why}"
    if not isinstance(options, dict):
        return {}, f"{path} is no JSON object, so its {ENABLED} does not count"
    is_valid = isinstance(options.get(ENABLED, True), bool)
    problem = f"{ENABLED} in {path} must be true or false; it does not count"
    return options, "" if is_valid else problem


def _opener(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)

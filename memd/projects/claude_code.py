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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct

from memd.base.recent import Recent
from memd.base.text import read_json, read_object
from memd.projects.git import find_checkout

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
    """Claude Code's settings files, read again when they change. Blocks; never fails.

    ``managed`` is the folder of the administrator's policy file.
    """

    def __init__(self, home: str, policy: str = POLICY) -> None:
        self._home = home
        self._policy = policy  # the path of the administrator's settings file
        self.managed = os.path.dirname(policy)  # the folder of all that the administrator manages
        # The identity (inode, times, size) and the options of each file, by its path.
        self._files: Recent[str, tuple[tuple[int, ...], dict[str, Any]]] = Recent()

    def files(self, place: tuple[str, str], environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the paths of all files on which ``memory`` depends."""
        user_file = self._user_file(environ)
        switching = _repository_files(place, user_file)
        return (self._older_file(environ), *self._ranked(place, user_file), *switching)

    def memory(self, place: tuple[str, str], environ: Mapping[str, str]) -> ClientMemory:
        """Return the memory settings for ``place``: a working directory and its project's root."""
        user_file, older = self._user_file(environ), self._read(self._older_file(environ))
        ranked = self._ranked(place, user_file)
        switching = (self._policy, *_repository_files(place, user_file))
        read = {path: self._read(path) for path in {*ranked, *switching}}
        local = ranked[2:-1] if _trusts(older, place[0]) else ()
        believed = (user_file, *local, self._policy)
        switches = [environ.get(name, "").strip().lower() for name in _NEVER_COMPACTS]
        compacts = _last([older, *(read[path] for path in ranked)], _COMPACTS, bool, default=True)
        policy_says = isinstance(read[self._policy].get(ENABLED), bool)
        is_off = read[user_file].get(ENABLED) is False and not policy_says
        return ClientMemory(
            enabled=_last([read[path] for path in ranked], ENABLED, bool, default=True),
            directory=_last([read[path] for path in ranked], _DIRECTORY, str, default=""),
            allowed_directory=_last([read[path] for path in believed], _DIRECTORY, str, default=""),
            compacts=compacts and all(value in _FALSY for value in switches),
            off_in=next((path for path in switching if read[path].get(ENABLED) is False), ""),
            person_off_in=user_file if is_off else "",
        )

    def problems(self, place: tuple[str, str], environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return a sentence for each file whose switch of memory cannot be read."""
        user_file = self._user_file(environ)
        files = (user_file, *_repository_files(place, user_file), self._policy)
        return tuple(filter(None, map(_problem, files)))

    def excludes(self, config: str) -> tuple[str, ...]:
        """Return the globs of instruction files that are not to be loaded.

        They come from the user's settings in the folder ``config`` and from the policy. Those of a
        repository do not count, or it could hide what the user wrote.
        """
        result: list[str] = []
        for path in (f"{config}/settings.json", self._policy):
            globs = self._read(path).get(_EXCLUDES)
            if isinstance(globs, list):
                result += [glob for glob in globs if isinstance(glob, str)]
        return tuple(result)

    def _user_file(self, environ: Mapping[str, str]) -> str:
        """Return the path of the person's own settings file."""
        folder = environ.get("CLAUDE_CONFIG_DIR", "")
        return f"{folder or f'{self._home}/.claude'}/settings.json"

    def _older_file(self, environ: Mapping[str, str]) -> str:
        """Return the path of the older settings file, which also says what the person trusts."""
        return f"{environ.get('CLAUDE_CONFIG_DIR', '') or self._home}/.claude.json"

    def _ranked(self, place: tuple[str, str], user_file: str) -> tuple[str, ...]:
        """Return the settings files; the last that sets an option wins."""
        cwd, root = place
        local = (f"{cwd}/.claude/settings.local.json", f"{root}/.claude/settings.local.json")
        return (user_file, f"{cwd}/.claude/settings.json", *local, self._policy)

    def _read(self, path: str) -> dict[str, Any]:
        """Return a settings file's JSON object, empty if it cannot be read."""
        with suppress(OSError, ValueError):  # ValueError: no possible file name
            status = os.stat(path)
            identity = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
            cached = self._files.get(path)
            if cached is None or cached[0] != identity:
                with open(path, "rb", opener=_opener) as file:
                    cached = (identity, read_object(file.read(_FILE_BYTES)))
                self._files[path] = cached
            return cached[1]
        return {}


def _last(files: Sequence[Mapping[str, Any]], name: str, kind: type[T], *, default: T) -> T:
    """Return the value of an option in the last file that sets it to such a value but ""."""
    values = [options.get(name) for options in files]
    return next((v for v in reversed(values) if isinstance(v, kind) and v != ""), default)


def _trusts(older: Mapping[str, Any], cwd: str) -> bool:
    """Return whether the person has trusted a directory or one above it in Claude Code."""
    projects = older.get("projects")
    by_path = projects if isinstance(projects, dict) else {}
    facts = [by_path.get(path) for path in _upwards(cwd)]
    return any(isinstance(f, dict) and f.get("hasTrustDialogAccepted") is True for f in facts)


def _repository_files(place: tuple[str, str], user_file: str) -> Iterator[str]:
    """Yield the settings files by which a repository may switch memory off.

    They lie in the project's root, in the checkout of a worktree and, since Claude Code reads them
    there, in the working directory. The folder of the person's own settings is no repository's.
    """
    cwd, root = place
    person_folder = os.path.realpath(os.path.dirname(user_file))
    checkout = find_checkout(cwd) if cwd != root else root
    for directory in dict.fromkeys((root, checkout, cwd)):
        folder = f"{directory.rstrip('/')}/.claude"
        if folder != person_folder:
            yield f"{folder}/settings.json"
            yield f"{folder}/settings.local.json"


def _problem(path: str) -> str:
    """Return why the switch of memory in a settings file cannot be read, "" if it can. Blocks."""
    try:
        with open(path, "rb", opener=_opener) as file:
            options = read_json(file.read(_FILE_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:  # ValueError: no possible file name
        why = getattr(error, "strerror", None) or "the path has an impossible character"
        return f"{path} cannot be read: {why}"
    if not isinstance(options, dict):
        return f"{path} is no JSON object, so its {ENABLED} does not count"
    if isinstance(options.get(ENABLED, True), bool):
        return ""
    return f"{ENABLED} in {path} must be true or false; it does not count"


def _opener(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and each directory above it."""
    yield path
    while path != "/":
        path = os.path.dirname(path)
        yield path

"""Where Claude Code itself keeps and loads a project's memory, by its own settings.

As Claude Code 2.1.329 was seen to do it: of policy, local, project and user settings the first that
says something wins; project settings lie in the working directory, local settings there or in the
project's root. A value other than 0 of CLAUDE_CODE_DISABLE_AUTO_MEMORY switches its memory off, 0
switches it on whatever the settings say. It compacts by itself unless ``autoCompactEnabled`` says
no, in these settings or in its older ``.claude.json``, or a variable does.

What a repository brings along names a directory only where the person trusts that folder. Claude
Code does without that when nobody sits in front of it; memd does not, or a checkout could borrow
the memory of another project.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from memd.core.recent import Recent
from memd.core.text import read_object

POLICY = (
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)
_BYTES = 4 * 1024 * 1024
_EXCLUDES = "claudeMdExcludes"
_ENABLED, _DIRECTORY = "autoMemoryEnabled", "autoMemoryDirectory"
_COMPACTS = "autoCompactEnabled"
_NEVER_COMPACTS = ("DISABLE_COMPACT", "DISABLE_AUTO_COMPACT")
_FALSY = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class ClientMemory:
    """What Claude Code's settings say: whether its memory is on, and where it is ("" by default).

    ``trusted`` is false where a folder that nobody trusts says where. ``compacts`` says that it
    compacts a conversation by itself.
    """

    enabled: bool = True
    directory: str = ""
    trusted: bool = True
    compacts: bool = True


class ClaudeSettings:
    """Claude Code's settings files, read again when they change. Blocks; never fails.

    ``managed`` is the folder of what the machine's owner prescribes.
    """

    def __init__(self, home: str, policy: str = POLICY) -> None:
        self._home = home
        self._policy = policy
        self.managed = os.path.dirname(policy)
        self._files: Recent[str, tuple[tuple[int, ...], dict[str, Any]]] = Recent()

    def memory(self, place: tuple[str, str], environ: Mapping[str, str]) -> ClientMemory:
        """Return what holds for a working directory and its project's root."""
        cwd, root = place
        folder = environ.get("CLAUDE_CONFIG_DIR", "")
        user = f"{folder or f'{self._home}/.claude'}/settings.json"
        brought = (
            f"{cwd}/.claude/settings.json",
            f"{cwd}/.claude/settings.local.json",
            f"{root}/.claude/settings.local.json",
        )
        enabled, directory, source = True, "", ""
        older = self._read(f"{folder or self._home}/.claude.json").get(_COMPACTS)
        compacts = older is not False
        for path in (user, *brought, self._policy):  # the last that says something wins
            options = self._read(path)
            if isinstance(options.get(_ENABLED), bool):
                enabled = options[_ENABLED]
            if isinstance(options.get(_COMPACTS), bool):
                compacts = options[_COMPACTS]
            if isinstance(options.get(_DIRECTORY), str) and options[_DIRECTORY]:
                directory, source = options[_DIRECTORY], path
        trusted = source not in brought or self._trusts(folder or self._home, cwd)
        off = (environ.get(name, "").strip().lower() for name in _NEVER_COMPACTS)
        compacts = compacts and all(value in _FALSY for value in off)
        return ClientMemory(enabled, directory, trusted, compacts)

    def excludes(self, config: str) -> tuple[str, ...]:
        """Return the globs of instruction files that are not to be loaded.

        Those of the user's settings in the folder ``config`` and of the policy: a repository's own
        do not count, or it could hide what the user wrote.
        """
        read = (
            self._read(path).get(_EXCLUDES) for path in (f"{config}/settings.json", self._policy)
        )
        lists = (value for value in read if isinstance(value, list))
        return tuple(glob for globs in lists for glob in globs if isinstance(glob, str))

    def _trusts(self, folder: str, cwd: str) -> bool:
        projects = self._read(f"{folder}/.claude.json").get("projects")
        known = projects if isinstance(projects, dict) else {}
        facts = (known.get(path) for path in _upwards(cwd))
        return any(isinstance(f, dict) and f.get("hasTrustDialogAccepted") is True for f in facts)

    def _read(self, path: str) -> dict[str, Any]:
        """Return a settings file's members, none where it cannot be read."""
        with suppress(OSError, ValueError):  # ValueError: no possible file name
            facts = os.stat(path)
            identity = (facts.st_ino, facts.st_mtime_ns, facts.st_size, facts.st_mode)
            known = self._files.get(path)
            if known is None or known[0] != identity:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                with open(descriptor, "rb") as file:
                    known = (identity, read_object(file.read(_BYTES)))
                self._files[path] = known
            return known[1]
        return {}


def _upwards(path: str) -> Iterator[str]:
    yield path
    while path != "/":
        path = os.path.dirname(path)
        yield path

"""The settings files, read again whenever they change; an invalid file never switches memory off.

Three sources, the weakest first: the user's own ``memd.toml``, the system policy, and, for few
options only, ``.memd.toml`` in the project's root: a repository may switch memory off for itself,
may have more of its agents' incoming messages held or refused, and can set nothing else.
"""

import os
import stat
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from memd.base import settings_file
from memd.base.places import SYSTEM_POLICY
from memd.base.recent import Recent
from memd.base.settings import INBOUND, MessagesSettings, Settings

REPOSITORY_FILE = ".memd.toml"
_INCOMING = ("inbound", "inbound_across", "inbound_unregistered")  # a repository may set these
_PARSED = 16  # settings that stay in memory
_ABSENT = (FileNotFoundError, NotADirectoryError)

Options = dict[str, Any]


def identities(paths: Iterable[str]) -> tuple[object, ...]:
    """Return what tells a change of each file: inode, mtime, size and mode; of a folder its inode.

    A link is told from what it leads to. ``None`` stands for a file that does not exist, an error's
    number for one that cannot be looked at.
    """
    result: list[object] = []
    for path in paths:
        link = 0
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                link, status = status.st_ino, os.stat(path)
        except (OSError, ValueError) as error:  # ValueError: no possible file name
            result.append(None if isinstance(error, _ABSENT) else getattr(error, "errno", 0))
            continue
        if stat.S_ISDIR(status.st_mode):
            result.append((link, status.st_ino, status.st_dev))
        else:
            result.append((link, status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode))
    return tuple(result)


class Configuration:
    """The settings in force. Methods block."""

    def __init__(self, user_file: str, policy_file: str = SYSTEM_POLICY) -> None:
        self.user_file = user_file
        self.policy_file = policy_file
        # By the identities of their files: the settings, and their problems.
        self._parsed: Recent[object, tuple[Settings, tuple[str, ...]]] = Recent(_PARSED)

    def files(self, root: str | None) -> tuple[str, ...]:
        """Return the paths of the files on which the settings of a project root depend."""
        repository = (f"{root}/{REPOSITORY_FILE}",) if root else ()
        return (self.user_file, self.policy_file, *repository)

    def current(self, root: str | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings for a project root (or for none) and a sentence per problem."""
        key = (root, identities(self.files(root)))
        result = self._parsed.get(key)
        if result is None:
            result = settings_file.load(self.user_file, self.policy_file)
            if root:
                result = _with_repository(*result, f"{root}/{REPOSITORY_FILE}")
            self._parsed[key] = result
        return result

    def off_in(self, root: str) -> str:
        """Return the file that switches memory off for a project's root; call it where one does."""
        repository = f"{root}/{REPOSITORY_FILE}"
        for path in (repository, self.policy_file):
            if settings_file.read(path, private=path != repository)[0].get("enabled") is False:
                return path
        return self.user_file


def _with_repository(
    settings: Settings, problems: tuple[str, ...], path: str
) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings with the permitted options of a repository's file, and all problems."""
    options, problem = settings_file.read(path, private=False)
    more = [problem] if problem else []
    messages = options.get("messages")
    incoming = messages if isinstance(messages, dict) else {}
    stricter, not_allowed = _stricter(settings.messages, incoming)
    permitted = {"enabled", "messages"} if isinstance(messages, dict) else {"enabled"}
    ignored = sorted({*(set(options) - permitted), *not_allowed})
    if ignored:
        more.append(
            f"{REPOSITORY_FILE} in the project may only switch memory off and make "
            f"{', '.join(_INCOMING)} of [messages] stricter; ignored: {', '.join(ignored)}"
        )
    if not isinstance(options.get("enabled", True), bool):
        sentence = f"enabled in {REPOSITORY_FILE} of the project must be true or false; ignored"
        more.append(sentence)
    if options.get("enabled") is False:
        settings = replace(settings, enabled=False)
    return replace(settings, messages=stricter), (*problems, *more)


def _stricter(settings: MessagesSettings, incoming: Options) -> tuple[MessagesSettings, list[str]]:
    """Return the settings made stricter by a repository, and the names that are ignored."""
    stricter: dict[str, Any] = {}
    for name, value in incoming.items():
        if name not in _INCOMING or value not in INBOUND:
            continue
        present = getattr(settings, name)
        if INBOUND.index(value) >= INBOUND.index(present):  # the strictest is the last
            stricter[name] = value
    not_allowed = [f"messages.{name}" for name in incoming if name not in stricter]
    return replace(settings, **stricter), not_allowed

"""The settings files, read again whenever they change; an invalid file never switches memory off.

Three sources, the weakest first: the user's own ``memd.toml``, the system policy, and, for few
options only, ``.memd.toml`` in the project's root: a repository may switch memory off for itself,
may have more of its agents' incoming messages held or refused, and can set nothing else.
"""

import os
import threading
from dataclasses import replace
from typing import Any

from memd.base import settings_file
from memd.base.options import Layer
from memd.base.places import SYSTEM_POLICY
from memd.base.recent import Recent
from memd.base.settings import INBOUND, MessagesSettings, Settings, parse

REPOSITORY_FILE = ".memd.toml"
_INCOMING = ("inbound", "inbound_across", "inbound_unregistered")  # a repository may set these

# A file's inode, mtime in ns, size and mode, by which a change is noticed; None without a file.
Identity = tuple[int, int, int, int] | None
Loaded = tuple[Identity, dict[str, Any], str]  # with the options, and a problem or ""


class Configuration:
    """The settings in force; reading them costs one ``stat`` per source."""

    def __init__(self, user_file: str, policy_file: str = SYSTEM_POLICY) -> None:
        self.user_file = user_file
        self.policy_file = policy_file
        self._files: Recent[str, Loaded] = Recent()  # by path
        # The last settings with their problems, by the identities of their files.
        self._parsed: dict[tuple[Identity, ...], tuple[Settings, tuple[str, ...]]] = {}
        self._lock = threading.Lock()  # held while files are read and settings are made

    def current(self, root: str | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings for a project root (or for none) and a sentence per problem."""
        with self._lock:
            user, policy = self._load(self.user_file), self._load(self.policy_file)
            repository = self._load(f"{root}/{REPOSITORY_FILE}", private=False) if root else None
            identities = (user[0], policy[0], repository[0] if repository else None)
            if identities not in self._parsed:
                parsed = _combine(self.user_file, user, self.policy_file, policy)
                if repository:
                    parsed = _with_repository(*parsed, repository)
                self._parsed = {identities: parsed}
            return self._parsed[identities]

    def files(self, root: str) -> tuple[str, str, str]:
        """Return the paths of the files on which the settings of a project root depend."""
        return self.user_file, self.policy_file, f"{root}/{REPOSITORY_FILE}"

    def off_in(self, root: str) -> str:
        """Return the file that switches memory off for a project's root; call it where one does."""
        repository = f"{root}/{REPOSITORY_FILE}"
        with self._lock:
            for path in (repository, self.policy_file):
                if self._load(path, private=path != repository)[1].get("enabled") is False:
                    return path
        return self.user_file

    def _load(self, path: str, *, private: bool = True) -> Loaded:
        """Return a settings file's identity, options and problem; reread it if it changed."""
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None, {}, ""
        except OSError as error:
            return None, {}, f"{path} cannot be read: {error.strerror}"
        identity = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
        loaded = self._files.get(path)
        if loaded is None or loaded[0] != identity:
            loaded = (identity, *settings_file.read(path, status, private=private))
            self._files[path] = loaded
        return loaded


def _combine(
    user_file: str, user: Loaded, policy_file: str, policy: Loaded
) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of the user's file and the policy, and all problems of both."""
    settings, problems = parse([Layer(user_file, user[1]), Layer(policy_file, policy[1])])
    return settings, tuple(text for text in (user[2], policy[2]) if text) + problems


def _with_repository(
    settings: Settings, problems: tuple[str, ...], repository: Loaded
) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings with a repository's permitted options, and all problems."""
    _, options, problem = repository
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
        more.append(f"enabled in {REPOSITORY_FILE} of the project must be true or false; ignored")
    if options.get("enabled") is False:
        settings = replace(settings, enabled=False)
    return replace(settings, messages=stricter), problems + tuple(more)


def _stricter(
    settings: MessagesSettings, incoming: dict[str, Any]
) -> tuple[MessagesSettings, list[str]]:
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

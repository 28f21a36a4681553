"""The settings files, read again whenever they change; an invalid file never switches memory off.

Three sources, the weakest first: the user's own ``memd.toml``, the system policy, and, for few
options only, ``.memd.toml`` in the project's root: a repository may switch memory off for itself,
may have more of its agents' incoming messages held or refused, and can set nothing else. The
user's file counts only if it belongs to the user or root and nobody else may write it, since it
contains endpoints, keys and paths. A key counts only in a file that nobody else may read.
"""

import os
import stat
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memd.core.options import Layer
from memd.core.places import SYSTEM_POLICY
from memd.core.recent import Recent
from memd.core.settings import INBOUND, MessagesSettings, Settings, parse

REPOSITORY_FILE = ".memd.toml"
_FILE_BYTES = 1024 * 1024
_OTHERS_WRITE, _OTHERS_ACCESS = 0o022, 0o077  # bits of a file's mode: write, and anything at all
_KEYS = ("api_key", "auth_token")  # options of [model] that count in a private file alone
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

    def own(self) -> tuple[Mapping[str, Any], int]:
        """Return the options in the user's own file, and its mtime in ns, 0 without a file."""
        with self._lock:
            identity, options, _ = self._load(self.user_file)
        return options, identity[1] if identity else 0

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
            loaded = (identity, *_read(path, status, private=private))
            self._files[path] = loaded
        return loaded


def _read(path: str, status: os.stat_result, *, private: bool) -> tuple[dict[str, Any], str]:
    """Return the options of a settings file, and why it is ignored, "" if it is not.

    A ``private`` file must belong to the user or root, and nobody else may write it.
    """
    if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
        return {}, f"{path} is not a regular file of at most 1 MiB; it is ignored"
    if private and status.st_uid not in (os.getuid(), 0):
        return {}, f"{path} belongs to another user; it is ignored"
    if private and status.st_mode & _OTHERS_WRITE:
        return {}, f"{path} may be written by others; it is ignored until you run chmod go-w on it"
    try:
        with open(path, "rb") as file:
            options = tomllib.load(file)
        return _without_open_keys(path, status, options) if private else (options, "")
    except OSError as error:  # pragma: no cover - its test gives up its rights, and coverage
        return {}, f"{path} cannot be read: {error.strerror}"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return {}, f"{path} is not valid TOML ({error}); it is ignored"


def _without_open_keys(
    path: str, status: os.stat_result, options: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """Return the options without the API keys if others may read the file, and a sentence on it."""
    model = options.get("model")
    if not status.st_mode & _OTHERS_ACCESS or not isinstance(model, dict):
        return options, ""
    open_keys = [name for name in _KEYS if model.get(name)]
    if not open_keys:
        return options, ""
    without_keys = {name: value for name, value in model.items() if name not in open_keys}
    names = " and ".join(f"model.{name}" for name in open_keys)
    return (
        {**options, "model": without_keys},
        f"{path} may be read by others; {names} in it is ignored until you run chmod 600 on it",
    )


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

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
_KEYS = ("api_key", "auth_token")
_INCOMING = ("inbound", "inbound_across", "inbound_unregistered")

Identity = tuple[int, int, int, int] | None
Loaded = tuple[Identity, dict[str, Any], str]


class Configuration:
    """The settings in force; reading them costs one ``stat`` per source."""

    def __init__(self, user_file: str, policy_file: str = SYSTEM_POLICY) -> None:
        self.user_file = user_file
        self.policy_file = policy_file
        self._files: Recent[str, Loaded] = Recent()
        self._parsed: dict[tuple[Identity, ...], tuple[Settings, tuple[str, ...]]] = {}
        self._lock = threading.Lock()

    def current(self, root: str | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings for a project root (or for none) and a sentence per problem."""
        with self._lock:
            user, policy = self._load(self.user_file), self._load(self.policy_file)
            repository = self._load(f"{root}/{REPOSITORY_FILE}", private=False) if root else None
            key = (user[0], policy[0], repository[0] if repository else None)
            if key not in self._parsed:
                self._parsed = {key: _combine(self.user_file, user, self.policy_file, policy)}
                if repository:
                    self._parsed[key] = _with_repository(*self._parsed[key], repository)
            return self._parsed[key]

    def own(self) -> tuple[Mapping[str, Any], int]:
        """Return the options in the user's own file, and its mtime in ns, 0 without a file."""
        with self._lock:
            identity, options, _ = self._load(self.user_file)
        return options, identity[1] if identity else 0

    def _load(self, path: str, *, private: bool = True) -> Loaded:
        """Return a settings file's identity, options and problem; reread it if it changed."""
        try:
            facts = os.stat(path)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            return None, {}, "" if missing else f"{path} cannot be read: {error.strerror}"
        identity = (facts.st_ino, facts.st_mtime_ns, facts.st_size, facts.st_mode)
        known = self._files.get(path)
        if known is None or known[0] != identity:
            known = (identity, *_read(path, facts, private=private))
            self._files[path] = known
        return known


def _read(path: str, facts: os.stat_result, *, private: bool) -> tuple[dict[str, Any], str]:
    """Return the options of a settings file, and why it is ignored, "" if it is not."""
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > _FILE_BYTES:
        return {}, f"{path} is not a regular file of at most 1 MiB; it is ignored"
    if private and facts.st_uid not in (os.getuid(), 0):
        return {}, f"{path} belongs to another user; it is ignored"
    if private and facts.st_mode & 0o022:
        return {}, f"{path} may be written by others; it is ignored until you run chmod go-w on it"
    try:
        with open(path, "rb") as file:
            options = tomllib.load(file)
        return _without_open_keys(path, facts, options) if private else (options, "")
    except OSError as error:  # pragma: no cover - its test gives up its rights, and coverage
        return {}, f"{path} cannot be read: {error.strerror}"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return {}, f"{path} is not valid TOML ({error}); it is ignored"


def _without_open_keys(
    path: str, facts: os.stat_result, options: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """Return the options without the API keys if others may read the file, and a sentence on it."""
    model = options.get("model")
    if not facts.st_mode & 0o077 or not isinstance(model, dict):
        return options, ""
    held = [name for name in _KEYS if model.get(name)]
    if not held:
        return options, ""
    retained = {name: value for name, value in model.items() if name not in held}
    names = " and ".join(f"model.{name}" for name in held)
    return (
        {**options, "model": retained},
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
    incoming = options.get("messages")
    stricter, not_allowed = _stricter(
        settings.messages, incoming if isinstance(incoming, dict) else {}
    )
    known = {"enabled", "messages"} if isinstance(incoming, dict) else {"enabled"}
    ignored = sorted({*(set(options) - known), *not_allowed})
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
    present = {name: getattr(settings, name) for name in _INCOMING}
    wanted = {
        name: value
        for name, value in incoming.items()
        if name in present
        and value in INBOUND
        and INBOUND.index(value) >= INBOUND.index(present[name])
    }
    not_allowed = [f"messages.{name}" for name in incoming if name not in wanted]
    return replace(settings, **wanted), not_allowed

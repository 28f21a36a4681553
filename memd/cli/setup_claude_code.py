"""memd's hooks in Claude Code's settings: what they are, and how they get in and out.

Rules of this file
- Only entries whose command names memd's hook file are ours; nothing else is ever touched.
- Taking ours out leaves no empty list or group that we made, and nothing of others changes.
- The file is read strictly: what cannot be read without loss (broken JSON, a key twice, hooks of
  another shape) is refused with the reason, and nothing is written.
- Written back, the file keeps its indentation, line ends, byte order mark, final newline, mode and
  link. The new content replaces the old in one step, and only if the old is still what was read.
"""

import copy
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memd.core.errors import MemdError

CLIENT = "claude-code"
# The events that memd answers; a matcher where the client knows several sources of one event.
EVENTS: Mapping[str, str | None] = {
    "SessionStart": "startup|resume|clear|compact|fork",
    "UserPromptSubmit": None,
    "Stop": None,
    "PreCompact": None,
    "SessionEnd": None,
}
_PROMPT = "UserPromptSubmit"
_DEADLINE = "MEMD_HOOK_DEADLINE_MS"
_WAITS = re.compile(rf"\b{_DEADLINE}=([0-9]{{1,5}}) ")
TIMEOUT = 3  # seconds after which the client gives the hook up; the hook itself gives up earlier
# The hook in its own place, and in the package, where the settings of older versions name it.
_OURS = ("memd/hook.py", "memd/cli/hook.py")
_NO_OBJECT = "it is no JSON object"
_NO_HOOKS = "hooks is no object"
_BOM = b"\xef\xbb\xbf"

Settings = dict[str, Any]


class SettingsUnreadableError(MemdError):
    """The settings file cannot be read without losing something of it."""

    hint = "mend the file first; memctl wrote nothing"
    exit_status = 78

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} is not what Claude Code's settings look like: {cause}", path=path)


class SettingsChangedError(MemdError):
    """Another program wrote the settings meanwhile."""

    retryable = True
    hint = "run it again"
    exit_status = 75

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} changed while it was being edited; nothing was written")


class _RepeatedKeyError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key} is there twice")


def default_path(environ: Mapping[str, str], home: str) -> str:
    """Return where Claude Code reads a user's settings."""
    return f"{environ.get('CLAUDE_CONFIG_DIR') or f'{home}/.claude'}/settings.json"


def entry(event: str, hook: str, deadline_ms: int = 0) -> Settings:
    """Return our hook of an event; ``hook`` is the absolute path of the hook file.

    ``deadline_ms`` is what it gives a prompt, 0 for the usual time.

    The client's shell runs it, and it ends with 0 in silence whatever is missing: Python ends with
    2 for a missing script, a shell with 2 where it cannot fork or redirect, and 2 blocks a prompt.
    """
    # Without the interpreter another one says in the log how to remove the hook; macOS has a
    # python3 that asks its user to install one.
    other = "exit 0" if sys.platform == "darwin" else "p=python3"
    wait = f"{_DEADLINE}={deadline_ms} " if deadline_ms and event == _PROMPT else ""
    command = (
        f"trap 'exit 0' 0; exec 2>/dev/null; h={shlex.quote(hook)}; p=${{h%hook.py}}python; "
        f'[ -x "$p" ] || {other}; {wait}"$p" -I -S "$h" {CLIENT} {event}; exit 0'
    )
    return {"type": "command", "command": command, "timeout": TIMEOUT}


def deadline(settings: Settings) -> int:
    """Return what our hook of prompts gives them in ms, 0 for the usual time."""
    groups = settings.get("hooks", {}).get(_PROMPT, [])
    ours = [item for group in groups for item in group.get("hooks", []) if _is_ours(item)]
    result = [_WAITS.search(str(item.get("command", ""))) for item in ours]
    return next((int(match[1]) for match in result if match), 0)


def parse(content: bytes | None, path: str) -> Settings:
    """Return the settings of a file, none for no file. Raises SettingsUnreadableError."""
    if content is None or not content.removeprefix(_BOM).strip():
        return {}
    try:
        settings = json.loads(
            content.decode("utf-8-sig"), object_pairs_hook=_object, parse_float=_number
        )
    except (ValueError, RecursionError) as error:
        raise SettingsUnreadableError(path, str(error)) from error
    if not isinstance(settings, dict):
        raise SettingsUnreadableError(path, _NO_OBJECT)
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise SettingsUnreadableError(path, _NO_HOOKS)
    for event, groups in hooks.items():
        well = isinstance(groups, list) and all(
            isinstance(group, dict) and isinstance(group.get("hooks", []), list) for group in groups
        )
        if not well:
            cause = f"hooks.{event} is no list of hook groups"
            raise SettingsUnreadableError(path, cause)
    return settings


def states(settings: Settings, hook: str) -> dict[str, str]:
    """Return for each event whether our hook is installed, outdated or absent."""
    result = {}
    for event, matcher in EVENTS.items():
        ours = [
            (group.get("matcher"), item)
            for group in settings.get("hooks", {}).get(event, [])
            for item in group.get("hooks", [])
            if _is_ours(item)
        ]
        right = (matcher, entry(event, hook, deadline(settings)))
        result[event] = "absent" if not ours else "installed" if ours == [right] else "outdated"
    return result


def install(settings: Settings, hook: str, deadline_ms: int | None = None) -> Settings:
    """Return settings with each of our hooks exactly once; others stay where they are.

    ``deadline_ms`` is what a prompt gets, ``None`` for what it gets now.
    """
    now = states(settings, hook)
    wait = deadline(settings) if deadline_ms is None else deadline_ms
    if wait != deadline(settings):
        now[_PROMPT] = "outdated"
    new = remove(settings, retained=[event for event, state in now.items() if state == "installed"])
    for event, matcher in EVENTS.items():
        if now[event] != "installed":
            group: Settings = {} if matcher is None else {"matcher": matcher}
            group["hooks"] = [entry(event, hook, wait)]
            new.setdefault("hooks", {}).setdefault(event, []).append(group)
    return new


def remove(settings: Settings, retained: "list[str] | tuple[str, ...]" = ()) -> Settings:
    """Return settings without our hooks, except those of the events in ``retained``."""
    new = copy.deepcopy(settings)
    hooks = new.get("hooks", {})
    for event in [event for event in hooks if event not in retained]:
        groups = hooks[event]
        left = [group for group in (_without_ours(group) for group in groups) if group is not None]
        if left != groups:
            hooks[event] = left
            if not left:
                del hooks[event]
    if not hooks and settings.get("hooks"):
        del new["hooks"]
    return new


def _number(text: str) -> float:
    """Return a number that can be written back. Raises ValueError for one beyond all bounds."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def dump(settings: Settings, like: bytes | None) -> bytes:
    """Return settings as JSON in the layout of the file as it was."""
    old = like or b""
    body = old.removeprefix(_BOM).strip()
    indented = re.search(rb"\n([ \t]+)\S", body)
    layout: dict[str, Any] = {"indent": indented[1].decode() if indented else 2}
    if body not in {b"", b"{}"} and b"\n" not in body:
        layout = {"separators": (", ", ": ") if b'": ' in body else (",", ":")}
    text = json.dumps(settings, ensure_ascii=b"\\u" in body, **layout)
    if not body or old.rstrip(b" \t") != old.rstrip():
        text += "\n"
    if b"\r\n" in old:
        text = text.replace("\n", "\r\n")
    return (_BOM if old.startswith(_BOM) else b"") + text.encode()


def read(path: str) -> bytes | None:
    """Return the bytes of the settings, ``None`` for no file. Raises SettingsUnreadableError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsUnreadableError(path, error.strerror or str(error)) from error


def write(path: str, content: bytes, base: bytes | None) -> None:
    """Replace the file, or the one a link leads to, if it still holds ``base``.

    Raises SettingsChangedError, and OSError where the disk says no.
    """
    real = os.path.realpath(path)
    folder = os.path.dirname(real)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    mode = 0o600 if base is None else os.stat(real).st_mode & 0o7777
    draft = f"{folder}/.{os.path.basename(real)}.memd-{os.getpid()}"
    _create(draft, content, mode)
    try:
        _replace(path, draft, base)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _sync_directory(folder)


def back_up(path: str, content: bytes) -> str:
    """Keep the bytes of the settings beside them and return where: the first free number."""
    mode = os.stat(path).st_mode & 0o7777
    number = 1
    while True:
        backup = f"{path}.memd-backup-{number}"
        try:
            _create(backup, content, mode)
        except FileExistsError:
            number += 1
        else:
            return backup


def _create(path: str, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _replace(path: str, draft: str, base: bytes | None) -> None:
    if read(path) != base:
        raise SettingsChangedError(path)
    os.rename(draft, os.path.realpath(path))


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _object(pairs: list[tuple[str, Any]]) -> Settings:
    settings: Settings = {}
    for key, value in pairs:
        if key in settings:
            raise _RepeatedKeyError(key)
        settings[key] = value
    return settings


def _is_ours(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    args = item.get("args")
    words = [item.get("command"), *(args if isinstance(args, list) else [])]
    return any(isinstance(word, str) and any(ours in word for ours in _OURS) for word in words)


def _without_ours(group: Settings) -> Settings | None:
    """Return a group without our hooks, ``None`` if it held nothing else."""
    hooks = group.get("hooks", [])
    left = [item for item in hooks if not _is_ours(item)]
    if len(left) == len(hooks):
        return group
    return group | {"hooks": left} if left else None

"""Read one settings file: whether it counts, its options, and what is wrong with it.

The user's own file counts only if it belongs to the user or root and nobody else may write it,
since it contains endpoints, keys and paths. A key counts only in a file that nobody else may read.
"""

import os
import stat
from typing import Any

import msgspec

from memd.base.options import Layer
from memd.base.settings import Settings, parse

_FILE_BYTES = 1024 * 1024
_OTHERS_WRITE, _OTHERS_ACCESS = 0o022, 0o077  # bits of a file's mode: write, and anything at all
_KEYS = ("api_key", "auth_token")  # options of [model] that count in a private file alone


def load(*paths: str) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of some private files, of which later ones override, and all problems."""
    files = [(path, *read(path)) for path in paths]
    settings, problems = parse([Layer(path, options) for path, options, _ in files])
    return settings, (*(problem for *_, problem in files if problem), *problems)


def read(path: str, *, private: bool = True) -> tuple[dict[str, Any], str]:
    """Return the options of a settings file, and why it is ignored, "" if it is not.

    A missing file has no options. A ``private`` one must belong to the user or root, and nobody
    else may write it.
    """
    try:
        status = os.stat(path)
        why = _reason_ignored(status, private=private)
        if why:
            return {}, f"{path} {why}"
        with open(path, "rb") as file:
            options = msgspec.toml.decode(file.read())
        return _without_open_keys(path, status, options) if private else (options, "")
    except (FileNotFoundError, NotADirectoryError):
        return {}, ""
    except OSError as error:
        return {}, f"{path} cannot be read: {error.strerror}"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return {}, f"{path} is not valid TOML ({error}); it is ignored"


def _reason_ignored(status: os.stat_result, *, private: bool) -> str:
    """Return why a file does not count whatever it says, "" if it does."""
    if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
        return "is not a regular file of at most 1 MiB; it is ignored"
    if private and status.st_uid not in (os.getuid(), 0):
        return "belongs to another user; it is ignored"
    if private and status.st_mode & _OTHERS_WRITE:
        return "may be written by others; it is ignored until you run chmod go-w on it"
    return ""


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

"""Find the files that Codex CLI loads: the user's, then at most one of each folder. Pure.

The folders are those from the project's root down to the working directory. The files of the
project together have a limit of bytes, at which they are cut; the user's own file is not counted.
What was observed of the client is in docs/decisions.md.
"""

import posixpath
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from memd.core.text import cut_bytes
from memd.instructions.loading import Loading, folders_down, nearest
from memd.instructions.values import InstructionDisk, InstructionFile, Resolution, ViewRequest

PROJECT_BYTES = 32 * 1024  # of all files of a project, unless the user's configuration says more
ROOT_MARKERS = (".git",)
_NAMES = ("AGENTS.override.md", "AGENTS.md")


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return the files that Codex loads."""
    loading = Loading(request, disk)
    config = _read_config(loading, f"{request.codex}/config.toml")
    _load_user_file(loading)
    _load_project_files(loading, config)
    return loading.result()


class _Config(Struct, frozen=True):
    """The user's ``config.toml``: further file names, the limit, and the markers of a root."""

    names: tuple[str, ...] = ()
    project_bytes: int = PROJECT_BYTES
    markers: tuple[str, ...] = ROOT_MARKERS


def _read_config(loading: Loading, path: str) -> _Config:
    """Return the user's configuration, or the default if Codex would not start with the file."""
    try:
        values = tomllib.loads(loading.disk.read(path).text)
        return _Config(
            tuple(_bare_names(values.get("project_doc_fallback_filenames", []))),
            _checked_count(values.get("project_doc_max_bytes", PROJECT_BYTES)),
            tuple(_checked_texts(values.get("project_root_markers", [*ROOT_MARKERS]))),
        )
    except (ValueError, TypeError, RecursionError):  # ValueError: a number of 5,000 digits too
        loading.problem(path, "is not as Codex wants it: the usual values count")
        return _Config()


def _bare_names(values: Any) -> Iterator[str]:
    """Yield further names; Codex takes none that leads into another folder."""
    for name in map(str.strip, _checked_texts(values)):
        if name and "/" not in name and name not in (".", ".."):
            yield name


def _checked_texts(values: Any) -> list[str]:
    """Return a list of texts. Raises TypeError for anything else."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError
    return values


def _checked_count(value: Any) -> int:
    """Return a number that is not negative. Raises TypeError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def _load_user_file(loading: Loading) -> None:
    """Load the first file of the user that is not empty."""
    why_not = ""
    for name in _NAMES:
        file = InstructionFile(f"{loading.request.codex}/{name}", "agents", "user")
        text = loading.fetch(file, why_not=why_not)
        if text is not None:
            loading.load(file, text)
            why_not = _replaced_by(name)


def _load_project_files(loading: Loading, config: _Config) -> None:
    """Load a file of each folder, up to the limit of bytes."""
    request = loading.request
    root = nearest(loading.disk, request.cwd, config.markers)
    bytes_left = config.project_bytes
    full = f"Codex takes {bytes_left:,} bytes of all files of a project together"
    for folder in folders_down(root, request.cwd):
        within = (folder, root)
        for file in _files_to_load(loading, folder, (*_NAMES, *config.names)):
            text = loading.fetch(file, within, "" if bytes_left else full)
            if text is None:
                continue
            beginning = cut_bytes(text, bytes_left)
            if not beginning.strip():
                loading.refuse(file, full)
                continue
            loading.load(file, beginning)
            if len(beginning) < len(text):
                loading.problem(file.path, f"is cut: {full}")
                bytes_left = 0
            else:
                bytes_left -= len(text.encode(errors="replace"))


def _files_to_load(
    loading: Loading, folder: str, names: Sequence[str]
) -> Iterator[InstructionFile]:
    """Yield the one file of a folder that counts: the first that is readable, even if empty."""
    why_not = ""
    for name in dict.fromkeys(names):
        file = InstructionFile(posixpath.join(folder, name), "agents", "project")
        read = loading.disk.read(file.path)
        if read.missing:
            continue
        if why_not or read.why_not:
            loading.fetch(file, why_not=why_not)
        else:
            yield file
            why_not = _replaced_by(name)


def _replaced_by(name: str) -> str:
    """Return why a file is not loaded: another one of its folder is used instead."""
    return f"{name} of the same folder stands in its place"

"""Find the files that Codex CLI loads: the user's, then at most one of each folder. Pure.

The folders are those from the project's root down to the working directory. The files of the
project together are cut after so many bytes; the user's own is not counted. docs/decisions.md has
what was observed of the client.
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
    """Return what Codex loads."""
    loading = Loading(request, disk)
    config = _config(loading, f"{request.codex}/config.toml")
    _user(loading)
    _project(loading, config)
    return loading.result()


class _Config(Struct, frozen=True):
    """What the user's ``config.toml`` says: further names, a limit, and what marks a root."""

    names: tuple[str, ...] = ()
    project_bytes: int = PROJECT_BYTES
    markers: tuple[str, ...] = ROOT_MARKERS


def _config(loading: Loading, path: str) -> _Config:
    """Return the user's configuration, the usual one where Codex would not start with it."""
    try:
        values = tomllib.loads(loading.disk.read(path).text)
        return _Config(
            tuple(_bare_names(values.get("project_doc_fallback_filenames", []))),
            _count(values.get("project_doc_max_bytes", PROJECT_BYTES)),
            tuple(_texts(values.get("project_root_markers", [*ROOT_MARKERS]))),
        )
    except (ValueError, TypeError, RecursionError):  # ValueError: a number of 5,000 digits too
        loading.problem(path, "is not as Codex wants it: the usual values count")
        return _Config()


def _bare_names(values: Any) -> Iterator[str]:
    """Yield further names; Codex takes none that leads into another folder."""
    for name in map(str.strip, _texts(values)):
        if name and "/" not in name and name not in (".", ".."):
            yield name


def _texts(values: Any) -> list[str]:
    """Return a list of texts. Raises TypeError for anything else."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError
    return values


def _count(value: Any) -> int:
    """Return a number that is not negative. Raises TypeError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def _user(loading: Loading) -> None:
    """Load the first file of the user that says something."""
    stands_in = ""
    for name in _NAMES:
        file = InstructionFile(f"{loading.request.codex}/{name}", "agents", "user")
        text = loading.fetch(file, why_not=stands_in)
        if text is not None:
            loading.load(file, text)
            stands_in = _hidden(name)


def _project(loading: Loading, config: _Config) -> None:
    """Load a file of each folder, as long as there is room."""
    request = loading.request
    root = nearest(loading.disk, request.cwd, config.markers)
    left = config.project_bytes
    full = f"Codex takes {left:,} bytes of all files of a project together"
    for folder in folders_down(root, request.cwd):
        within = (folder, root)
        for file in _chosen(loading, folder, (*_NAMES, *config.names)):
            text = loading.fetch(file, within, "" if left else full)
            if text is None:
                continue
            cut = cut_bytes(text, left)
            if not cut.strip():
                loading.refuse(file, full)
                continue
            loading.load(file, cut)
            left = 0 if len(cut) < len(text) else left - len(cut.encode(errors="replace"))
            if len(cut) < len(text):
                loading.problem(file.path, f"is cut: {full}")


def _chosen(loading: Loading, folder: str, names: Sequence[str]) -> Iterator[InstructionFile]:
    """Yield the file that stands for a folder: the first that is there, even if it is empty."""
    stands_in = ""
    for name in dict.fromkeys(names):
        file = InstructionFile(posixpath.join(folder, name), "agents", "project")
        read = loading.disk.read(file.path)
        if read.missing:
            continue
        if stands_in or read.why_not:
            loading.fetch(file, why_not=stands_in)
        else:
            yield file
            stands_in = _hidden(name)


def _hidden(name: str) -> str:
    """Return why a file is not loaded: another one of its folder is used instead."""
    return f"{name} of the same folder stands in its place"

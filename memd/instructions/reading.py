"""Read the instruction files of a project, again only after a change on the disk. Blocks.

Rules of this file
- The result is a pure function of the request and of the disk's answers. As long as the disk would
  answer each call as before, nothing is resolved again
  (tests/net/test_instruction_files.py).
- Nothing in a repository allows includes from outside or excludes a file: the permission comes from
  the state file, and exclusions come from the settings of Claude Code's user and policy
  (tests/promises/test_approvals.py).
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from memd.base.covered import Covered
from memd.base.instruction_files import InstructionText
from memd.base.names import is_text
from memd.base.recent import Recent
from memd.base.values import Project
from memd.instructions import claude, repeats
from memd.instructions.compose import compose
from memd.instructions.values import (
    DiskEntry,
    DiskText,
    FilesRequest,
    Resolution,
    StampedDisk,
)
from memd.projects.projects import ClientFolders
from memd.state.database import StateUnusableError
from memd.state.docs import Docs

T = TypeVar("T")
_MOST_READINGS = 8  # in the cache; each has at most a few MiB


class Approval(Struct, frozen=True):
    """The user's decision whether a project, the document's place, may include outside files."""

    allowed: bool


class InstructionRequest(Struct, frozen=True):
    """A caller's request for the instruction files of a project.

    ``touched`` are files that the caller read or changed; relative paths are below its working
    directory. ``environment`` are the variables that the client forwarded.
    """

    project: Project
    environment: Mapping[str, str]
    touched: tuple[str, ...] = ()


class InstructionReading(Struct, frozen=True, dict=True):
    """The instruction files for a request, and the same as one text."""

    resolution: Resolution
    text: InstructionText

    @cached_property
    def covered(self) -> Covered:
        """A function that names the file that already says a text."""
        return repeats.covered(self.resolution.texts)


def _reading(resolution: Resolution) -> InstructionReading:
    """Return a resolution with its composed text."""
    return InstructionReading(resolution, compose(resolution))


_NOT_UTF8 = _reading(Resolution(problems=("the path of the working directory is not UTF-8",)))


class RecordedDisk:
    """An ``InstructionDisk`` that calls another one once for each answer, and records all answers.

    The dictionaries are the answers of each method, by path.
    """

    def __init__(self, disk: StampedDisk) -> None:
        self._disk = disk
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._texts: dict[str, DiskText] = {}
        self._entries: dict[str, tuple[DiskEntry, ...]] = {}
        self._reals: dict[str, str] = {}

    def read(self, path: str) -> DiskText:
        """Return what ``InstructionDisk.read`` does."""
        return self._answer(self._texts, path, self._disk.read)

    def entries(self, folder: str) -> tuple[DiskEntry, ...]:
        """Return what ``InstructionDisk.entries`` does."""
        return self._answer(self._entries, folder, self._disk.entries)

    def real(self, path: str) -> str:
        """Return what ``InstructionDisk.real`` does."""
        return self._answer(self._reals, path, self._disk.real)

    def unchanged(self) -> bool:
        """Return whether the disk would give all recorded answers again.

        For a path without links it is enough to compare the stamps of the path and of the folders
        above it, which is quick. Files behind links, and lists of folders, are read again.
        """
        disk = self._disk
        linked = [(path, text) for path, text in self._texts.items() if text.real != path]
        reals = [(path, real) for path, real in self._reals.items() if real != path]
        return (
            all(disk.stamp(path) == stamp for path, stamp in self._stamps.items())
            and all(disk.read(path) == text for path, text in linked)
            and all(disk.entries(folder) == entries for folder, entries in self._entries.items())
            and all(disk.real(path) == real for path, real in reals)
        )

    def _answer(self, answers: dict[str, T], path: str, method: Callable[[str], T]) -> T:
        """Return the answer for a path, from ``answers`` or else from the disk's ``method``.

        Before the disk is called, the stamps of the path and of all folders above it are recorded,
        so that no later change is missed.
        """
        if path not in answers:
            ancestor = path
            while ancestor not in self._stamps:
                self._stamps[ancestor] = self._disk.stamp(ancestor)
                ancestor = os.path.dirname(ancestor)
            answers.setdefault(path, method(path))
        return answers[path]


class InstructionReader:
    """The instruction files of all projects, for several threads at once; methods raise nothing.

    ``folders`` returns the folders in which Claude Code looks for a project's files.
    """

    def __init__(
        self,
        table: Docs,
        folders: Callable[[Project, Mapping[str, str]], ClientFolders],
        disk: StampedDisk,
    ) -> None:
        self._table = table
        self._folders = folders
        self._disk = disk
        self._readings: Recent[FilesRequest, tuple[RecordedDisk, InstructionReading]] = Recent(
            _MOST_READINGS
        )

    def decision(self, project: Project) -> bool | None:
        """Return whether the user allowed includes from outside, ``None`` without a decision.

        ``None`` also if the state file cannot be read.
        """
        with suppress(StateUnusableError):
            approval = self._table.get(Approval, project.root)
            return approval.allowed if approval else None
        return None

    def read(
        self, request: InstructionRequest, *, external: bool | None = None
    ) -> InstructionReading:
        """Return the files of a project, from the cache if nothing on the disk has changed.

        ``external`` replaces the user's decision about includes from outside, unless it is
        ``None``.
        """
        key = self._files_request(request, external=external)
        if not is_text(f"{key.cwd}{key.home}{key.config}"):
            return _NOT_UTF8
        disk, reading = self._readings.get(key, (None, None))
        if reading is None or disk is None or not disk.unchanged():
            disk = RecordedDisk(self._disk)
            reading = _reading(claude.resolve(key, disk))
            self._readings[key] = disk, reading
        return reading

    def _files_request(self, request: InstructionRequest, *, external: bool | None) -> FilesRequest:
        """Return a request with the folders in which Claude Code looks."""
        project = request.project
        folders = self._folders(project, request.environment)
        if external is None:
            external = self.decision(project) is True
        touched = (os.path.normpath(os.path.join(project.cwd, each)) for each in request.touched)
        return FilesRequest(
            cwd=project.cwd,
            root=folders.checkout,
            home=folders.home,
            config=folders.config,
            managed=folders.managed,
            touched=tuple(touched),
            exclude=folders.excludes,
            external=external,
        )

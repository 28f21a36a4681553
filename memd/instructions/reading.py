"""Resolve the views of a project, again only when something on the disk has changed. Blocks.

Rules of this file
- A view is a pure function of its request and of what the disk answers. As long as the disk answers
  every question as before, so does the view, and nothing is resolved twice
  (tests/instructions/test_reading.py::test_nothing_is_resolved_twice).
- Nothing in a repository allows includes from outside, and none of its settings excludes a file:
  the one comes from the state file, the others from the user's and the machine's settings
  (tests/promises/test_approvals.py).
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from memd.core.covered import Covered
from memd.core.histogram import CacheHits
from memd.core.names import is_text
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Project
from memd.instructions import check, repeats
from memd.instructions.check import InstructionIssue
from memd.instructions.compose import InstructionText, compose
from memd.instructions.values import (
    DiskEntry,
    DiskText,
    InstructionDisk,
    Resolution,
    View,
    ViewRequest,
)
from memd.instructions.views import ViewFunction
from memd.projects.projects import ClientFolders
from memd.state.database import StateUnusableError
from memd.state.tables import Approvals

T = TypeVar("T")
_READINGS = 8  # that are remembered, of a few MiB each at most
Memories = Iterable[tuple[str, str]]  # path and text
_OF_CLAUDE_CODE = (View.CLAUDE, View.UNION)  # whose excludes are those of its settings too


class InstructionRequest(Struct, frozen=True):
    """A caller's question: ``touched`` are files that it read or changed, relative ones to cwd.

    ``environment`` is what the client forwarded.
    """

    project: Project
    settings: Settings
    environment: Mapping[str, str]
    view: View = View.UNION
    touched: tuple[str, ...] = ()


class InstructionReading(Struct, frozen=True, dict=True):
    """What a view made of a request, as one text too."""

    resolution: Resolution
    text: InstructionText

    @cached_property
    def covered(self) -> Covered:
        """What tells which of its files says a text."""
        return repeats.covered(self.resolution.texts)


def _reading(resolution: Resolution) -> InstructionReading:
    """Return a resolution with its composed text."""
    return InstructionReading(resolution, compose(resolution))


_UNNAMED = _reading(Resolution(problems=("the path of the working directory is not UTF-8",)))


class Checked(Struct, frozen=True):
    """What a person may want to mend, and how many files some assistant loads."""

    files: int
    issues: tuple[InstructionIssue, ...]


class RecordedDisk:
    """An ``InstructionDisk`` in front of another that answers each question once and the same."""

    def __init__(self, disk: InstructionDisk) -> None:
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

    def stamp(self, path: str) -> tuple[int, ...]:
        """Return what ``InstructionDisk.stamp`` does."""
        return self._answer(self._stamps, path, self._disk.stamp)

    def unchanged(self) -> bool:
        """Say whether the disk would answer everything that was asked of it as before.

        Where no link is on the way to a file, the stamps of all on that way tell it, which is
        quick; what links lead to, and what folders list, is asked for again.
        """
        disk = self._disk
        linked = [(path, text) for path, text in self._texts.items() if text.real != path]
        reals = [(path, real) for path, real in self._reals.items() if real != path]
        return (
            all(disk.stamp(path) == known for path, known in self._stamps.items())
            and all(disk.read(path) == text for path, text in linked)
            and all(disk.entries(folder) == known for folder, known in self._entries.items())
            and all(disk.real(path) == real for path, real in reals)
        )

    def _answer(self, answers: dict[str, T], path: str, ask: Callable[[str], T]) -> T:
        """Return the disk's answer about a path, which is asked once.

        The stamps of the path and of all folders above it are recorded first.
        """
        if path not in answers:
            way = path
            while way not in self._stamps:  # before the answer, so that no later change is missed
                self._stamps[way] = self._disk.stamp(way)
                way = os.path.dirname(way)
            answers.setdefault(path, ask(path))
        return answers[path]


class InstructionReader:
    """The views of all projects. Threads may use one at the same time; methods raise nothing.

    ``folders`` says where a project's clients look.
    """

    def __init__(
        self,
        approvals: Approvals,
        folders: Callable[[Project, Mapping[str, str]], ClientFolders],
        disk: InstructionDisk,
        views: Mapping[View, ViewFunction],
    ) -> None:
        self._approvals = approvals
        self._folders = folders
        self._disk = disk
        self._views = views
        self._readings: Recent[
            tuple[View, ViewRequest], tuple[RecordedDisk, InstructionReading]
        ] = Recent(_READINGS)
        self.cache = CacheHits()  # a hit has all its files unchanged

    def decision(self, project: Project) -> bool | None:
        """Return whether the user allowed includes from outside, ``None`` where they did not say.

        A state file that cannot be read says nothing.
        """
        with suppress(StateUnusableError):
            return self._approvals.of(project.root)
        return None

    def read(
        self, request: InstructionRequest, *, external: bool | None = None
    ) -> InstructionReading:
        """Return what a view makes of a project; ``external`` stands for the user's decision."""
        wanted = self._view_request(request, external=external)
        if not is_text(f"{wanted.cwd}{wanted.home}{wanted.config}"):
            return _UNNAMED
        key = (request.view, wanted)
        disk, reading = self._readings.get(key, (None, None))
        hit = disk is not None and disk.unchanged()
        self.cache.add(hit=hit)
        if reading is None or not hit:
            disk = RecordedDisk(self._disk)
            reading = _reading(self._views[request.view](wanted, disk))
            self._readings[key] = disk, reading
        return reading

    def faults(self, request: InstructionRequest) -> tuple[InstructionIssue, ...]:
        """Return the issues of the files that the request's view loads, each file by itself."""
        home = self._folders(request.project, request.environment).home
        return tuple(check.of_files(self.read(request).resolution, home))

    def check(self, request: InstructionRequest, memories: Memories) -> Checked:
        """Return what a person may want to mend, by all views; the request's own does not count.

        ``memories`` are the project's, by path.
        """
        union = replace(request, view=View.UNION)
        wanted = self._view_request(union)
        views = {view: self.read(replace(request, view=view)).resolution for view in View}
        said = self.read(union).covered
        together = views.pop(View.UNION)

        def touch(files: Sequence[str]) -> Resolution:
            """Return what the union of all views loads after these files were touched."""
            return self._views[View.UNION](replace(wanted, touched=tuple(files)), self._disk)

        return Checked(
            files=sum(file.loaded for file in together.files),
            issues=(
                *check.of_files(together, wanted.home),
                *check.unmatched_rules(together, wanted.cwd, self._disk, touch),
                *check.contradictions(views),
                *check.repeated_memories(memories, said),
            ),
        )

    def _view_request(
        self, request: InstructionRequest, *, external: bool | None = None
    ) -> ViewRequest:
        """Return a request as the views take it, with the folders in which clients look."""
        project = request.project
        folders = self._folders(project, request.environment)
        if external is None:
            external = self.decision(project) is True
        excludes = folders.excludes if request.view in _OF_CLAUDE_CODE else ()
        touched = (os.path.normpath(os.path.join(project.cwd, each)) for each in request.touched)
        return ViewRequest(
            cwd=project.cwd,
            root=folders.checkout,
            home=folders.home,
            config=folders.config,
            codex=folders.codex,
            gemini=folders.gemini,
            managed=folders.managed,
            touched=tuple(touched),
            exclude=(*request.settings.instructions.exclude, *excludes),
            external=external,
        )

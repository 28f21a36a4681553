"""Give a run's tools a copy-on-write view of a memory directory. Blocks; used by one thread.

Rules of this file
- Nothing here writes a file. The model's changes are kept in memory until the caller commits the
  ``proposal``; a run that is cut off, or dies with the daemon, has changed nothing.
- A memory's content is kept when it is first read, and a change is based on that content, so that
  somebody else's change meanwhile is noticed.
- An existing file is changed only after it was read in this run.
- A model's invalid call is answered with a text; only a bug raises an exception.
- The caller may refuse a change (``check``): the model is told why and can mend it. The last
  refused change of a file that was not written afterwards is in ``refused``.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, Self

from memd.agent import drafting, looking, places, shell, tools, view
from memd.agent.places import MEMORY, PROJECT, TRANSCRIPTS
from memd.agent.proposal import Proposed, RunProposal
from memd.agent.refusals import (
    ChangeRefusedError,
    EditFailedError,
    NoSuchToolError,
    NotReachableError,
    ToolError,
)
from memd.agent.step import DENIED, FAILED, ToolResult
from memd.agent.view import AgentView, Meter
from memd.base import limits
from memd.base.errors import MemdError, NotFound, Refused
from memd.base.names import INDEX, TEAM, clash
from memd.base.yielding import yield_to_requests
from memd.store.directory import Directory

FILES = 100  # that one run may write
BYTES = 1024 * 1024  # that one run may write in all

Check = Callable[[Proposed], str]
_NOT_READ = "read it first"
_NOT_UTF8 = "it is not UTF-8"
_SEVERAL_NAMES = "the file has several names (hard links)"
_NO_REMOVAL = "this run may not remove memories"
_NO_INDEX_REMOVAL = "the index is not removed"
_NO_TEAM_REMOVAL = "others share it, and only a person removes it"
_RUN_IS_FULL = f"a run may write {FILES} files with {BYTES // 1024} KB in all"


class Workspace:
    """One run's view of a memory directory, its project and the project's transcripts.

    ``origin`` says whose words the run works on: ``user``, ``assistant``, or anything else for
    words of unknown origin. ``transcripts`` are the folders of this project's transcripts.
    With ``removals`` a memory may be removed by writing ``removed: why`` over it. With ``team``
    the team's memories may be written, but not removed. ``check`` is called before each change and
    returns why it is refused, or "" to allow it. A context manager; raises Refused and
    Storage.
    """

    def __init__(
        self,
        memory: str,
        *,
        project: str = "",
        transcripts: tuple[str, ...] = (),
        origin: str = "",
        removals: bool = False,
        team: bool = False,
        check: Check | None = None,
    ) -> None:
        others = [(TRANSCRIPTS, folder) for folder in transcripts]
        folders = ((MEMORY, memory), (PROJECT, project), *others)
        roots = [view.root_of(kind, path) for kind, path in folders if path]
        self._roots = tuple(
            root for root in roots if root.kind == MEMORY or places.may_be_root(root.real)
        )
        self._origin = origin
        self._removals = removals
        self._team = team
        self._check = check
        self._refused: dict[str, Proposed] = {}  # the last refused change, by name
        # The answers of the reading tools, as evidence for what is written, and those of them that
        # show a team's text.
        self.answers: list[str] = []
        self.shared: list[str] = []
        # By name: contents as first read, None where there was no file; contents as the run wrote
        # them, None where it removed the file; and its reasons for that.
        self._base: dict[str, bytes | None] = {}
        self._written: dict[str, bytes | None] = {}
        self._reasons: dict[str, str] = {}
        self._disk_names: frozenset[str] | None = None  # of the directory, once it was listed
        self._directory: Directory | None = None
        with suppress(NotFound):  # nobody has written a memory here yet
            self._directory = Directory(memory)
        self._folders = view.open_roots(self._roots)

    def __enter__(self) -> Self:
        """Return the workspace, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the workspace."""
        self.close()

    def close(self) -> None:
        """Close the open folders; the workspace cannot be used afterwards."""
        for folder in self._folders.values():
            folder.close()
        self._folders = {}
        if self._directory:
            self._directory.close()
            self._directory = None

    @property
    def touched(self) -> tuple[str, ...]:
        """The names of the files that the run has changed, in the order of the first change."""
        return tuple(self._written)

    @property
    def refused(self) -> tuple[Proposed, ...]:
        """The last refused change of each file that was not written afterwards."""
        return tuple(self._refused.values())

    def proposal(self) -> RunProposal:
        """Return the files whose content the run changed."""
        files = tuple(
            Proposed(name, self._base.get(name), content, self._reasons.get(name, ""))
            for name, content in self._written.items()
            if content != self._base.get(name)
        )
        return RunProposal(files)

    def content(self, path: str) -> bytes | None:
        """Return a memory's content in this run, ``None`` if there is none; it counts as read.

        Raises ToolError and Refused.
        """
        return self._read_memory(self._name(path))

    def show(self, text: str, names: Iterable[str]) -> None:
        """Add an answer to ``answers`` and, if it shows a team's memory, to ``shared``."""
        self.answers.append(text)
        if any(name.startswith(TEAM) for name in names):
            self.shared.append(text)

    def call(
        self, name: str, given: Mapping[str, Any], now: float, over: Callable[[], bool]
    ) -> ToolResult:
        """Run one tool call; ``now`` is seconds since 1970, ``over`` whether its time is up."""
        try:
            return self._run(self._parse(name, given), self._view(now, over))
        except ToolError as error:
            return ToolResult(error.sentence, error.fault)
        except MemdError as error:
            fault = DENIED if isinstance(error, Refused) else FAILED
            return ToolResult(error.sentence, fault)

    def _parse(self, name: str, given: Mapping[str, Any]) -> Any:
        """Return the input of a tool call. Raises ToolError."""
        if name not in tools.NAMES:
            raise NoSuchToolError(name)
        return tools.parse(name, given)

    def _view(self, now: float, over: Callable[[], bool]) -> AgentView:
        """Return the files as one tool call sees them."""
        return AgentView(
            self._roots, self._folders, self._written, self._base, meter=Meter(over), now=now
        )

    def _run(self, given: tools.Input, agent_view: AgentView) -> ToolResult:
        """Run a tool call; the answer of a reading tool is stored as evidence."""
        agent_view.meter.tick()
        match given:
            case tools.Write():
                return self._write(given)
            case tools.Edit():
                return self._edit(given)
        result = self._answer(given, agent_view)
        read = (entry.place for entry in agent_view.read)
        self.show(result.text, (place.name for place in read if place.root.kind == MEMORY))
        return result

    def _answer(self, given: tools.Reading, agent_view: AgentView) -> ToolResult:
        """Return the answer of a reading tool."""
        match given:
            case tools.Read():
                return self._read(given, agent_view)
            case tools.Grep():
                return looking.grep(given, agent_view)
            case tools.Glob():
                return looking.glob(given, agent_view)
        return shell.run(given.command, agent_view)

    def _read(self, given: tools.Read, agent_view: AgentView) -> ToolResult:
        """Return the answer of Read; a memory's content counts as read from then on."""
        entry = agent_view.file(given.file_path)
        if entry.place.root.kind == MEMORY:
            self._read_memory(entry.place.name)
        return looking.read(given, entry, agent_view)

    def _read_memory(self, name: str) -> bytes | None:
        """Return a memory's content in this run: as written by it, or as first read from disk."""
        if name in self._written:
            return self._written[name]
        if name not in self._base:
            result = self._directory.read(name, limits.READ_BYTES) if self._directory else None
            content, status = (None, None) if result is None else result
            if status is not None and status.st_nlink > 1:
                raise NotReachableError(name, _SEVERAL_NAMES)
            self._base[name] = content
        return self._base[name]

    def _write(self, given: tools.Write) -> ToolResult:
        """Write a whole memory, or remove it if the text says so. Raises ToolError."""
        name = self._name(given.file_path)
        if name not in self._base and self._exists(name):
            raise EditFailedError(given.file_path, _NOT_READ)
        before = self._read_memory(name)
        reason = drafting.removal(given.content) if before is not None else ""
        if reason:
            return self._remove(name, reason)
        verb = "written" if before is None else "written anew"
        return self._accept_change(name, given.content, verb)

    def _edit(self, given: tools.Edit) -> ToolResult:
        """Replace a text in a memory that the run has read. Raises ToolError."""
        name = self._name(given.file_path)
        if name not in self._base:
            raise EditFailedError(given.file_path, _NOT_READ)
        content = self._read_memory(name)
        if content is None:
            raise EditFailedError(given.file_path, _NOT_READ)
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EditFailedError(given.file_path, _NOT_UTF8) from error
        return self._accept_change(name, given.applied(text), "changed")

    def _accept_change(self, name: str, text: str, verb: str) -> ToolResult:
        """Store a memory's new text in the run, if the run's limits and the check allow it.

        ``verb`` says what was done, in the answer to the model.
        """
        content = drafting.checked_content(name, self._base.get(name), text, self._origin)
        others = {path: body for path, body in self._written.items() if path != name}
        size = sum(len(body or b"") for body in others.values()) + len(content)
        if len(others) >= FILES or size > BYTES:
            raise ChangeRefusedError(name, _RUN_IS_FULL)
        if self._base.get(name) is None:
            self._check_case(name, others)
        self._run_check(Proposed(name, self._base.get(name), content))
        self._written[name] = content
        self._reasons.pop(name, None)
        return ToolResult(f"{name} is {verb}. It is kept when this run ends well.")

    def _remove(self, name: str, reason: str) -> ToolResult:
        """Mark a memory as removed, if the run may remove it and the check allows it."""
        if name == INDEX:
            raise ChangeRefusedError(name, _NO_INDEX_REMOVAL)
        if not self._removals:
            raise ChangeRefusedError(name, _NO_REMOVAL)
        if name.startswith(TEAM):
            raise ChangeRefusedError(name, _NO_TEAM_REMOVAL)
        self._run_check(Proposed(name, self._base.get(name), None, reason))
        self._written[name] = None
        self._reasons[name] = reason
        return ToolResult(f"{name} is removed. That holds when this run ends well.")

    def _run_check(self, file: Proposed) -> None:
        """Call the check and record a refused change. Raises ChangeRefusedError with its reason."""
        why = self._check(file) if self._check else ""
        if why:
            self._refused[file.path] = file
            raise ChangeRefusedError(file.path, why.rstrip("."))
        self._refused.pop(file.path, None)

    def _check_case(self, name: str, others: Mapping[str, bytes | None]) -> None:
        """Refuse a new file whose name differs from an existing one only in upper or lower case."""
        written = (path for path, body in others.items() if body)
        names = clash((name,), chain(written, self._names_on_disk()))
        if names is not None:
            _, existing = names
            why = f"it differs from {existing} only in case"
            raise ChangeRefusedError(name, why)

    def _names_on_disk(self) -> frozenset[str]:
        """Return the names in the directory, listed once: the store checks again at the commit."""
        if self._directory is None:
            return frozenset()
        if self._disk_names is None:
            result: set[str] = set()
            for path, _ in self._directory.walk():
                yield_to_requests()
                result.add(path)
            self._disk_names = frozenset(result)
        return self._disk_names

    def _exists(self, name: str) -> bool:
        """Return whether the directory has a file of this name now."""
        return self._directory is not None and self._directory.stat(name) is not None

    def _name(self, path: str) -> str:
        """Return the name of the memory that a model writes to. Raises ChangeRefusedError."""
        try:
            return drafting.name_of(path, places.locate(path, self._roots), team=self._team)
        except NotReachableError as error:
            why = error.sentence.rstrip(".").partition(": ")[2]  # the sentence without the path
            raise ChangeRefusedError(path, why) from error

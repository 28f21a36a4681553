"""What answers a client in the tests of plans: the room, over a real state file."""

import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from memd.context.keeping import BegunPlan, ContextKeeper
from memd.context.requests import ContextRequest, PlannedContext
from memd.context.values import Decision
from memd.state.database import open_database
from memd.state.tables import SCHEMAS, ContextTable
from tests.support.clock import FakeClock
from tests.support.faults import FaultyDisk


class StoredPlanner:
    """The room's own keeping over a real state file; results are files below a folder."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.failing = 0.0
        self.unstored: set[str] = set()
        self._path = str(folder / "state.db")
        self._disk = FaultyDisk(before=self._fail)
        self._chance = Random(15)  # noqa: S311 - a story, not a secret
        self._open()

    def _open(self) -> None:
        self._database = open_database(self._path, SCHEMAS)
        table = ContextTable(self._database)
        self._keeper = ContextKeeper(self.clock, threading.Lock, table, self._disk)

    def _fail(self, call: str, _name: str) -> None:
        if call == "create" and self._chance.random() < self.failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._database.close()

    def plan(self, request: ContextRequest) -> PlannedContext:
        """Return what to send of a conversation."""
        answer = self._keeper.begin(request)
        if isinstance(answer, BegunPlan):
            self._keeper.store(answer)
            answer = self._keeper.end(answer)
        self.unstored.update(problem.partition(":")[0] for problem in answer.problems)
        return answer

    def spill(self, request: ContextRequest, tool: str, call: str, text: str) -> Decision | None:
        """Store a result as it is born, where it is large, and return what was decided."""
        return self._keeper.spill(request, tool, call, text).decision

    def restore(self, request: ContextRequest, decisions: Sequence[Decision], fork: str) -> None:
        """Take in what was sent; ``fork`` is a session of the same project."""
        self._keeper.restore(request, decisions, fork)

    def restart(self) -> None:
        """Open the state file anew."""
        self._database.close()
        self._open()

    def rows(self) -> tuple[list[tuple[Any, ...]], ...]:
        """Return what is durable: decisions, and what is known of conversations."""
        tables = ("context_decisions", "contexts")
        read = self._database.read
        return tuple([(*row,) for row in read(f"SELECT * FROM {table}")] for table in tables)  # noqa: S608 - fixed words

    def stored(self, path: str) -> str | None:
        """Return the text of a stored result."""
        try:
            return Path(path).read_text("utf-8")
        except FileNotFoundError:
            return None

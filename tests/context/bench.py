"""Context services without a daemon, on a real state file and real folders."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.context.keeping import ContextKeeper
from memd.context.requests import ContextRequest, PlannedContext
from memd.context.service import Contexts
from memd.core.canonical import content_hash
from memd.core.settings import Settings
from memd.core.values import Project
from memd.files.disk import Disk
from memd.state.database import open_database
from memd.state.tables import SCHEMAS, ContextTable
from tests.support.clock import FakeClock

LARGE = "a line of a log\n" * 4_000


def call(number: int, text: str = LARGE) -> list[dict[str, Any]]:
    """Return a call of a shell, and its result."""
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


TALK = [{"role": "user", "content": "Run the tests."}, *call(1)]
HASH = content_hash(LARGE)


@dataclass
class Bench:
    """A daemon's context services on a real state file, which may be opened anew."""

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    settings: Settings = field(default_factory=Settings)
    disk: Disk | None = None
    seconds: float = 20.0

    def __post_init__(self) -> None:
        """Open the state file."""
        self.open()

    def open(self) -> None:
        """Begin as a daemon does that was started now."""
        self.database = open_database(str(self.folder / "state.db"), SCHEMAS)
        self.table = ContextTable(self.database)
        self.contexts = Contexts(self.clock, self.table, self.disk, self.seconds)
        self.keeper = ContextKeeper(self.clock, threading.Lock, self.table, self.disk)

    def close(self) -> None:
        """End."""
        self.database.close()

    def restart(self) -> None:
        """End and begin again."""
        self.close()
        self.open()

    def request(self, messages: list[Any], **given: Any) -> ContextRequest:
        """Return a request of the session s about its first messages."""
        base = str(self.folder / "projects")
        project = Project("/p", "/p", f"{base}/-p/memory", "default", base, enabled=True)
        usual = {"session": "s", "reader": "read_stored"}
        return ContextRequest(project, self.settings, messages=messages, **{**usual, **given})

    async def plan(self, messages: list[Any], **given: Any) -> PlannedContext:
        """Plan the first messages of the session s."""
        return await self.contexts.plan(self.request(messages, **given))

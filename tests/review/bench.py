"""A real store and state file for reviews, with a clock that stands still."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from memd.base.inbox import Answer, Decided, InboxItem, ItemKind
from memd.base.text import sha256
from memd.base.values import MemoryType
from memd.daemon.app import SCHEMAS
from memd.review.inbox import Inbox
from memd.review.proposals import Proposals
from memd.rpc.call import Call
from memd.state.database import Database, open_database
from memd.state.proposals import Proposal, ProposalTable, ProposedEdit
from memd.store import memory
from memd.store.disk import Disk
from tests.stores import store_in
from tests.support.calls import call_about, callers_in
from tests.support.clock import FakeClock

NOW = 1_772_450_000.0  # 2026-03-02, a Monday


def accepted(body: str) -> bytes:
    """Return a small memory as it is once its proposal was accepted."""
    return memory.with_fields(topic(body), {"metadata.origin": "assistant"})


def topic(body: str) -> bytes:
    """Return a small memory."""
    return memory.new(
        "a-name", "About it", MemoryType.PROJECT, body, session="s", modified="2026-03-02T10:00:00Z"
    )


class Bench:
    """A memory directory with its store, the table of proposals and the reviews of both."""

    def __init__(self, folder: Path, database: Database, disk: Disk | None = None) -> None:
        self.folder = folder
        self.memory = folder / "memory"
        self.memory.mkdir(mode=0o700, exist_ok=True)
        self.directory = str(self.memory)
        self.database = database
        self.clock = FakeClock(now=NOW)
        self.table = ProposalTable(database)
        self.store = store_in(database, self.clock, disk=disk)
        proposals = Proposals(self.store, self.table, self.clock)
        callers = callers_in(folder, database, self.clock)
        self.inbox = Inbox(callers, {ItemKind.PROPOSAL: proposals}, dict)

    def write(self, path: str, content: bytes) -> None:
        """Save a file as a person does."""
        file = self.memory / path
        file.write_bytes(content)
        os.utime(file, (NOW - 86_400, NOW - 86_400))

    def edit(
        self, path: str, content: bytes | None, *, into: str = "", reason: str = ""
    ) -> ProposedEdit:
        """Return the edit of a file as it is now."""
        file = self.memory / path
        before = file.read_bytes() if file.exists() else None
        base = "" if before is None else sha256(before)
        return ProposedEdit(path, content, base, before, reason, into)

    def propose(self, *edits: ProposedEdit, directory: str = "", engine: str = "") -> str:
        """Keep a proposal as a dream does, or as somebody else."""
        proposal = Proposal(
            "",
            directory or self.directory,
            NOW,
            job="j1",
            said="I tidied up.",
            problems=("too much at once",),
            engine=engine,
            edits=edits,
        )
        return self.table.propose(proposal)

    def proposal(self, name: str) -> Proposal:
        """Return a proposal that is there."""
        results = self.table.find(self.directory, name)
        assert results is not None
        return results

    async def review(self, name: str = "") -> Sequence[InboxItem]:
        """Return what waits as a person sees it, or one item."""
        call = call_about(self.memory)
        return (await self.inbox.list_items(call, cwd=self.directory, id_=name)).items

    async def accept(
        self, name: str, paths: Sequence[str] = (), client: str = "", *, assistant: bool = False
    ) -> Decided:
        """Accept a proposal, or some files of it, for a person or as an assistant's program."""
        call = call_about(self.memory, client)
        if assistant:
            call.connection.ancestors, call.connection.below_assistant = (), True
        return await self._decide(call, name, choice=Answer.ACCEPT, paths=tuple(paths))

    async def reject(self, name: str, paths: Sequence[str] = (), reason: str = "") -> Decided:
        """Reject a proposal, or some files of it, for a person."""
        decide = partial(self._decide, call_about(self.memory), name, choice=Answer.REJECT)
        return await decide(paths=tuple(paths), reason=reason)

    async def _decide(
        self, call: Call, name: str, *, choice: Answer, paths: tuple[str, ...], reason: str = ""
    ) -> Decided:
        decide = partial(self.inbox.decide, call, cwd=self.directory, id_=name)
        return await decide(choice=choice, paths=paths, reason=reason)

    def states(self, name: str) -> dict[str, str]:
        """Return the state of each edit of a proposal."""
        return {edit.path: edit.state for edit in self.proposal(name).edits}

    def files(self) -> dict[str, bytes]:
        """Return the memories and the index."""
        return {path.name: path.read_bytes() for path in sorted(self.memory.glob("*.md"))}


@contextmanager
def open_bench(folder: Path) -> Iterator[Bench]:
    """Open a bench below a folder, and close its state file at the end."""
    database = open_database(str(folder / "state.db"), SCHEMAS)
    try:
        yield Bench(folder, database)
    finally:
        database.close()

"""Extraction as the daemon runs it: what is new in a conversation becomes memories.

Reads, asks the pure files beside it, and commits change sets of at most 50 candidates, so that
nobody waits long for the directory and no set is too large. The cursor and the job's end move with
the last one: after a crash the stretch is read again, and what is already written changes nothing.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import replace

from anyio import to_thread

from memd.core.clock import Clock
from memd.core.settings import Settings
from memd.core.values import (
    Actor,
    CursorMove,
    Draft,
    Effect,
    JobEnd,
    Message,
    Project,
    Provenance,
    Tree,
)
from memd.extract import candidates, requests
from memd.extract.candidates import Candidate
from memd.extract.merge import Merged, merge, settle
from memd.extract.requests import Extracted, ExtractRequest, Unread
from memd.state.cursors import Cursors
from memd.store import transcripts
from memd.store.service import Store
from memd.store.transcripts import InvalidMessagesError, TranscriptRefusedError

__all__ = [
    "Extract",
    "ExtractRequest",
    "Extracted",
    "InvalidMessagesError",
    "TranscriptRefusedError",
]


_SLICE = 50  # candidates in one change set; a set may have 500 files


class Extract:
    """Extractions of one daemon; one at a time per memory directory is the jobs' business."""

    def __init__(self, store: Store, cursors: Cursors, clock: Clock) -> None:
        self._store = store
        self._cursors = cursors
        self._clock = clock

    def gate(self, settings: Settings, project: Project) -> str:
        """Return the reason to extract nothing, "" to go on (spec 4.2)."""
        return requests.gate(settings, project)

    async def run(
        self, project: Project, request: ExtractRequest, *, job: str, client: str
    ) -> Extracted:
        """Read what is new since the session's cursor, keep what is worth keeping, move on.

        Raises TranscriptRefusedError, InvalidMessagesError and what ``Store.commit`` raises; then
        the cursor stays where it was.
        """
        settings, _ = await self._store.settings(project)
        reason = requests.gate(settings, project)
        if reason:
            return Extracted(requests.SKIPPED, reason)
        unread = await to_thread.run_sync(self._unread, project, request)
        turns = requests.turns(unread.messages)
        if 0 < turns < settings.extract.every_turns:
            return Extracted(requests.SKIPPED, requests.EVERY_TURNS, problem=unread.problem)
        directories = {project.memory_dir, await to_thread.run_sync(_real, project.memory_dir)}
        written = requests.wrote_memory(
            unread.messages, sorted(directories), transcripts.MEMORY_ROOT
        )
        run = _Run(unread, self._clock.now(), job)
        if written:
            run.skip(requests.ALREADY_WRITTEN)
        elif not turns:
            run.skip(requests.NOTHING_NEW)
        else:
            await to_thread.run_sync(run.find)
        by = Provenance(
            Actor.EXTRACT,
            client=client,
            session=request.session,
            reason=f"extracted by the {requests.ENGINE} extractor",
            origin="user",
        )
        # Between two slices others get the directory, and a cancellation gets through.
        while not run.done:
            outcome = await self._store.commit(project.memory_dir, run.plan, by)
            run.committed(outcome.change)
            if not run.done:
                # What the store has seen it need not parse again for the next slice.
                await self._store.snapshot(project.memory_dir)
        return run.extracted

    def _unread(self, project: Project, request: ExtractRequest) -> Unread:
        """Read from the cursor on. Blocks: runs in a worker thread."""
        cursor = self._cursors.get(project.memory_dir, request.session)
        if request.transcript_path is None:
            messages = transcripts.from_messages(request.messages)
            return requests.unread(messages, request.session, cursor)
        return _transcript(request.transcript_path, request.session, cursor)


class _Run:
    """One extraction, slice by slice: each plan may run again on a changed directory."""

    def __init__(self, unread: Unread, now: float, job: str) -> None:
        self._now = now
        self._job = job
        self._cursor = unread.cursor
        self._messages: Sequence[Message] = unread.messages
        self._left: Sequence[Candidate] = ()
        self._planned = Merged(Draft())
        self.done = False
        self.extracted = Extracted(requests.COMPLETED, problem=unread.problem)

    def skip(self, reason: str) -> None:
        """Keep nothing of this stretch; the cursor moves all the same."""
        self.extracted = replace(self.extracted, status=requests.SKIPPED, reason=reason)

    def find(self) -> None:
        """Look for candidates. Takes a while on a long conversation: runs in a worker thread."""
        found = candidates.find(self._messages, self._now)
        self._left = settle(found.candidates)
        self.extracted = replace(
            self.extracted, refused=found.refused, passed_over=found.passed_over
        )

    def plan(self, tree: Tree) -> Draft:
        """Return the next slice's change set for the directory as it is now.

        Runs in the store's thread. The last slice brings the cursor and the job's end.
        """
        mine = self._left[:_SLICE]
        session = self._cursor.session
        # Without candidates the directory, which may be long, need not be looked at.
        self._planned = (
            merge(mine, tree, session=session, at=self._now) if mine else Merged(Draft())
        )
        effects: tuple[Effect, ...] = ()
        if len(self._left) <= _SLICE:
            result = json.dumps(self._so_far().facts())
            end = JobEnd(self._job, requests.COMPLETED, result)
            effects = (self._cursor, end) if self._job else (self._cursor,)
        return replace(self._planned.draft, effects=effects)

    def committed(self, change: str | None) -> None:
        """Count the planned slice as written; ``change`` is its id."""
        self.extracted = self._so_far()
        self.done = len(self._left) <= _SLICE
        self._left = self._left[_SLICE:]
        if self.done:
            self.extracted = replace(self.extracted, change=change)
        elif change:
            earlier = (*self.extracted.earlier_changes, change)
            self.extracted = replace(self.extracted, earlier_changes=earlier)

    def _so_far(self) -> Extracted:
        saved, updated = self.extracted.saved, self.extracted.updated
        fresh = [path for path in self._planned.updated if path not in {*saved, *updated}]
        return replace(
            self.extracted,
            saved=(*saved, *self._planned.saved),
            updated=(*updated, *fresh),
        )


def _transcript(path: str, session: str, cursor: CursorMove | None) -> Unread:
    """Return what a transcript holds behind the cursor: the person's words and what was written."""
    known = cursor is not None and cursor.source == path
    offset, marker = (cursor.position, cursor.marker) if cursor and known else (0, "")
    kept: list[Message] = []
    problem, complete = "", False
    while not complete:
        part = transcripts.read(path, offset, marker)
        # A first reading may cover hundreds of megabytes; only these are looked at again.
        kept += [item for item in part.messages if item.origin == "user" or item.writes]
        offset, marker, complete = part.offset, part.marker, part.complete
        problem = problem or part.problem
    return Unread(tuple(kept), CursorMove(session, path, offset, marker), problem)


def _real(directory: str) -> str:
    return os.path.realpath(directory)

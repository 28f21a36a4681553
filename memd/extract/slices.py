"""What the fixed extractor found, as change sets of a bounded size. Pure.

Between two sets others get the directory; the last one brings the cursor and the job's end.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from memd.core.values import Draft, Effect, JobEnd, Message, Tree
from memd.extract import candidates, requests
from memd.extract.candidates import Candidate
from memd.extract.merge import Merged, merge, settle
from memd.extract.requests import Extracted, Unread

SLICE = 50  # candidates in one change set; a set may have 500 files


class Slices:
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

    def note(self, problem: str) -> None:
        """Say why the fixed extractor does it."""
        self.extracted = replace(self.extracted, problem=problem or self.extracted.problem)

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
        mine = self._left[:SLICE]
        session = self._cursor.session
        # Without candidates the directory, which may be long, need not be looked at.
        self._planned = (
            merge(mine, tree, session=session, at=self._now) if mine else Merged(Draft())
        )
        effects: tuple[Effect, ...] = ()
        if len(self._left) <= SLICE:
            result = json.dumps(self._so_far().facts())
            end = JobEnd(self._job, requests.COMPLETED, result)
            effects = (self._cursor, end) if self._job else (self._cursor,)
        return replace(self._planned.draft, effects=effects)

    def committed(self, change: str | None) -> None:
        """Count the planned slice as written; ``change`` is its id."""
        self.extracted = self._so_far()
        self.done = len(self._left) <= SLICE
        self._left = self._left[SLICE:]
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

"""Effects: other facts that become true in the transaction that marks a change done."""

import json
from collections.abc import Iterable

from msgspec.structs import replace

from memd.base.text import read_json
from memd.base.values import (
    CursorMove,
    Effect,
    JobEnd,
    LockTaken,
    ProposalDecided,
    Suggestion,
    SuggestionDecided,
    TeamMoved,
)
from memd.state import cursors, dreams, jobs, proposals, suggestions, teams
from memd.state.database import Cursor


def carry_out(
    cursor: Cursor, directory: str, effects: Iterable[Effect], change: str | None, at: float
) -> None:
    """Carry out effects inside the caller's transaction.

    ``change`` is the id of the change, which a job's result gets, or ``None`` if no file changed.
    """
    for effect in effects:
        if isinstance(effect, CursorMove):
            cursors.move(cursor, directory, effect)
        elif isinstance(effect, LockTaken):
            dreams.save(cursor, effect)
        elif isinstance(effect, ProposalDecided):
            proposals.decide(cursor, directory, effect, at)
        elif isinstance(effect, Suggestion):
            suggestions.save(cursor, directory, effect, at)
        elif isinstance(effect, SuggestionDecided):
            suggestions.decide(cursor, directory, effect)
        elif isinstance(effect, TeamMoved):
            teams.store_pull(cursor, directory, effect, change)
        elif isinstance(effect, JobEnd):
            jobs.end(cursor, _with_change(effect, change), at)


def _with_change(end: JobEnd, change: str | None) -> JobEnd:
    """Return a job's end with the id of the change in its result, if there is one."""
    result = read_json(end.result)
    if change is None or not isinstance(result, dict):
        return end
    return replace(end, result=json.dumps({**result, "change": change}))

"""Effects: other rows that change in the transaction that applies a change set.

An effect moves a transcript's cursor, ends a job, decides a proposal and so on. Effects are stored
as JSON in the change set's row and carried out when it is marked applied.
"""

import json
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec.structs import asdict, fields, replace

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
    Undid,
)
from memd.state import cursors, dreams, jobs, proposed, suggestions, teams
from memd.state.database import Cursor

# The class of an effect by the name that its JSON has.
_KINDS: dict[str, type[Effect]] = {
    "cursor": CursorMove,
    "job": JobEnd,
    "lock": LockTaken,
    "proposal": ProposalDecided,
    "suggestion": Suggestion,
    "suggestion_decided": SuggestionDecided,
    "team": TeamMoved,
    "undid": Undid,
}


def carry_out(
    cursor: Cursor, directory: str, effects: Iterable[Effect], change: str | None, at: float
) -> None:
    """Carry out effects inside the caller's transaction.

    ``change`` is the change set's id, which a job's result gets, or ``None`` if no file changed.
    """
    for effect in effects:
        if isinstance(effect, CursorMove):
            cursors.move(cursor, directory, effect)
        elif isinstance(effect, LockTaken):
            dreams.save(cursor, effect)
        elif isinstance(effect, ProposalDecided):
            proposed.decide(cursor, effect, at)
        elif isinstance(effect, Suggestion):
            suggestions.save(cursor, directory, effect, at)
        elif isinstance(effect, SuggestionDecided):
            suggestions.decide(cursor, directory, effect)
        elif isinstance(effect, TeamMoved):
            teams.store_pull(cursor, directory, effect, change)
        elif isinstance(effect, JobEnd):
            jobs.end(cursor, _with_change(effect, change), at)


def to_text(effects: Iterable[Effect]) -> str:
    """Return effects as JSON."""
    names = {cls: name for name, cls in _KINDS.items()}
    return json.dumps([{"kind": names[type(item)], **asdict(item)} for item in effects])


def from_text(text: str) -> tuple[Effect, ...]:
    """Return the effects in a JSON text, without invalid ones: the state file may be damaged."""
    result: list[Effect] = []
    items = read_json(text)
    for item in items if isinstance(items, list) else []:
        facts = dict(item) if isinstance(item, dict) else {}
        effect_class = _KINDS.get(str(facts.pop("kind", "")))
        if effect_class is None:
            continue
        field_names = {field.name for field in fields(effect_class)}
        if facts.keys() <= field_names:
            with suppress(msgspec.ValidationError):
                result.append(msgspec.convert(facts, effect_class))
    return tuple(result)


def _with_change(end: JobEnd, change: str | None) -> JobEnd:
    """Return a job's end with the id of the change set in its result, if there is one."""
    result = read_json(end.result)
    if change is None or not isinstance(result, dict):
        return end
    return replace(end, result=json.dumps({**result, "change": change}))

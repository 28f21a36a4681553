"""Build the extraction of memories and the rules for tools from the daemon's parts."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from memd.agent.runs import Runs
from memd.base.clock import Clock
from memd.base.covered import CoveredIn
from memd.extract.service import Extractions, Note, Waiting
from memd.model.configured import Models
from memd.rules.service import ToolRules
from memd.state.database import Database, StateUnusableError
from memd.state.docs import Docs
from memd.state.suggestions import SuggestionTable
from memd.store.store import Store


def extractions(
    database: Database,
    store: Store,
    clock: Clock,
    models: Models,
    runs: Runs,
    *,
    waiting: Waiting,
    note: Note,
    joined: Callable[[str], bool],
    covered: CoveredIn,
) -> Extractions:
    """Return the extraction of memories."""
    return Extractions(
        store,
        Docs(database),
        clock,
        models,
        runs,
        waiting=waiting,
        note=note,
        joined=joined,
        covered=covered,
        new_suggestions=partial(_count_new_suggestions, SuggestionTable(database)),
    )


def _count_new_suggestions(table: SuggestionTable, directory: str, texts: Sequence[str]) -> int:
    """Return how many texts were not suggested before."""
    with suppress(StateUnusableError):  # a wrong count does no harm
        return table.count_new(directory, texts)
    return len(texts)


def tool_rules(database: Database, store: Store, clock: Clock) -> ToolRules:
    """Return the rules for tools."""
    return ToolRules(store, Docs(database), clock)

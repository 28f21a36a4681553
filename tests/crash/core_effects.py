"""What becomes true together with a change, in the core's words."""

from collections.abc import Callable
from typing import Any

from memd.base import values
from memd.base.team import Base
from memd.extract.cursors import ExtractionCursor, cursor_moved, read_cursor
from memd.state.database import Database
from memd.state.docs import Docs
from memd.state.suggestions import SuggestionTable, suggestion_saved
from memd.state.teams import TeamTable, bases_moved

# By kind: makes an effect for a directory, from a key and a value.
EFFECTS: dict[str, Callable[[str, str, Any], values.Effect]] = {
    "cursor": lambda at, key, value: cursor_moved(
        at, ExtractionCursor(key, "/t.jsonl", value, "uuid")
    ),
    "suggestion": lambda at, key, value: suggestion_saved(
        at, values.Suggestion(key, value, 4.0, "user"), 4.0
    ),
    "bases": lambda at, _, value: bases_moved(
        at, [Base(key, each, 7, "anna") for key, each in value.items()]
    ),
}


def effects_in(database: Database, directory: str) -> object:
    """Return what became true with changes, in a form that can be compared."""
    said = SuggestionTable(database).open_in(directory)
    bases = TeamTable(database).bases(directory)
    cursor = read_cursor(Docs(database), directory, "session")
    return cursor, [each.text for each in said], bases

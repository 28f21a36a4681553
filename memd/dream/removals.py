"""What recent dreams removed, from the results of their jobs. Blocks."""

from memd.state.database import Database
from memd.state.jobs import completed_results

_SECONDS = 30 * 24 * 60 * 60.0  # thirty nights


def removed_lately(database: Database, directory: str, now: float) -> frozenset[str]:
    """Return the paths that dreams of the last 30 nights removed for a reason alone.

    ``now`` is in seconds since 1970; a dream that ended later, by a clock that was wrong, does not
    count. Dreams that were undone count as well. Raises StateUnusableError.
    """
    removed: set[str] = set()
    for facts in completed_results(database, "dream", directory, now - _SECONDS, now):
        items = facts.get("removed") if facts.get("change") else None
        for item in items if isinstance(items, list) else ():  # the state file may be damaged
            path = item.get("path") if isinstance(item, dict) else None
            if isinstance(path, str):
                removed.add(path)
    return frozenset(removed)

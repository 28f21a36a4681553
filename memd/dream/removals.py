"""What recent dreams removed, from the results of their jobs. Blocks."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from memd.state.database import Database
from memd.state.jobs import completed_results


def removed_since(
    database: Database, directory: str, since: float
) -> tuple[frozenset[str], dict[str, int]]:
    """Return the paths that dreams removed after ``since``, and the lost words by path.

    Only memories that were removed without merging them count; the words are those that other
    memories lost. Dreams that were undone count as well. ``since`` is seconds since 1970. Raises
    StateUnusableError.
    """
    removed: set[str] = set()
    lost_words: Counter[str] = Counter()  # by path
    for facts in completed_results(database, "dream", directory, since):
        if facts.get("change"):
            removed.update(_removed_paths(facts.get("removed")))
            lost_words.update(_lost_words(facts.get("lost")))
    return frozenset(removed), dict(lost_words)


def _removed_paths(items: Any) -> Iterator[str]:
    """Yield the paths of removed memories from the list in a dream job's result.

    The state file may be damaged: any other value has none.
    """
    for item in items if isinstance(items, list) else ():
        path = item.get("path") if isinstance(item, dict) else None
        if isinstance(path, str):
            yield path


def _lost_words(words: Any) -> dict[str, int]:
    """Return the lost words by path from a dream job's result, without invalid numbers."""
    if not isinstance(words, dict):
        return {}
    return {path: number for path, number in words.items() if type(number) is int and number > 0}

"""Taking a change back in the store, in one call."""

from memd.base.values import CommitResult, Provenance
from memd.store.store import Store


async def undo(
    store: Store, directory: str, change: str, by: Provenance
) -> tuple[CommitResult, tuple[str, ...]]:
    """Take one change back; return the outcome and the paths that had to be left alone."""
    done = await store.take_back(directory, lambda past, real: past.undo(real, change), by)
    return done, done.conflicts

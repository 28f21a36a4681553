"""Bound what memd keeps, at the start and every hour: by size and number, never by age."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from anyio import to_thread

from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.context.service import Contexts
from memd.daemon.log import Log
from memd.notes.service import Notes
from memd.projects.visits import last_visits
from memd.state.changes import Pruned, Retention
from memd.state.database import Database, StateUnusableError
from memd.state.docs import Docs
from memd.store.service import Store

PASS_SECONDS = 60 * 60.0  # between two passes
_MEBIBYTE = 1024 * 1024


async def keep_bounded(
    database: Database,
    store: Store,
    clock: Clock,
    log: Log,
    *,
    notes: Notes,
    contexts: Contexts,
    forget: Callable[[], Awaitable[None]],
) -> None:
    """Remove what is too much now and every hour, until cancelled.

    ``forget`` is called too; it removes old messages. If the state file cannot be used, the next
    pass does it.
    """
    while True:
        try:
            settings, _ = await store.settings()
            pruned = await prune(database, settings.journal.mebibytes * _MEBIBYTE)
            if pruned != Pruned():
                log.note("pruned", changes=pruned.changes, bodies=pruned.bodies)
            await _prune_notes(database, store, notes)
            await contexts.prune()
            await forget()
        except StateUnusableError as error:
            log.warning("not pruned", detail=error.sentence)
        await clock.sleep(PASS_SECONDS)


async def prune(database: Database, most: int) -> Pruned:
    """Remove history above ``most`` bytes, in small batches so that others can write in between.

    The file shrinks once half of it is unused. Raises StateUnusableError; what was removed until
    then stays removed.
    """
    retention = Retention(database, most)
    total = Pruned(more=True)
    while total.more:
        total += await to_thread.run_sync(retention.batch)
    await to_thread.run_sync(_shrink, database)
    return total


def _shrink(database: Database) -> None:
    """Rewrite the state file if at least half of its pages are unused. Blocks."""
    pages, unused = (
        database.read(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count")
    )
    if unused * 2 >= pages:
        database.compact()


async def _prune_notes(database: Database, store: Store, notes: Notes) -> None:
    """Remove all but the newest session notes below each folder of projects that clients have.

    Raises StateUnusableError.
    """
    visits = await to_thread.run_sync(last_visits, Docs(database))
    environments = ({}, *(visit.environment for visit in visits))
    for base in {await to_thread.run_sync(store.projects.base, each) for each in environments}:
        with suppress(MemdError):
            await notes.prune(base)

"""Bound what memd keeps, at the start and every hour: by size and number, never by age."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from anyio import to_thread

from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.context.service import Contexts
from memd.daemon.log import Log
from memd.notes.service import Notes
from memd.projects.known import last_visits
from memd.projects.projects import Projects
from memd.state.database import Database, StateUnusableError
from memd.state.docs import Docs
from memd.store.forget import keep_newest, prune
from memd.store.log import ChangeLog

PASS_SECONDS = 60 * 60.0  # between two passes
_MEBIBYTE = 1024 * 1024


async def keep_bounded(
    database: Database,
    projects: Projects,
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
            settings, _ = await projects.settings()
            changes, bodies = await to_thread.run_sync(
                _prune, database, settings.journal.mebibytes * _MEBIBYTE
            )
            if changes:
                log.note("pruned", changes=changes, bodies=bodies)
            await _prune_notes(database, projects, notes)
            await contexts.prune()
            await forget()
        except StateUnusableError as error:
            log.warning("not pruned", detail=error.sentence)
        await clock.sleep(PASS_SECONDS)


def _prune(database: Database, most: int) -> tuple[int, int]:
    """Remove history above ``most`` bytes, in small batches; return how many changes and bodies.

    Raises StateUnusableError; what was removed until then stays removed. Blocks.
    """
    history, changes, bodies = ChangeLog(database), 0, 0
    while True:
        some_changes, some_bodies = prune(history, most)
        if not some_changes:
            break
        changes, bodies = changes + some_changes, bodies + some_bodies
    if changes:
        database.shrink()
    keep_newest(database)
    return changes, bodies


async def _prune_notes(database: Database, projects: Projects, notes: Notes) -> None:
    """Remove all but the newest session notes below each folder of projects that clients have.

    Raises StateUnusableError.
    """
    visits = await to_thread.run_sync(last_visits, Docs(database))
    environments = (projects.environ, *(visit.environment for visit in visits))
    for base in {await to_thread.run_sync(projects.base, each) for each in environments}:
        with suppress(MemdError):
            await notes.prune(base)

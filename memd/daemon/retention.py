"""The journal, and what was decided of dreams, is kept within bounds: at the start and daily."""

import anyio

from memd.core.clock import Clock
from memd.core.settings import JournalSettings
from memd.daemon.log import Log
from memd.state.database import Database, StateUnusableError
from memd.state.dreams import DreamTable
from memd.state.retention import Pruned, Retention
from memd.store.service import Store

DAY_SECONDS = 24 * 60 * 60.0
_MEBIBYTE = 1024 * 1024


async def keep_bounded(database: Database, store: Store, clock: Clock, log: Log) -> None:
    """Prune now and every day, by the settings of that day; runs until it is cancelled.

    A state file that cannot be used is tried again the next day.
    """
    while True:
        settings, _ = await store.settings()
        try:
            pruned = await prune(database, settings.journal, clock.now())
        except StateUnusableError as error:
            log.warning("not pruned", detail=error.sentence)
        else:
            if pruned != Pruned():
                log.note(
                    "pruned",
                    changes=pruned.changes,
                    bodies=pruned.bodies,
                    requests=pruned.requests,
                )
        await clock.sleep(DAY_SECONDS)


async def prune(database: Database, bounds: JournalSettings, now: float) -> Pruned:
    """Forget what the bounds do not hold, in small batches between which others may write.

    Raises StateUnusableError; what was forgotten until then stays forgotten.
    """
    before = now - bounds.days * DAY_SECONDS
    retention = Retention(database, before, bounds.mebibytes * _MEBIBYTE)
    total = Pruned(more=True)
    while total.more:
        total += await anyio.to_thread.run_sync(retention.batch)
    await anyio.to_thread.run_sync(DreamTable(database).prune, before)
    return total

"""Prune the journal and all other records with an age limit, at the start and daily."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from anyio import to_thread

from memd.context.service import Contexts
from memd.core.clock import Clock
from memd.core.clock_check import DAY_SECONDS, ClockCheck
from memd.core.errors import MemdError
from memd.core.settings import JournalSettings
from memd.daemon.log import Log
from memd.notes.service import Notes
from memd.state.changes import Baseline, Pruned, Retention, forget_copies
from memd.state.database import Database, StateUnusableError
from memd.state.tables import (
    KEPT_DAYS,
    OPEN_DAYS,
    RESUMED_DAYS,
    SIGHTED_DAYS,
    UNUSED_DAYS,
    Ages,
    Ledger,
    SpendTable,
    SuggestionTable,
    UsageTable,
    Visits,
)
from memd.store.service import Store

LOOK_SECONDS = 45 * 60.0  # between checks of the clock: a day may span several runs
_MEBIBYTE = 1024 * 1024


async def keep_bounded(
    database: Database,
    store: Store,
    ages: Ages,
    clock: Clock,
    log: Log,
    *,
    notes: Notes,
    contexts: Contexts,
    forget: Callable[[], Awaitable[None]],
) -> None:
    """Check the clock every 45 minutes, and prune now and every day, until cancelled.

    ``forget`` is called daily too; it removes old messages. The bounds are read from the settings
    each time. If the state file cannot be used, pruning is tried again at the next check.
    """
    next_prune = clock.monotonic()
    logged_problem = ""  # of the clock; each is logged once
    while True:
        settings, _ = await store.settings()
        try:
            check = await to_thread.run_sync(ages.inspect, clock.now(), clock.monotonic())
            unused = await to_thread.run_sync(ages.bound, check, UNUSED_DAYS)
            await to_thread.run_sync(UsageTable(database).count_day, check, unused)
            if clock.monotonic() >= next_prune:
                pruned = await prune(database, settings.journal, ages, check)
                if pruned != Pruned():
                    facts = {"changes": pruned.changes, "bodies": pruned.bodies}
                    log.note("pruned", **facts, requests=pruned.requests)
                await prune_notes(database, store, notes, ages, check)
                old_contexts = await to_thread.run_sync(ages.bound, check, settings.context.days)
                await contexts.prune(old_contexts.before)
                await to_thread.run_sync(follow_usage, database, clock.now())
                await forget()
                next_prune = clock.monotonic() + DAY_SECONDS
        except StateUnusableError as error:
            log.warning("not pruned", detail=error.sentence)
        else:
            if check.problem and check.problem != logged_problem:
                log.warning("clock", detail=check.problem)
            logged_problem = check.problem
        await clock.sleep(LOOK_SECONDS)


async def prune(
    database: Database, bounds: JournalSettings, ages: Ages, check: ClockCheck
) -> Pruned:
    """Remove what exceeds the bounds, in small batches so that others can write in between.

    Raises StateUnusableError; what was removed until then stays removed.
    """
    old = await to_thread.run_sync(ages.bound, check, bounds.days)
    retention = Retention(database, old, bounds.mebibytes * _MEBIBYTE)
    total = Pruned(more=True)
    while total.more:
        total += await to_thread.run_sync(retention.batch)
    with suppress(OSError):  # the next day does it
        await to_thread.run_sync(forget_copies, database.path, old.before)
    resumed = await to_thread.run_sync(ages.bound, check, RESUMED_DAYS)
    sighted = await to_thread.run_sync(ages.bound, check, SIGHTED_DAYS)
    await to_thread.run_sync(Ledger(database).prune, resumed, sighted)
    spent = await to_thread.run_sync(ages.bound, check, KEPT_DAYS)
    await to_thread.run_sync(SpendTable(database).prune, spent)
    open_since = await to_thread.run_sync(ages.bound, check, OPEN_DAYS)
    await to_thread.run_sync(SuggestionTable(database).prune, open_since.before)
    return total


def follow_usage(database: Database, now: float) -> None:
    """Begin usage counts for new memories, and remove those of long deleted ones. Blocks.

    Raises StateUnusableError.
    """
    baseline, usage = Baseline(database), UsageTable(database)
    for directory in baseline.directories():
        usage.follow_files(directory, baseline.fingerprints(directory), now)
    usage.prune()


async def prune_notes(
    database: Database, store: Store, notes: Notes, ages: Ages, check: ClockCheck
) -> None:
    """Remove session notes that have not changed for the days of ``notes.days``, at least one.

    They are searched below the transcript folders of the daemon and of all visits' environments.
    With 0 days, notes are removed at their session's end, or a day later if no end was reported.
    Raises StateUnusableError.
    """
    settings, _ = await store.settings()
    days = max(settings.notes.days, 1)
    before = (await to_thread.run_sync(ages.bound, check, days)).before
    visits = await to_thread.run_sync(Visits(database).all)
    environments = ({}, *(visit.environment for visit in visits))
    bases = {await to_thread.run_sync(store.projects.base, each) for each in environments}
    for base in bases:
        with suppress(MemdError):
            await notes.prune(base, before)

"""Run the daemon as a process: signals, and the supervisor's watchdog."""

import os
import signal
from collections.abc import Mapping

import anyio
from anyio.abc import TaskStatus

from memd import __version__
from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.daemon import notify
from memd.daemon.app import Ports, daemon
from memd.daemon.log import Log


async def run(ports: Ports) -> None:
    """Serve until SIGTERM, SIGINT or ``shutdown``.

    Notifies systemd when ready, and feeds its watchdog. Raises what ``daemon`` does.
    """
    try:
        await _run(ports)
    except ExceptionGroup as group:
        error = group.exceptions[0]
        # The error that prevents a start has a sentence and a status; the group would hide both.
        if len(group.exceptions) == 1 and isinstance(error, MemdError):
            raise error from None
        raise


async def _run(ports: Ports) -> None:
    """Serve until the end is requested."""
    ending = anyio.Event()
    async with anyio.create_task_group() as group:
        await group.start(_handle_signals, ports.log, ending)
        # Before the state file opens, which may be slow: systemd counts already.
        group.start_soon(_feed_watchdog, ports.environ, ports.clock)
        async with daemon(ports, ending):
            notify.notify(ports.environ, notify.READY)
            socket_path = ports.places.socket
            ports.log.note("ready", socket=socket_path, version=__version__, pid=os.getpid())
            await ending.wait()
            notify.notify(ports.environ, notify.STOPPING)
            ports.log.note("stopping")
        group.cancel_scope.cancel()


async def _handle_signals(
    log: Log, ending: anyio.Event, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Request the end at SIGTERM and SIGINT; log a SIGHUP. Runs until cancelled."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        task_status.started()
        async for number in received:
            if number == signal.SIGHUP:
                log.note("settings", detail="read again at the next use, as after any change")
            else:
                ending.set()


async def _feed_watchdog(environ: Mapping[str, str], clock: Clock) -> None:
    """Feed systemd's watchdog until cancelled, if it is on."""
    seconds = notify.watchdog_seconds(environ, os.getpid())
    while seconds:
        notify.notify(environ, notify.WATCHDOG)
        await clock.sleep(seconds)

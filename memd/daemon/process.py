"""The daemon as a process: signals, the supervisor and its watchdog, and a look at itself."""

import os
import signal
from collections.abc import Mapping

import anyio
from anyio.abc import TaskStatus

from memd import __version__
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.daemon import notify
from memd.daemon.app import Ports, daemon
from memd.daemon.ending import Ending
from memd.daemon.log import Log

_LOOK_SECONDS = 5.0  # what a removed socket costs its users at most


async def run(ports: Ports) -> bool:
    """Serve until SIGTERM, SIGINT, ``shutdown`` or ``restart``; return whether to go on anew.

    Says when it is ready and feeds systemd's watchdog. Raises what ``daemon`` does.
    """
    try:
        return await _run(ports)
    except ExceptionGroup as several:
        alone = several.exceptions[0]
        # What keeps it from starting has a sentence and a status; the group would hide both.
        if len(several.exceptions) == 1 and isinstance(alone, MemdError):
            raise alone from None
        raise


async def _run(ports: Ports) -> bool:
    ending = Ending()
    async with anyio.create_task_group() as group:
        await group.start(_signals, ports.log, ending)
        # From here on: behind a restart systemd still counts, and a state file may take its time.
        group.start_soon(_watchdog, ports.environ, ports.clock)
        async with daemon(ports, ending):
            group.start_soon(_look_after_itself, ports, ending)
            notify.notify(ports.environ, notify.READY)
            socket_path = ports.places.socket
            ports.log.note("ready", socket=socket_path, version=__version__, pid=os.getpid())
            await ending.requested.wait()
            if not ending.restarting:  # to the supervisor a restart is no end: it stays the service
                notify.notify(ports.environ, notify.STOPPING)
            ports.log.note("stopping", restarting=ending.restarting)
        group.cancel_scope.cancel()
    return ending.restarting


async def _signals(
    log: Log, ending: Ending, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    with anyio.open_signal_receiver(*wanted) as received:
        for number in (signal.SIGTERM, signal.SIGINT):
            # At once: one at the end of a restart would wait in a loop that runs no more.
            signal.signal(number, lambda *_: ending.stop())
        task_status.started()
        async for number in received:
            if number == signal.SIGHUP:
                log.note("settings", detail="read again at the next use, as after any change")


async def _watchdog(environ: Mapping[str, str], clock: Clock) -> None:
    seconds = notify.watchdog_seconds(environ, os.getpid())
    while seconds:
        notify.notify(environ, notify.WATCHDOG)
        await clock.sleep(seconds)


async def _look_after_itself(ports: Ports, ending: Ending) -> None:
    """End the daemon when nobody can find it any more, so that the next client starts another."""
    while await anyio.to_thread.run_sync(ports.intact):
        await ports.clock.sleep(_LOOK_SECONDS)
    ports.log.warning("unreachable", detail="the socket or the lock file was removed; ending")
    ending.stop()

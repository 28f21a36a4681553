"""From a command line to a serving daemon: the lock first, then the socket, then the loop."""

import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from socket import socket

import anyio

from memd.core.errors import MemdError
from memd.core.places import Places, find
from memd.daemon.app import Ports, run
from memd.daemon.clock import SystemClock
from memd.daemon.instance import AlreadyRunningError, Instance
from memd.daemon.log import Log
from memd.rpc.listener import inherited_listener, launchd_listener, make_listener
from memd.store.configuration import Configuration

_DESCRIPTORS = 4096


def start(environ: Mapping[str, str]) -> int:
    """Serve until the end and return the exit status; 0 also when another memd serves already."""
    os.umask(0o077)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # harmless at any time: settings are read at use
    try:
        places = find(environ, os.path.expanduser("~"))
        with Instance(places):
            _limits()
            settings, problems = Configuration(places.config).current()
            log = Log(level=settings.log.level)
            for problem in problems:
                log.warning("settings", detail=problem)
            with _listener(places, environ) as listener:
                ports = Ports(places, environ, SystemClock(), log, listener)
                anyio.run(partial(run, ports))
            with suppress(FileNotFoundError):
                if not _inherited(environ):
                    Path(places.socket).unlink()
    except AlreadyRunningError as other:
        sys.stderr.write(f"memd: {other.sentence}\n")
        return 0
    except MemdError as error:
        sys.stderr.write(f"memd: {error.sentence}\n")
        return error.exit_status
    return 0


def _listener(places: Places, environ: Mapping[str, str]) -> socket:
    return (
        inherited_listener(environ, os.getpid())
        or launchd_listener("Listener")
        or make_listener(places.socket)
    )


def _inherited(environ: Mapping[str, str]) -> bool:
    return environ.get("LISTEN_PID") == str(os.getpid())


def _limits() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold memories

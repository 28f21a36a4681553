"""Start the daemon from a command line: first the lock, then the socket, then the loop."""

import ctypes
import gc
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from socket import socket

import anyio

from memd import __version__
from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.places import Places, find
from memd.client import hook_file
from memd.daemon.app import Ports
from memd.daemon.clock import MovedClock, SystemClock
from memd.daemon.instance import AlreadyRunningError, Instance
from memd.daemon.log import Log
from memd.daemon.process import run
from memd.model.configured import (
    ENVIRONMENT,
    EnvFileUnusableError,
    Origin,
    environment,
    read_variables,
)
from memd.projects.configuration import Configuration
from memd.rpc.listener import inherited_listener, launchd_listener, make_listener

_DESCRIPTORS = 4096  # open at once, at most
# Jobs compute in threads of this interpreter. At Python's own 5 ms each step of an answer waits so
# long for them; at this value a call beside two of them took 1 ms instead of 20.
_SWITCH_SECONDS = 0.0002  # between two threads
# A collection of all generations stops every thread: for 130 ms beside a dream of 1,000 memories,
# for up to 620 ms beside one of 10,000, where 19 of them found 20 objects. So they come 200 times
# as rarely as Python has them. The young generations are collected as ever.
_COLLECT_ALL_AFTER = 2_000  # collections of the young generations
# The C library keeps a heap for each few threads, and what one frees serves no other; and what lies
# behind something that is still in use stays. After 6,000 mixed requests over 1,000 memories 116
# MiB were resident, and 88 with one heap without pieces as large as an index or a request.
_MALLOC_OPTIONS = {-8: 1, -3: 64 * 1024}  # M_ARENA_MAX, M_MMAP_THRESHOLD of malloc.h


def start(environ: Mapping[str, str], test_clock: str | None = None) -> int:
    """Serve until the end and return the exit status; 0 also when another memd serves already.

    ``test_clock`` is a file with the seconds to add to the system's time (``daemon/clock.py``).
    """
    os.umask(0o077)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # harmless at any time: settings are read at use
    status = 0
    try:
        places = find(environ, os.path.expanduser("~"))
        with Instance(places) as instance:
            _set_process_limits()
            clock = SystemClock() if test_clock is None else MovedClock(test_clock)
            _serve(places, environ, instance, clock)
    except AlreadyRunningError as other:
        sys.stderr.write(f"memd: {other.sentence}\n")
    except MemdError as error:
        sys.stderr.write(f"memd: {error.sentence}\n")
        status = error.exit_status
    return status


def check(environ: Mapping[str, str]) -> int:
    """Write whether a daemon could start here now, and return the exit status for that.

    It also proves that the program is complete: this module imports all that a daemon needs.
    """
    try:
        places = find(environ, os.path.expanduser("~"))
        _, problems = Configuration(places.config).current()
    except MemdError as error:
        sys.stderr.write(f"memd: {error.sentence}\n")
        return error.exit_status
    for problem in problems:
        sys.stderr.write(f"settings: {problem}\n")
    sys.stdout.write(f"memd {__version__} can start\n")
    return 0


def _serve(places: Places, given: Mapping[str, str], instance: Instance, clock: Clock) -> None:
    """Serve until the end; ``given`` is the environment of this process."""
    settings, problems = Configuration(places.config).current()
    log = Log(level=settings.log.level)
    for problem in problems:
        log.warning("settings", detail=problem)
    environ, origin = _environment(given, places, log)
    try:
        hook_file.refresh(places)
    except (MemdError, OSError) as error:  # the old hook still works
        log.warning("hook", detail=f"{hook_file.hook_path(places)}: {error}")
    with _listener(places, environ) as listener:
        bound_socket = _identity(places.socket)

        def intact() -> bool:
            """Return whether this process still holds the lock and its socket is at its path."""
            return instance.holds() and _identity(places.socket) == bound_socket

        ports = Ports(places, environ, clock, log, listener, intact, origin=origin)
        anyio.run(run, ports)
    is_own_socket = environ.get("LISTEN_PID") != str(os.getpid())
    if is_own_socket:  # pragma: no cover - anyio.run loses the tracer; test_start sees it
        with suppress(FileNotFoundError):
            if _identity(places.socket) == bound_socket:
                os.unlink(places.socket)


def _environment(
    environ: Mapping[str, str], places: Places, log: Log
) -> tuple[Mapping[str, str], Origin]:
    """Return the variables with those of the env file added, and the origin of a model's ones."""
    try:
        own = read_variables(places.env_file)
    except EnvFileUnusableError as error:
        ignored = f"{error.facts['cause']}: {error.hint}"
        log.warning("settings", detail=ignored)
        return environ, Origin(ignored=ignored)
    os.environ.update(own)  # where the HTTP library looks for a proxy and for certificates
    variables, named = environment(environ, own)
    return variables, Origin(places.env_file) if named else ENVIRONMENT


def _identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of a file, ``None`` if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _listener(places: Places, environ: Mapping[str, str]) -> socket:
    """Return the socket of systemd or launchd, else a new one."""
    return (
        inherited_listener(environ, os.getpid())
        or launchd_listener("Listener")
        or make_listener(places.socket)
    )


def _set_process_limits() -> None:
    """Set memory allocation, thread switching, collection and descriptor limits; no core file."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # pragma: no branch - only the GNU C library has it
        for option, value in _MALLOC_OPTIONS.items():
            mallopt(option, value)
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*gc.get_threshold()[:2], _COLLECT_ALL_AFTER)
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = hard_limit == resource.RLIM_INFINITY
    soft_limit = _DESCRIPTORS if is_unlimited else min(hard_limit, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold memories

"""All methods: importing this module imports every module that has some."""

from collections.abc import Mapping

from memd.daemon import doctor, operation, reporting, rooms, sessions, status
from memd.daemon.core import Daemon
from memd.methods.discover import rows
from memd.methods.method import Method, bound
from memd.rpc.call import Handler


def methods() -> tuple[Method, ...]:
    """Return all methods in their order."""
    return rows()


def handlers(daemon: Daemon) -> Mapping[str, Handler]:
    """Return what answers each method: the services of rooms, or a function of the daemon."""
    return bound((*daemon.methods, daemon), daemon.priority.prompt)


__all__ = ["doctor", "handlers", "methods", "operation", "reporting", "rooms", "sessions", "status"]

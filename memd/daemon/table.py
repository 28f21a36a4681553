"""All methods: importing this module imports every module that has some."""

from collections.abc import Mapping

from memd.api import (
    agents,
    compacting,
    doctor,
    hooks,
    notes,
    operation,
    reporting,
    status,
    work,
)
from memd.api.services import Services
from memd.daemon import dreaming
from memd.methods.discover import rows
from memd.methods.method import Method, bound
from memd.rpc.call import Handler


def methods() -> tuple[Method, ...]:
    """Return all methods in their order."""
    return rows()


def handlers(services: Services) -> Mapping[str, Handler]:
    """Return what answers each method of a daemon with these services."""
    rooms = (getattr(services, name) for name in services.__struct_fields__)
    return bound((*rooms, hooks.Hooks(services), services), services.priority)


__all__ = [
    "agents",
    "compacting",
    "doctor",
    "dreaming",
    "handlers",
    "hooks",
    "methods",
    "notes",
    "operation",
    "reporting",
    "status",
    "work",
]

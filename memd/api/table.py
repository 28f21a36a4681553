"""All methods in one place: the socket, ``rpc.discover`` and docs/protocol.md come from here."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from memd.api import (
    agents,
    compacting,
    context,
    doctor,
    dreaming,
    history,
    hooks,
    instructions,
    listing,
    memory,
    messages,
    notes,
    operation,
    portable,
    prompting,
    reporting,
    reviewing,
    ruling,
    status,
    suggesting,
    team,
    work,
)
from memd.api.discover import openrpc
from memd.api.method import Method
from memd.api.services import Services
from memd.rpc.connection import Handler


def methods() -> tuple[Method[Any, Any], ...]:
    """Return all methods; ``hook`` has a new memory of events at each call."""
    rows: tuple[Method[Any, Any], ...] = (
        *operation.METHODS,
        *status.METHODS,
        *doctor.METHODS,
        *reporting.METHODS,
        *prompting.METHODS,
        *work.METHODS,
        *dreaming.METHODS,
        *reviewing.METHODS,
        *listing.METHODS,
        *memory.METHODS,
        *history.METHODS,
        *notes.METHODS,
        *context.METHODS,
        *compacting.METHODS,
        *suggesting.METHODS,
        *ruling.METHODS,
        *instructions.METHODS,
        *team.METHODS,
        *agents.METHODS,
        *portable.METHODS,
        *messages.METHODS,
        *hooks.rows(),
    )
    discover = operation.discovery(cache(partial(openrpc, rows)))
    return (*rows, discover)


def handlers(services: Services) -> Mapping[str, Handler]:
    """Return the handlers by method name, each bound to the services."""
    return {row.name: partial(row.answer, services) for row in methods()}

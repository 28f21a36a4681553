"""All methods in one place: the socket, ``rpc.discover`` and docs/protocol.md come from here."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from memd.api import (
    doctor,
    dreaming,
    history,
    hooks,
    listing,
    memory,
    operation,
    prompting,
    reviewing,
    spending,
    work,
)
from memd.api.discover import openrpc
from memd.api.method import Method
from memd.api.services import Services
from memd.rpc.connection import Call, Handler

# What somebody waits for at the keyboard: background work gives way to it.
_PROMPTS = ("prefetch", "load_prompt", "hook", "session.start", "memory.search")


def methods() -> tuple[Method[Any, Any], ...]:
    """Return the table, a fresh one for each daemon."""
    rows: tuple[Method[Any, Any], ...] = (
        *operation.METHODS,
        *doctor.METHODS,
        *spending.METHODS,
        *prompting.METHODS,
        *work.METHODS,
        *dreaming.METHODS,
        *reviewing.METHODS,
        *listing.METHODS,
        *memory.METHODS,
        *history.METHODS,
        hooks.row(),
    )
    discover = operation.discovery(cache(partial(openrpc, rows)))
    return (*rows, discover)


def handlers(services: Services) -> Mapping[str, Handler]:
    """Return name → handler, each bound to the services."""
    return {row.name: _bind(row, services) for row in methods()}


def _bind(row: Method[Any, Any], services: Services) -> Handler:
    async def handler(call: Call, params: dict[str, Any]) -> Any:
        return await row.answer(services, call, params)

    async def prompt(call: Call, params: dict[str, Any]) -> Any:
        with services.priority.prompt():
            return await row.answer(services, call, params)

    return prompt if row.name in _PROMPTS else handler

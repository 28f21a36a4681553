"""Random stories: a conversation, and what happens to its client and to memd between requests."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any

from msgspec import structs

from memd.context.requests import (
    COMPACTION,
    CONTEXT_MANAGEMENT,
    MANAGED,
    THINKING,
    THREAD,
    ContextRequest,
)
from memd.core.settings import ContextSettings, Settings
from memd.core.values import Project
from tests.context.clients import Client, Ledger, Planner, Step
from tests.context.histories import READER, TOOLS, ConversationMaker, open_calls

_STEPS = 24
_PAUSES = (5.0, 5.0, 60.0, 400.0, 4_000.0, 10_000.0)  # seconds between two requests
_WINDOWS = (0, 0, 20_000, 60_000, 200_000, 1_000_000)
_SUPPORTS: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset(),
    frozenset((COMPACTION,)),
    frozenset((CONTEXT_MANAGEMENT, THINKING)),
    frozenset((MANAGED,)),
    frozenset((THREAD, CONTEXT_MANAGEMENT)),
)
_TOOLS = tuple({"name": name, "input_schema": {"type": "object"}} for name in TOOLS)


def play(seed: int, planner: Planner, folder: str, check: Callable[[Step], None]) -> int:
    """Play one story and return how many requests went out; each step is checked."""
    chance = Random(seed)  # noqa: S311 - a story, not a secret
    large = chance.random() < 0.1
    rests = chance.random() < 0.2  # often and long, so that old results are cleared
    project = Project(folder, folder, "", "default", f"{folder}/projects", enabled=True)
    request = ContextRequest(
        project=project,
        settings=_settings(chance, large=large, clear=rests),
        session=f"story-{seed}",
        reader=READER if chance.random() < 0.9 else "",
        supports=frozenset() if rests else chance.choice(_SUPPORTS),
        tools=chance.choice((None, _TOOLS)),
        window=chance.choice(_WINDOWS),
        may_drop_thinking=rests or chance.random() < 0.3,
    )
    ledger = Ledger(planner, check)
    clients = [Client(ledger, chance, ConversationMaker(chance, large=large), request)]
    for _ in range(chance.choice((0, 0, 0, 5))):
        clients[0].talk(alone=True)
    steps = chance.randrange(2, _STEPS) + _STEPS * rests
    for _ in range(steps):
        client = chance.choice(clients)
        pause = 4_000.0 if rests and chance.random() < 0.5 else chance.choice(_PAUSES)
        planner.clock.advance(pause)
        for event, share in _EVENTS:
            if chance.random() < share:
                event(client, chance)
        if len(clients) < 3 and chance.random() < 0.08 and client.messages:
            client = _joined(client, len(clients), chance)
            clients.append(client)
        missed = _may_miss(client) and chance.random() < 0.06
        fails = chance.random() < 0.1
        client.talk(missed=missed, failed=partial(_begin_anew, client, chance) if fails else None)
    return steps


def _joined(client: Client, number: int, chance: Random) -> Client:
    """Return a second client: of a forked session, of a sub-agent, or of the same conversation."""
    request = client.request
    kind = chance.randrange(3)
    if kind == 0:
        return client.fork(f"{request.session}-{number}", "")
    if kind == 1:
        return client.fork(request.session, f"fork-{number}")
    # Two processes that resumed one conversation know nothing of each other's breaks.
    client.ledger.shared = True
    context = replace(request.settings.context, clear=False)
    client.request = structs.replace(request, settings=replace(request.settings, context=context))
    return client.fork(request.session, request.conversation)


def _settings(chance: Random, *, large: bool, clear: bool = False) -> Settings:
    """Return settings under which some results are too large, with or without memd's limits."""
    limits: Mapping[str, Any] = {}
    if not large:
        names = (name for name in TOOLS if chance.random() < 0.7)
        limits = {name: chance.choice((4_000, 4_100, 6_000, 10_000)) for name in names}
    context = ContextSettings(
        spill=chance.random() < 0.9,
        clear=clear or chance.random() < 0.3,
        limits=MappingProxyType(limits),
    )
    return replace(Settings(), context=context)


def _may_miss(client: Client) -> bool:
    """Tell whether a client knows all that it sent, so that it may go on without an answer."""
    return client.have > 0


def _begin_anew(client: Client, chance: Random) -> None:
    """Forget what was planned, under other settings."""
    client.forget()
    _change_settings(client, chance)


def _restart(client: Client, _: Random) -> None:
    client.ledger.planner.restart()


def _resume(client: Client, _: Random) -> None:
    client.forget()


def _change_settings(client: Client, chance: Random) -> None:
    settings = _settings(chance, large=client.maker.large)
    if client.ledger.shared:
        settings = replace(settings, context=replace(settings.context, clear=False))
    client.request = structs.replace(
        client.request, settings=settings, window=chance.choice(_WINDOWS)
    )


def _change_reader(client: Client, chance: Random) -> None:
    client.request = structs.replace(client.request, reader=chance.choice(("", READER, READER)))


def _cut(client: Client, chance: Random) -> None:
    """Go back to where somebody was about to speak."""
    places = [
        place
        for place, message in enumerate(client.messages)
        if message["role"] == "user" and place and not open_calls(client.messages[:place])
    ]
    if places:
        client.cut(chance.choice(places))


def _compact(client: Client, _: Random) -> None:
    if client.messages and not open_calls(client.messages):
        client.compact()


def _lose_place(client: Client, chance: Random) -> None:
    """Name another hash, or more messages than memd has."""
    if chance.random() < 0.5:
        client.hash = bytes(reversed(client.hash))
    elif client.have:
        client.have -= 1


def _fail(client: Client, chance: Random) -> None:
    """Have the disk refuse some results from here on, or none."""
    client.ledger.planner.failing = chance.choice((0.0, 0.3, 1.0))


_EVENTS: tuple[tuple[Callable[[Client, Random], None], float], ...] = (
    (_restart, 0.1),
    (_resume, 0.06),
    (_change_settings, 0.1),
    (_change_reader, 0.06),
    (_cut, 0.06),
    (_compact, 0.03),
    (_lose_place, 0.05),
    (_fail, 0.05),
)

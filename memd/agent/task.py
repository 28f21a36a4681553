"""What a run is asked, as a value. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.agent.step import Budget
from memd.model.port import Block


@dataclass(frozen=True, slots=True)
class Task:
    """What a run is asked.

    ``kind``, ``model``, ``system``, ``tools``, ``extra`` and ``project`` go into each request as
    they are; ``messages`` is where the conversation begins. ``runs`` are the tools that may be
    run, whatever the list names. ``seconds`` bounds the run, ``ask_seconds`` one request with its
    ``retries``. ``shown`` are memories whose whole text the messages hold.
    """

    kind: str
    model: str
    messages: tuple[Block, ...]
    tools: tuple[Block, ...]
    runs: frozenset[str]
    system: str | tuple[Block, ...] = ""
    budget: Budget = field(default_factory=Budget)
    seconds: float = 300.0
    ask_seconds: float = 120.0
    retries: int = 2
    project: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    shown: frozenset[str] = frozenset()

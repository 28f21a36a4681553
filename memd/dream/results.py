"""What ``dream`` and its neighbours answer."""

from typing import Any

import msgspec

from memd.base.values import Reasoned
from memd.dream.gates import Gate
from memd.dream.values import DirectorySize
from memd.jobs.methods import Ended
from memd.methods.method import Result


class Merged(Result):
    """A memory into which others were merged."""

    into: str
    sources: list[str] = msgspec.field(name="from")


class Dreamed(Ended):
    """The result of a dream. ``proposal`` was not carried out because of ``problems``.

    A person decides about a proposal. ``left`` are memories that stayed because they had been
    changed meanwhile, ``listed`` those that need a person.
    """

    gate: str | None = None
    model_problem: str | None = None
    created: list[str] | None = None
    changed: list[str] | None = None
    merged: list[Merged] | None = None
    removed: list[Reasoned] | None = None
    left: list[Reasoned] | None = None
    listed: list[Reasoned] | None = None
    before: DirectorySize | None = None
    after: DirectorySize | None = None
    proposal: str | None = None
    problems: list[str] | None = None
    dollars: float | None = None
    seconds: float | None = None
    said: str | None = None


class DreamStatus(Result):
    """When the next dream may begin, and what prevents it; times in seconds since 1970.

    ``enabled``: no switch is off. ``auto``: dreams begin by themselves. ``last`` is when memories
    were last consolidated, null for never. ``due`` is null where enough time has passed. ``gate``
    is the first closed gate or "". ``waits`` says why an automatic dream would wait now, or is "".
    ``running`` is the job of a dream that waits or runs. ``proposals`` counts those that wait for
    a person. ``report`` is what the newest dream did, with the members of the result of ``dream``;
    ``error`` says why it failed. ``markdown`` has both for people, and is "" where none has run.
    """

    enabled: bool
    auto: bool
    engine: str
    last: float | None
    due: float | None
    sessions: int
    min_sessions: int
    gate: str
    waits: str
    gates: tuple[Gate, ...]
    running: str | None
    proposals: int
    report: dict[str, Any] | None = None
    error: str | None = None
    markdown: str = ""

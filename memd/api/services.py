"""The rooms that handlers call, handed over as one value by the composition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memd.core.clock import Clock
from memd.core.places import Places
from memd.core.settings import Settings
from memd.core.values import Project
from memd.dream.service import Dreams
from memd.extract.service import Extract
from memd.jobs.manners import Manners
from memd.jobs.service import Jobs
from memd.memories.service import Memories
from memd.model.configured import Models
from memd.prompt.service import Prompts
from memd.recall.service import Recall
from memd.review.service import Reviews
from memd.state.ages import Ages
from memd.state.runs import Runs
from memd.state.spend import SpendTable
from memd.state.visits import Visit
from memd.store.service import Store


class Due(Protocol):
    """What begins dreams; the composition brings it (daemon/dreaming.py)."""

    async def offer(self, visit: Visit) -> str:
        """Let an automatic dream begin if it is due and quiet; return its job, "" for none.

        Raises NoProjectError and StateUnusableError.
        """
        ...

    async def start(self, project: Project, visit: Visit) -> str:
        """Submit a dream that a person asked for and return its job. Raises StateUnusableError."""
        ...

    async def waits(self, project: Project, settings: Settings) -> str:
        """Return why an automatic dream would wait now, "" when it would not.

        Raises StateUnusableError.
        """
        ...

    async def watch(self) -> None:
        """Look for dreams that are due every ``dream.check_minutes``; runs until cancelled."""
        ...

    async def under_way(self, project: Project) -> str | None:
        """Return the dream of a project's directory that waits or runs."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a handler may need; ``stop`` asks the daemon to drain and end.

    ``notes`` grows while the daemon runs.
    """

    store: Store
    prompts: Prompts
    recall: Recall
    extract: Extract
    dreams: Dreams
    due: Due
    reviews: Reviews
    memories: Memories
    jobs: Jobs
    models: Models
    spent: SpendTable
    ages: Ages
    runs: Runs
    manners: Manners
    clock: Clock
    places: Places
    version: str
    pid: int
    started: float
    notes: Sequence[str]
    stop: Callable[[], None]
    connections: Callable[[], int]

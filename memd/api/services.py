"""The rooms that handlers call, handed over as one value by the composition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memd.api.due import Due
from memd.core.clock import Clock
from memd.core.places import Places
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
from memd.store.service import Store


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

"""The rooms that handlers call, as one value that the daemon makes."""

from collections.abc import Sequence
from typing import Protocol

import anyio
from msgspec import Struct, field

from memd.agent.runs import Runs
from memd.base.clock import Clock
from memd.base.places import Places
from memd.base.settings import Settings
from memd.base.values import Project
from memd.context.service import Contexts, Summaries
from memd.instructions.service import Instructions
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs
from memd.memories.journal import Journal
from memd.memories.service import Memories
from memd.messages.service import Messages
from memd.methods.callers import Callers
from memd.model.configured import Models
from memd.notes.service import Notes
from memd.portable.service import Exports, Imports
from memd.progress.service import ProgressLines
from memd.projects.known import Visit
from memd.projects.projects import Projects
from memd.prompt.service import Prompts
from memd.recall.service import Recall
from memd.review.service import Reviews
from memd.rpc.server import Hub
from memd.rules.service import ToolRules
from memd.state.period import Period
from memd.state.spend import SpendTable
from memd.store.store import Store
from memd.suggestions.service import Suggestions
from memd.team.service import TeamSyncs


class Starter(Protocol):
    """Starts dreams; the daemon implements it (``daemon/dreaming.py``)."""

    async def consider(self, project: Project, settings: Settings, visit: Visit) -> str:
        """Start an automatic dream if one is due and nothing prevents it; return its job, or ""."""
        ...


class Services(Struct, frozen=True):
    """Everything a handler may need.

    ``started`` is in monotonic seconds. ``notes`` are sentences about repairs; more may come while
    the daemon runs. ``ending`` is set to end the daemon. ``failing`` has a sentence about each
    background service that failed and waits to be started again, by its name. These two are used on
    the event loop only.
    """

    callers: Callers
    store: Store
    prompts: Prompts
    recall: Recall
    projects: Projects
    starter: Starter
    reviews: Reviews
    memories: Memories
    journal: Journal
    suggestions: Suggestions
    rules: ToolRules
    instructions: Instructions
    exports: Exports
    imports: Imports
    team: TeamSyncs
    session_notes: Notes
    contexts: Contexts
    summaries: Summaries
    messages: Messages
    progress: ProgressLines
    jobs: Jobs
    models: Models
    spent: SpendTable
    period: Period
    runs: Runs
    priority: RequestPriority
    clock: Clock
    places: Places
    started: float
    notes: Sequence[str]
    ending: anyio.Event
    hub: Hub
    failing: dict[str, str] = field(default_factory=dict)

"""The rooms that handlers call, handed over as one value by the composition."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memd.context.service import Contexts, Summaries
from memd.core.clock import Clock
from memd.core.places import Places
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Project
from memd.dream.gates import Outlook
from memd.extract.service import Extractions
from memd.instructions.service import Instructions
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs
from memd.memories.service import Memories
from memd.messages.service import Messages
from memd.model.configured import Models
from memd.notes.service import Notes
from memd.portable.service import Exports, Imports
from memd.progress.service import ProgressLines
from memd.prompt.service import Prompts
from memd.recall.service import Recall
from memd.review.service import Reviews
from memd.rpc.connection import Call
from memd.rpc.server import Hub
from memd.rules.service import ToolRules
from memd.state.tables import Ages, Figures, Runs, SpendTable, UsageTable, Visit
from memd.store.service import Store
from memd.suggestions.service import Suggestions
from memd.team.service import Memberships, TeamSyncs

_SESSIONS, _NAME = 20, 200  # sessions, and characters of the name of one


@dataclass(frozen=True, slots=True)
class Requested:
    """What became of a request to dream: the job, or the gate that is closed."""

    job: str = ""
    gate: str = ""


@dataclass(frozen=True, slots=True)
class Prospect:
    """When the next dream may begin: all gates, why an automatic one waits, and one that runs.

    ``waits`` is "" where nothing keeps it; ``running`` is a job that waits or runs.
    """

    outlook: Outlook
    waits: str
    running: str | None


class Starter(Protocol):
    """What begins dreams; the composition brings it (``daemon/dreaming.py``)."""

    async def request(self, visit: Visit, *, force: bool) -> Requested:
        """Submit a dream that a person asks for, unless a gate is closed."""
        ...

    async def consider(self, visit: Visit) -> str:
        """Let an automatic dream begin if it is due and quiet; return its job, "" for none."""
        ...

    async def prospect(self, project: Project, settings: Settings) -> Prospect:
        """Return when the next dream may begin and what keeps it; takes nothing."""
        ...


class Endable(Protocol):
    """The daemon as far as it can be asked to end."""

    def stop(self) -> None:
        """Have it drain and end."""
        ...

    def restart(self) -> None:
        """Have it give way to its next version."""
        ...


@dataclass(frozen=True, slots=True)
class SeenSession:
    """A client's session and the project that it worked on, ``at`` in seconds since 1970."""

    client: str
    session: str
    project: str
    at: float


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a handler may need.

    ``notes`` tells what was mended, and grows while the daemon runs. ``sessions`` are those that
    were heard of last, the newest last; they are used on the event loop only.
    """

    store: Store
    prompts: Prompts
    recall: Recall
    extract: Extractions
    starter: Starter
    reviews: Reviews
    memories: Memories
    suggestions: Suggestions
    rules: ToolRules
    instructions: Instructions
    exports: Exports
    imports: Imports
    team: TeamSyncs
    memberships: Memberships
    session_notes: Notes
    contexts: Contexts
    summaries: Summaries
    messages: Messages
    progress: ProgressLines
    jobs: Jobs
    models: Models
    spent: SpendTable
    usage: UsageTable
    ages: Ages
    figures: Figures
    runs: Runs
    priority: RequestPriority
    clock: Clock
    places: Places
    started: float
    notes: Sequence[str]
    ending: Endable
    hub: Hub
    sessions: Recent[tuple[str, str], SeenSession] = field(
        default_factory=lambda: Recent(_SESSIONS)
    )

    def visited(self, call: Call, project: Project, session: str) -> None:
        """Note that a session works on a project, whose team may be asked what is new there."""
        self.team.visited(project.memory_dir)
        client = call.caller.client
        if session:
            seen = SeenSession(client, session[:_NAME], project.root, self.clock.now())
            self.sessions.pop((client, seen.session), None)  # the newest comes last
            self.sessions[client, seen.session] = seen

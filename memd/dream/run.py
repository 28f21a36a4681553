"""The state of a running dream, its model's runs, and the errors that end it. Pure."""

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memd.agent.service import Progress, RunEnd, RunRecord, Task, total
from memd.base import errors, prices
from memd.base.errors import Busy, Cancelled
from memd.base.settings import Settings
from memd.base.text import cut_bytes
from memd.base.values import ASSISTANT, Actor, Project, Provenance
from memd.dream.sources import OwnWords, Transcripts
from memd.dream.values import DreamReport
from memd.dream.workspace import DreamWorkspace
from memd.model.port import LOCAL, Model, Usage
from memd.projects.project import transcript_folders
from memd.store import secret
from memd.store.lock import ConsolidationLock

_SAID_BYTES = 4_000  # of the model's last message
_NS = 1_000_000_000
MINUTES = 20  # of a dream at most; any program takes a lock of 60 minutes for stale


def dream_timeout() -> Busy:
    """Return the error that the dream took longer than it may."""
    return Busy(f"the dream took longer than {MINUTES} minutes", retryable=False, minutes=MINUTES)


def dream_unfinished(ended: RunEnd) -> errors.Model:
    """Return the error that the model failed in a dream."""
    return errors.Model(
        ended.unfinished,
        retryable=True,
        hint="memctl job show tells what the model did",
        reason=str(ended.reason),
        turns=ended.turns,
    )


class DreamRun(Struct):
    """A running dream: what it was started with, and its state so far."""

    project: Project
    settings: Settings
    lock: ConsolidationLock  # taken before the dream, released after it
    progress: Progress
    started_at: float  # in monotonic seconds
    job: str  # the id of its job
    client: str
    session: str  # the session that started it, "" for none
    is_over: bool = False  # it was cancelled or timed out, and may not commit
    report: DreamReport | None = None  # set at the end

    @property
    def directory(self) -> str:
        """The memory directory."""
        return self.lock.directory

    @property
    def last_dream_at(self) -> float | None:
        """When the memories were last consolidated, in seconds since 1970, ``None`` for never."""
        return None if self.lock.prior_ns is None else self.lock.prior_ns / _NS

    def check(self) -> None:
        """Raise Cancelled if the dream was cancelled or timed out."""
        if self.is_over:
            raise Cancelled("the dream was cancelled; nothing was written")

    def provenance(self, engine: str) -> Provenance:
        """Return the provenance of the dream's change; ``engine`` is ``LOCAL`` or a model."""
        model, origin = ("", "") if engine == LOCAL else (engine, ASSISTANT)
        return Provenance(
            Actor.DREAM, self.client, self.session, model, reason="consolidation", origin=origin
        )

    def transcripts(self, own_words: OwnWords) -> Transcripts:
        """Return the person's words in the project's transcripts."""
        return Transcripts(transcript_folders(self.project), own_words)

    def workspace(self, own_words: OwnWords) -> DreamWorkspace:
        """Return an open workspace for the model. Blocks; raises the errors of Workspace."""
        return DreamWorkspace(
            self.project.memory_dir,
            transcripts_of=self.transcripts(own_words),
            session=self.session,
            project=self.project.readable,
            transcripts=transcript_folders(self.project),
        )


class ModelRun(Struct):
    """The runs of a model for one dream; turns, calls and usage are their sums."""

    dream: DreamRun
    task: Task
    model: Model
    workspace: DreamWorkspace
    record: RunRecord = field(default_factory=RunRecord)  # every turn of all runs
    turns: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    # The problems that the second reader found, by the texts before and after.
    read_again: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def progress(self, _phase: str, **facts: Any) -> None:
        """Report an agent's progress with the sums of earlier runs; ``updating`` once it writes."""
        facts["turn"] += self.turns
        facts["tool_calls"] += self.calls
        facts["tokens"] += total(self.usage)
        self.dream.progress("updating" if facts["touched"] else "starting", **facts)

    def add_run(self, ended: RunEnd) -> None:
        """Add an ended run to the sums."""
        self.turns += ended.turns
        self.calls += ended.calls
        self.usage += ended.usage

    def with_cost(self, report: DreamReport) -> DreamReport:
        """Return a report with the usage and price of all runs, and their turns.

        A report of the fixed pass has no turns, but the price of a model's run that failed before.
        """
        price = prices.price(self.task.model, self.dream.settings.spend.prices)
        used = self.usage
        dollars = price.money(used.input, used.output, used.cache_read, used.cache_created)
        turns = 0 if report.engine == LOCAL else self.turns
        return replace(report, turns=turns, usage=used, dollars=dollars)

    def report(self, text: str) -> DreamReport:
        """Return the report so far; ``text`` is the model's last message. Blocks."""
        said = cut_bytes(secret.scrub(text), _SAID_BYTES)
        return self.with_cost(DreamReport(engine=self.task.model, said=said))

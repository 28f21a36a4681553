"""One dream while it runs: its state, its progress, its model, and how it may fail. Pure."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from memd.agent.service import Progress, RunEnd, RunRecord, Task
from memd.agent.workspace import Workspace
from memd.core import prices
from memd.core.errors import MemdError
from memd.core.settings import Settings
from memd.core.text import cut_bytes
from memd.core.values import Actor, Project, Provenance
from memd.documents import secrets
from memd.dream import from_workspace
from memd.dream.pass_result import ReadyPass, Work
from memd.dream.report import Report
from memd.model.port import Model
from memd.projects.project import transcript_folders
from memd.store.history import Past
from memd.watch.locks import ConsolidationLock

ORIGIN = "assistant"  # whose words a model works on here
_SAID_BYTES = 4_000
_NS = 1_000_000_000
STARTING, UPDATING, JUDGING = "starting", "updating", "judging"


class DreamTimeoutError(MemdError):
    """The dream took longer than the settings allow."""

    code = 1004
    kind = "dream_timeout"
    hint = "raise dream.max_minutes in the settings"

    def __init__(self, minutes: float) -> None:
        super().__init__(f"the dream took longer than {minutes:g} minutes", minutes=minutes)


class DreamEndedError(MemdError):
    """The dream was cancelled before it could commit."""

    code = -32800
    kind = "cancelled"

    def __init__(self) -> None:
        super().__init__("the dream was cancelled; nothing was written")


class LockLostError(MemdError):
    """Another program took the consolidation lock while memd held it."""

    code = 1004
    kind = "lock_lost"
    retryable = True

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"another program began to consolidate {directory}; nothing was written",
            directory=directory,
        )


class DreamFailedError(MemdError):
    """A model did not come to an end with the memories; nothing was kept of its work."""

    code = 1022
    kind = "dream_failed"
    retryable = True
    of_model = True
    hint = "memctl job show tells what the model did"

    def __init__(self, ended: RunEnd) -> None:
        super().__init__(ended.unfinished, reason=str(ended.reason), turns=ended.turns)


class DreamProgress:
    """Passes on an agent's progress in the phases of a dream.

    A dream is ``starting`` until its first write and ``updating`` from then on. The turns of a
    second run go on counting where those of the first ended.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._turns = 0
        self._calls = 0
        self._tokens = 0

    def __call__(self, phase: str, **facts: Any) -> None:  # noqa: ARG002 - the agent's own phases
        """Pass on an agent's progress."""
        facts["turn"] += self._turns
        facts["tool_calls"] += self._calls
        facts["tokens"] += self._tokens
        self._progress(UPDATING if facts["touched"] else STARTING, **facts)

    def ran(self, *, turns: int, calls: int, tokens: int) -> None:
        """Count a run that is over, for the next one."""
        self._turns += turns
        self._calls += calls
        self._tokens += tokens

    def judging(self) -> None:
        """Say that the result is being judged."""
        self._progress(JUDGING)


@dataclass(slots=True)
class DreamRun:
    """One dream at work. ``over``: it was cancelled or took too long and may not commit.

    ``began`` is on the monotonic clock. ``report`` is there once the dream has its end.
    """

    project: Project
    settings: Settings
    held: ConsolidationLock
    progress: Progress
    began: float
    job: str = ""
    client: str = ""
    session: str = ""
    allow_model: bool = True
    over: bool = False
    report: Report | None = None

    @property
    def directory(self) -> str:
        """The memory directory."""
        return self.held.directory

    @property
    def last(self) -> float | None:
        """When memories were consolidated before this, ``None`` for never."""
        return None if self.held.prior_ns is None else self.held.prior_ns / _NS

    def check(self) -> None:
        """Go on only while the dream lasts. Raises DreamEndedError."""
        if self.over:
            raise DreamEndedError

    def by(self, done: ReadyPass) -> Provenance:
        """Return what the history says of what a pass changes."""
        model = done.by_model
        return Provenance(
            Actor.DREAM,
            self.client,
            self.session,
            model,
            reason="consolidation",
            origin=ORIGIN if model else "",
        )

    def workspace(self) -> Workspace:
        """Open the view that a model works in. Blocks; raises what Workspace does."""
        return Workspace(
            self.project.memory_dir,
            project=self.project.root,
            transcripts=transcript_folders(self.project),
            origin=ORIGIN,
            removals=True,
        )


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A model at work for a dream; ``record`` and ``progress`` go on through all of its runs."""

    dream: DreamRun
    task: Task
    model: Model
    workspace: Workspace
    progress: DreamProgress
    record: RunRecord = field(default_factory=RunRecord)

    def instead(self, ended: RunEnd, done: ReadyPass) -> ReadyPass:
        """Return another pass in place of a run that could not go on, which still cost its part."""
        why = ended.error.sentence if ended.error else ""
        return replace(done, problem=why, usage=ended.usage, dollars=self._cost(ended))

    def done(self, ended: RunEnd, at: float, first: ReadyPass | None = None) -> ReadyPass:
        """Return what a run came to; a mending that did not finish leaves the ``first`` one.

        ``at`` is seconds since 1970. Looks for credentials in what was said: call it in a thread.
        """
        proposal, session = self.workspace.proposal(), self.dream.session
        directory = self.dream.directory

        def work(past: Past) -> Work:
            repeats = partial(past.repeats, directory)
            return partial(from_workspace.wanted, proposal, session=session, at=at, repeats=repeats)

        done = ReadyPass(
            work,
            self.task.model,
            said=cut_bytes(secrets.scrub(ended.text), _SAID_BYTES),
        )
        before = first or done
        return replace(
            done if ended.finished else before,
            turns=before.turns + ended.turns,
            usage=before.usage + ended.usage,
            dollars=before.dollars + self._cost(ended),
        )

    def _cost(self, ended: RunEnd) -> float:
        """Return US dollars for a run."""
        price = prices.price(self.task.model, self.dream.settings.spend.prices)
        used = ended.usage
        return price.money(used.input, used.output, used.cache_read, used.cache_created)

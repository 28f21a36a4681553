"""One dream at work, and the model that works for it, as values. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from memd.agent.record import Record
from memd.agent.service import Ended, Progress, Task
from memd.agent.workspace import Workspace
from memd.core import prices
from memd.core.settings import Settings
from memd.core.text import cut_bytes, iso_time
from memd.core.values import Actor, Project, Provenance, Snapshot
from memd.documents import secrets
from memd.dream import briefing, outcome
from memd.dream.ending import DreamEndedError
from memd.dream.findings import Done, Work
from memd.dream.report import Report
from memd.dream.telling import Telling
from memd.model.port import Model
from memd.projects.project import transcript_folders
from memd.state.proposals import Refusal
from memd.store.history import Past
from memd.watch.locks import Held

ORIGIN = "assistant"  # whose words a model works on here
_SAID_BYTES = 4_000
_NS = 1_000_000_000


def _refusal(refusal: Refusal) -> str:
    because = f" because: {refusal.reason}" if refusal.reason else ""
    return f"on {iso_time(refusal.at)[:10]}, {', '.join(refusal.paths)}: {refusal.wanted}{because}"


@dataclass(slots=True)
class Underway:
    """One dream at work. ``over``: it was cancelled or took too long and may not commit.

    ``began`` is on the monotonic clock. ``report`` is there once the dream has its end.
    """

    project: Project
    settings: Settings
    held: Held
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

    def heed(self) -> None:
        """Go on only while the dream lasts. Raises DreamEndedError."""
        if self.over:
            raise DreamEndedError

    def by(self, done: Done) -> Provenance:
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

    def task(
        self,
        seen: Snapshot,
        model: str,
        now: float,
        log_days: Sequence[str],
        refused: Sequence[Refusal],
    ) -> Task:
        """Return what a model is asked; see ``briefing.task``."""
        return briefing.task(
            self.project,
            seen.headers,
            seen.index,
            model=model,
            now=now,
            last=self.last,
            refused=[_refusal(refusal) for refusal in refused],
            minutes=self.settings.dream.max_minutes,
            turns=self.settings.dream.max_turns,
            log_days=log_days,
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
class Asked:
    """A model at work for a dream; ``record`` and ``telling`` go on through all of its runs."""

    dream: Underway
    task: Task
    model: Model
    workspace: Workspace
    telling: Telling
    record: Record = field(default_factory=Record)

    def instead(self, ended: Ended, done: Done) -> Done:
        """Return another pass in place of a run that could not go on, which still cost its part."""
        why = ended.error.sentence if ended.error else ""
        return replace(done, problem=why, usage=ended.usage, dollars=self._cost(ended))

    def done(self, ended: Ended, at: float, first: Done | None = None) -> Done:
        """Return what a run came to; a mending that did not finish leaves the ``first`` one.

        ``at`` is seconds since 1970. Looks for credentials in what was said: call it in a thread.
        """
        proposal, session = self.workspace.proposal(), self.dream.session
        directory = self.dream.directory

        def work(past: Past) -> Work:
            repeats = partial(past.repeats, directory)
            return partial(outcome.wanted, proposal, session=session, at=at, repeats=repeats)

        done = Done(
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

    def _cost(self, ended: Ended) -> float:
        """Return US dollars for a run."""
        price = prices.price(self.task.model, self.dream.settings.spend.prices)
        used = ended.usage
        return price.money(used.input, used.output, used.cache_read, used.cache_created)

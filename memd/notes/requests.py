"""What is asked of session notes, and what is answered. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from memd.core.settings import Settings
from memd.core.values import Project
from memd.notes.gates import GateFacts

COMPLETED, SKIPPED = "completed", "skipped"
_OPTIONAL = ("gate", "problem", "faults", "turns", "refused", "usage")


@dataclass(frozen=True, slots=True)
class NotesRequest:
    """The notes of one session, as somebody asks for them.

    ``compacts`` says that its client compacts conversations by itself, ``environment`` is what it
    forwarded. The conversation is the transcript at
    ``transcript_path``, or ``messages``; ``cache`` is what the client itself sends to its model.
    ``force`` opens the gates that wait for a good moment; at ``turn_ended`` there is a break.
    """

    project: Project
    settings: Settings
    session: str
    compacts: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    transcript_path: str = ""
    messages: Any = None
    cache: Mapping[str, Any] | None = None
    force: bool = False
    turn_ended: bool = False

    @property
    def switches(self) -> GateFacts:
        """What the gates know before any file is opened."""
        settings, project = self.settings, self.project
        enabled = project.enabled and settings.enabled and settings.notes.enabled
        return GateFacts(enabled=enabled, compacts=self.compacts)

    def facts(self) -> dict[str, Any]:
        """Return what a job has to know of it, as JSON values; ``of`` takes it."""
        facts = {item.name: getattr(self, item.name) for item in fields(self)[2:]}
        return facts | {"cwd": self.project.cwd}

    @classmethod
    def of(cls, project: Project, settings: Settings, facts: Mapping[str, Any]) -> "NotesRequest":
        """Return the request that a job was given."""
        given = {name: value for name, value in facts.items() if name != "cwd"}
        return cls(project, settings, **given)


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """How an update of the notes at ``path`` ended; ``sections`` are the titles that changed.

    With ``skipped`` the ``gate`` is what was closed, else what kept a model out, ``problem`` a
    sentence about that. ``engine`` is ``local`` or the model's name, ``faults`` what was not taken
    of a model's work, in sentences, ``refused`` how many of its calls were not allowed.
    """

    status: str = COMPLETED
    gate: str = ""
    engine: str = ""
    sections: tuple[str, ...] = ()
    path: str = ""
    covers: str = ""
    tokens: int = 0
    problem: str = ""
    faults: tuple[str, ...] = ()
    turns: int = 0
    refused: int = 0
    usage: dict[str, int] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values, as a job's result and on the wire."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value or (name not in _OPTIONAL and self.status == COMPLETED)
        }


def skipped(gate: str) -> UpdateResult:
    """Return how an update ends that a gate keeps from beginning."""
    return UpdateResult(SKIPPED, gate)


@dataclass(frozen=True, slots=True)
class SectionSize:
    """A section's size in tokens, and whether a reader was shown less of it."""

    title: str
    tokens: int
    cut: bool


@dataclass(frozen=True, slots=True)
class NotesView:
    """A session's notes for a reader: ``content`` is no longer than what a reader is shown.

    ``covers`` is the last message that they tell of, ``stale`` says that the conversation went on
    since, ``engine`` who wrote last (``model``, ``local``, or "" for the client itself). ``hash``
    is that of the whole file at ``path``.
    """

    content: str
    path: str
    sections: tuple[SectionSize, ...]
    tokens: int
    covers: str
    stale: bool
    engine: str
    empty: bool
    hash: str


@dataclass(frozen=True, slots=True)
class ListedNotes:
    """One session's notes in a list; ``at`` is when they changed last, in seconds since 1970."""

    session: str
    title: str
    tokens: int
    at: float
    path: str

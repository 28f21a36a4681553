"""Requests to session notes and their replies. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import fields

from memd.base.settings import Settings
from memd.base.values import Project
from memd.notes.gates import GateFacts

COMPLETED, SKIPPED = "completed", "skipped"
_OPTIONAL_MEMBERS = ("gate", "problem", "faults", "turns", "refused", "usage")


class NotesRequest(Struct, frozen=True):
    """A request about the notes of one session.

    ``compacts`` says that its client compacts conversations by itself; ``environment`` has the
    variables that it forwarded. The conversation is the transcript at ``transcript_path``, or
    ``messages``. ``cache`` is the client's own last request to its model. ``force`` skips the
    gates of size and of turns; ``turn_ended`` says that a turn has just ended.
    """

    project: Project
    settings: Settings
    session: str
    client: str = ""
    compacts: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    transcript_path: str = ""
    messages: Any = None
    cache: Mapping[str, Any] | None = None
    force: bool = False
    turn_ended: bool = False

    @property
    def switches(self) -> GateFacts:
        """The facts for the gates that need no file."""
        settings, project = self.settings, self.project
        enabled = project.enabled and settings.notes.enabled
        return GateFacts(enabled=enabled, compacts=self.compacts)

    def facts(self) -> dict[str, Any]:
        """Return the request as the JSON parameters of a job, which ``of`` reads."""
        own_fields = fields(self)[2:]  # without the project and the settings
        facts = {item.name: getattr(self, item.name) for item in own_fields}
        return facts | {"cwd": self.project.cwd}

    @classmethod
    def of(cls, project: Project, settings: Settings, facts: Mapping[str, Any]) -> "NotesRequest":
        """Return the request from the parameters of a job."""
        own_facts = {name: value for name, value in facts.items() if name != "cwd"}
        return cls(project, settings, **own_facts)


class UpdateResult(Struct, frozen=True):
    """How an update of the notes at ``path`` ended; ``sections`` are the titles that changed.

    ``gate`` is the closed gate: of a ``skipped`` update, or why no model was used, with ``problem``
    as a sentence. ``engine`` is ``local`` or the model's name. ``faults`` are sentences about the
    parts of a model's work that were dropped, ``refused`` counts its forbidden calls.
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
        """Return it as a JSON object for a job's result and the wire."""
        members = msgspec.json.decode(msgspec.json.encode(self))
        # A skipped update has no member that is empty, a completed one has all but the optional.
        is_skipped = self.status != COMPLETED
        omittable = members.keys() if is_skipped else _OPTIONAL_MEMBERS
        return {name: value for name, value in members.items() if value or name not in omittable}


def skipped(gate: str) -> UpdateResult:
    """Return the result of an update that a closed gate prevents."""
    return UpdateResult(SKIPPED, gate)


class SectionSize(Struct, frozen=True):
    """A section's size in tokens, and whether it is shown shortened."""

    title: str
    tokens: int
    cut: bool


class NotesView(Struct, frozen=True):
    """A session's notes for a reader; ``content`` is shortened to a reader's size.

    ``covers`` is the id of the last message that they cover; ``stale`` says that the conversation
    went on since. ``engine`` is the last writer: ``model``, ``local``, or "" for the client. The
    ``hash`` is that of the whole file at ``path``.
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


class ListedNotes(Struct, frozen=True):
    """One session's notes in a list; ``at`` is their last change, in seconds since 1970."""

    session: str
    title: str
    tokens: int
    at: float
    path: str

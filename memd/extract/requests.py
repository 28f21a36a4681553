"""The request and the result of an extraction. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from memd.base.covered import CoveredText
from memd.base.names import INDEX
from memd.base.settings import Settings
from memd.base.values import Draft, Project
from memd.model.port import LOCAL

# The reasons why an extraction is skipped.
MEMORY_OFF = "memory_off"
EXTRACTION_OFF = "extraction_off"
NOTHING_NEW = "nothing_new"
EVERY_TURNS = "every_turns"
ALREADY_WRITTEN = "already_written"
OUTSIDE = "outside_words"
ALREADY_SAID = "already_said"  # why a text was passed over: an instruction file says it

COMPLETED = "completed"
SKIPPED = "skipped"
FAILED = "failed"

# Members that a client's result has only with a value.
_OPTIONAL = ("already_said", "reason", "problem", "change", "turns", "prefix_changed", "hit_rate")
_USAGE = ("input", "output", "cache_read", "cache_created")  # tokens; none without a model


def gate(settings: Settings, project: Project) -> str:
    """Return the reason why nothing may be extracted, "" if it may."""
    if not project.enabled:
        return MEMORY_OFF
    return "" if settings.extract.enabled else EXTRACTION_OFF


class ExtractRequest(Struct, frozen=True):
    """The conversation to read: a session and either its transcript's path or its messages.

    ``cache`` is the client's own last request to its model: system, tools, model and messages.
    ``ended`` says that the session has ended.
    """

    session: str
    transcript_path: str | None = None
    messages: Any = None
    cache: Mapping[str, Any] | None = None
    ended: bool = False


class ExtractionResult(Struct, frozen=True):
    """The result of an extraction; paths are relative to the memory directory.

    ``status`` is completed or skipped (with a ``reason``). ``refused`` has the secret rule of each
    candidate with a credential. ``problem`` is a sentence about a transcript that could not be
    understood or a model that was not used. ``suggested`` counts new suggestions. ``passed_over``
    has the reason for each message without a result. ``already_said`` are texts that an
    instruction file says; they are in ``passed_over`` too. ``engine`` is ``local`` or the model's
    name, ``turns`` the number of its requests, and ``prefix_changed`` names the parts of its prefix
    that differ from the session's last run.
    """

    status: str
    reason: str = ""
    saved: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    already_said: tuple[CoveredText, ...] = ()
    suggested: int = 0
    change: str | None = None
    problem: str = ""
    engine: str = LOCAL
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_USAGE, 0))
    turns: int = 0
    prefix_changed: tuple[str, ...] = ()

    def of(self, draft: Draft) -> "ExtractionResult":
        """Return the result with the paths that a change set creates, changes and removes."""
        memories = [edit for edit in draft.edits if edit.path != INDEX]
        written = [edit for edit in memories if edit.content is not None]
        return replace(
            self,
            saved=tuple(edit.path for edit in written if not edit.base),
            updated=tuple(edit.path for edit in written if edit.base),
            removed=tuple(edit.path for edit in memories if edit.content is None),
        )

    def refusing(self, rules: Iterable[str]) -> "ExtractionResult":
        """Return the result with more texts refused, each for a rule of secrets."""
        return replace(self, refused=(*self.refused, *rules))

    def without(self, said: Sequence[CoveredText]) -> "ExtractionResult":
        """Return the result with more texts that instruction files say already."""
        return replace(
            self,
            already_said=(*self.already_said, *said),
            passed_over=self.passed_over + (ALREADY_SAID,) * len(said),
        )

    def facts(self) -> dict[str, Any]:
        """Return the result as a JSON object for a job's result and for clients."""
        usage = self.usage
        tokens_read = usage["input"] + usage["cache_read"] + usage["cache_created"]
        facts = msgspec.json.decode(msgspec.json.encode(self)) | {
            "refused": len(self.refused),
            "refused_rules": sorted(set(self.refused)),
            "passed_over": dict(sorted(Counter(self.passed_over).items())),
            # The share of the tokens read that came from the server's cache.
            "hit_rate": round(usage["cache_read"] / tokens_read, 4) if tokens_read else 0.0,
        }
        return {name: value for name, value in facts.items() if value or name not in _OPTIONAL}

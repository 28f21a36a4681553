"""Read observations of claude-mem from the JSON of its ``export-memories`` script. Pure."""

from typing import Any

import msgspec

from memd.core.text import read_json
from memd.core.values import MemoryType
from memd.portable.decoding import each, entries, files, json, length, seconds_of
from memd.portable.errors import SourceRefusedError
from memd.portable.memories import ReadingBuilder

# Bug fixes, features, refactorings and changes stand in the code and its history already.
_TYPES = {"decision": MemoryType.PROJECT, "discovery": MemoryType.REFERENCE}
_PARTIAL = "it says of itself that it is not importable; export it again without --allow-partial"


class _Observation(msgspec.Struct):
    """An entry of the export; ``facts`` and ``concepts`` are lists, or lists as JSON texts."""

    type: str
    title: str | None = None
    subtitle: str | None = None
    narrative: str | None = None
    text: str | None = None
    facts: str | list[str] | None = None
    concepts: str | list[str] | None = None
    project: str | None = None
    created_at: str | None = None
    created_at_epoch: int | float | None = None


def read(builder: ReadingBuilder) -> None:
    """Propose a memory for each decision and discovery, under claude-mem's project name.

    Raises SourceRefusedError if the export says that it is not importable.
    """
    for name in files(builder, ".json"):
        values, export = entries(builder, name, "observations")
        metadata = json(export.get("metadata", b"null"), name, dict[str, Any] | None) or {}
        if metadata.get("importable") is False:
            raise SourceRefusedError(builder.kind, _PARTIAL)
        total = json(export.get("totalObservations", b"null"), name, Any)
        if total not in (None, len(values)):
            builder.problems.append(f"{name} says {total} observations and has {len(values)}")
        for where, observation in each(builder, f"{name}: observations", values, _Observation):
            _add_observation(builder, where, observation, builder.changed_at(name))
        for part in ("sessions", "summaries", "prompts"):
            if count := length(export.get(part, b"[]"), name):
                builder.leave_out(f"{name}: {part}", f"{count} entries that are no memories")


def _add_observation(
    builder: ReadingBuilder, where: str, observation: _Observation, at: float
) -> None:
    """Propose an observation as a memory, or leave it out if the code shows the same.

    ``at`` is its time if it names none, in seconds since 1970.
    """
    kind = _TYPES.get(observation.type)
    if kind is None:
        builder.leave_out(where, f"it is a {observation.type}; the code and its history say that")
        return
    title = (observation.title or "").strip()
    facts = "\n".join(f"- {fact}" for fact in _as_strings(observation.facts))
    texts = (title, observation.subtitle, observation.narrative or observation.text, facts)
    parts = [text.strip() for text in texts if text and text.strip()]
    builder.add(
        "\n\n".join(parts),
        where,
        title=title,
        description=": ".join(parts[:2]),
        kind=kind,
        at=seconds_of(observation.created_at or observation.created_at_epoch) or at,
        tags=_as_strings(observation.concepts),
        project=observation.project or "",
    )


def _as_strings(value: str | list[str] | None) -> tuple[str, ...]:
    """Return the texts of a list, or of a JSON text of a list; empty for other values."""
    listed = read_json(value) if isinstance(value, str) else value
    if not isinstance(listed, list):
        return ()
    return tuple(text for text in listed if isinstance(text, str))

"""Observations of claude-mem, from the JSON that its ``export-memories`` script writes. Pure."""

from typing import Any

import msgspec

from memd.core.text import read_json
from memd.core.values import MemoryType
from memd.portable.decoding import each, entries, files, json, length, moment
from memd.portable.errors import SourceRefusedError
from memd.portable.memories import ReadingBuilder

# Bug fixes, features, refactorings and changes are what the code and its history say.
_TYPES = {"decision": MemoryType.PROJECT, "discovery": MemoryType.REFERENCE}
_PARTIAL = "it says of itself that it is not importable; export it again without --allow-partial"


class _Observation(msgspec.Struct):
    """``facts`` and ``concepts`` are lists, or JSON texts of lists as its database has them."""

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
    """Propose a memory for each decision and discovery, by claude-mem's project.

    Raises SourceRefusedError for an export that is not to be imported.
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
            _add(builder, where, observation, builder.written(name))
        for part in ("sessions", "summaries", "prompts"):
            if count := length(export.get(part, b"[]"), name):
                builder.leave(f"{name}: {part}", f"{count} entries that are no memories")


def _add(builder: ReadingBuilder, where: str, observation: _Observation, at: float) -> None:
    kind = _TYPES.get(observation.type)
    if kind is None:
        builder.leave(where, f"it is a {observation.type}; the code and its history say that")
        return
    title = (observation.title or "").strip()
    facts = "\n".join(f"- {fact}" for fact in _strings(observation.facts))
    whole = (title, observation.subtitle, observation.narrative or observation.text, facts)
    parts = [part.strip() for part in whole if part and part.strip()]
    builder.add(
        "\n\n".join(parts),
        where,
        title=title,
        description=": ".join(parts[:2]),
        kind=kind,
        at=moment(observation.created_at or observation.created_at_epoch) or at,
        tags=_strings(observation.concepts),
        project=observation.project or "",
    )


def _strings(value: str | list[str] | None) -> tuple[str, ...]:
    """Return the texts of a list, whether it stands in JSON or not."""
    listed = read_json(value) if isinstance(value, str) else value
    return tuple(t for t in listed if isinstance(t, str)) if isinstance(listed, list) else ()

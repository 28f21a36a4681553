"""What a dream did, as a person reads it in the morning. Pure."""

from dataclasses import dataclass
from typing import Any

from memd.dream.verdict import Merge, Removal


@dataclass(frozen=True, slots=True)
class Report:
    """What a dream did. ``gate`` names the gate that closed before it began, "" when it ran.

    ``proposal`` is the id of what the judge kept back, with its ``problems``.
    """

    gate: str = ""
    merged: tuple[Merge, ...] = ()
    removed: tuple[Removal, ...] = ()
    changed: tuple[str, ...] = ()
    change: str | None = None
    proposal: str | None = None
    problems: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the report as JSON members; memories that went into one stand together."""
        if self.gate:
            return {"status": "skipped", "gate": self.gate}
        into: dict[str, list[str]] = {}
        for merge in self.merged:
            into.setdefault(merge.into, []).append(merge.source)
        facts: dict[str, Any] = {
            "merged": [{"into": path, "from": sources} for path, sources in into.items()],
            "removed": [{"path": gone.path, "reason": gone.reason} for gone in self.removed],
            "changed": list(self.changed),
            "change": self.change,
            "proposal": self.proposal,
        }
        return facts | ({"reason": "; ".join(self.problems)} if self.problems else {})

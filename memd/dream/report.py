"""What a dream did, as a person reads it in the morning. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from memd.dream.values import DirectorySize, Left, Merge, Question, Removal
from memd.model.port import LOCAL

_ALWAYS = ("merged", "removed", "changed", "change", "proposal")  # told even where there is none


@dataclass(frozen=True, slots=True)
class Report:
    """What a dream did. ``gate`` names the gate that closed before it began, "" when it ran.

    ``engine`` is ``local`` or the model's name, ``model_problem`` why a model did not do it.
    ``before`` and ``after`` are what the directory holds, ``lost`` how many telling words each
    changed memory has no more. ``questions`` are for the person. ``change`` undoes it; ``proposal``
    is the id of what the judge kept back, with its ``problems``. ``usage`` counts tokens,
    ``dollars`` is their price; ``said`` is what the model said last.
    """

    gate: str = ""
    engine: str = LOCAL
    model_problem: str = ""
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    merged: tuple[Merge, ...] = ()
    removed: tuple[Removal, ...] = ()
    left: tuple[Left, ...] = ()
    listed: tuple[Left, ...] = ()
    questions: tuple[Question, ...] = ()
    orphans: tuple[str, ...] = ()
    before: DirectorySize | None = None
    after: DirectorySize | None = None
    lost: Mapping[str, int] = field(default_factory=dict)
    change: str | None = None
    proposal: str | None = None
    problems: tuple[str, ...] = ()
    turns: int = 0
    usage: Mapping[str, int] | None = None
    dollars: float = 0.0
    seconds: float = 0.0
    said: str = ""

    def facts(self) -> dict[str, Any]:
        """Return the report as JSON members; memories that went into one stand together."""
        if self.gate:
            return {"status": "skipped", "gate": self.gate}
        into: dict[str, list[str]] = {}
        for merge in self.merged:
            into.setdefault(merge.into, []).append(merge.source)
        facts = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        facts["merged"] = [{"into": path, "from": sources} for path, sources in into.items()]
        for question in facts["questions"]:
            question["paths"] = list(question["paths"])
        facts["reason"] = "; ".join(self.problems)
        return {name: value for name, value in facts.items() if value or name in _ALWAYS}

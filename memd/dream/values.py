"""Values of dreams: the edits that a dream wants, and its report. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from memd.agent.proposal import SourceText
from memd.base.text import one_line
from memd.base.values import FileEdit
from memd.model.port import LOCAL, Usage
from memd.store import secret

QUOTED = 120  # characters of a sentence that a problem names
LISTED = 100  # files in a report that need a person
DAMAGED = "its frontmatter does not parse"
_ALWAYS = ("merged", "removed", "changed", "change", "proposal")  # in the facts even if empty


class Merge(Struct, frozen=True):
    """The memory ``source`` was merged into another one; in ``Wanted`` it is only a claim."""

    into: str
    source: str


class Reasoned(Struct, frozen=True):
    """A file, and why it is removed, stays as it is or needs a person."""

    path: str
    reason: str


class Wanted(Struct, frozen=True):
    """The edits that a dream wants to make, with its reasons.

    ``reasons`` maps the paths of removals to why. ``left`` are files that it does not change, since
    somebody changed them meanwhile or took such an edit back. ``listed`` are files that it cannot
    change, such as damaged ones. ``sources`` are the logs and transcripts that the run has read.
    """

    edits: tuple[FileEdit, ...] = ()
    merges: tuple[Merge, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    left: tuple[Reasoned, ...] = ()
    listed: tuple[Reasoned, ...] = ()
    sources: tuple[SourceText, ...] = ()


class DirectorySize(Struct, frozen=True):
    """The size of a memory directory and its index."""

    memories: int = 0
    memory_bytes: int = 0
    index_lines: int = 0
    index_bytes: int = 0


class DreamReport(Struct, frozen=True):
    """The report of a dream. ``gate`` names the closed gate if it did not run, "" if it did.

    ``engine`` is ``local`` or the model's name, ``model_problem`` why no model was used.
    ``created`` and ``changed`` do not list the index; a memory that is in neither of them nor in
    ``merged`` or ``removed`` is unchanged. ``lost`` is how many telling words each changed memory
    lost. ``orphans`` are memories that the index does not name. ``change`` is the id to undo the
    dream with, ``proposal`` that of the edits kept back for the ``problems``. ``dollars`` is the
    price of ``usage``. ``said`` is the model's last message, without credentials.
    """

    gate: str = ""
    engine: str = LOCAL
    model_problem: str = ""
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    merged: tuple[Merge, ...] = ()
    removed: tuple[Reasoned, ...] = ()
    left: tuple[Reasoned, ...] = ()
    listed: tuple[Reasoned, ...] = ()
    orphans: tuple[str, ...] = ()
    before: DirectorySize | None = None
    after: DirectorySize | None = None
    lost: Mapping[str, int] = field(default_factory=dict)
    change: str | None = None
    proposal: str | None = None
    problems: tuple[str, ...] = ()
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    dollars: float = 0.0
    seconds: float = 0.0
    said: str = ""

    def facts(self) -> dict[str, Any]:
        """Return the report as a JSON object; merges are grouped by their target."""
        if self.gate:
            return {"status": "skipped", "gate": self.gate}
        into: dict[str, list[str]] = {}
        for merge in self.merged:
            into.setdefault(merge.into, []).append(merge.source)
        facts = msgspec.json.decode(msgspec.json.encode(self))
        facts["merged"] = [{"into": path, "from": sources} for path, sources in into.items()]
        facts["usage"] = None if self.usage == Usage() else facts["usage"]
        facts["reason"] = "; ".join(self.problems)
        return {name: value for name, value in facts.items() if value or name in _ALWAYS}


def in_the_end(into: Mapping[str, str], path: str) -> str:
    """Return the memory that a merged one finally ends in, as targets may be merged themselves.

    ``into`` maps each merged path to its target.
    """
    passed = {path}
    while path in into and into[path] not in passed:
        path = into[path]
        passed.add(path)
    return path


def quoted(text: str) -> str:
    """Return a sentence for display: on one line, cut, without credentials."""
    return one_line(secret.scrub(text), QUOTED)

"""What a dream wants, and what became of every memory, as values. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from memd.agent.proposal import SourceText
from memd.core.text import one_line
from memd.core.values import FileEdit
from memd.documents import secrets
from memd.model.port import LOCAL, Usage

QUOTED = 120  # characters of a sentence that a problem names
LISTED = 100  # files in a report that need a person; beyond, that has other worries
SHOWN = 200  # characters of a sentence that a report shows
DAMAGED = "its frontmatter does not parse"
_ALWAYS = ("merged", "removed", "changed", "change", "proposal")  # told even where there is none


@dataclass(frozen=True, slots=True)
class Merge:
    """A memory that went into another one; in what a dream wants, a claim that it did."""

    into: str
    source: str


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A file, and why it is gone, stays as it is or needs a person."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Question:
    """Two memories of which a person should decide: they contradict, or repeat, each other.

    ``one`` and ``two`` are the statements in which they do. Of the kind ``in_file`` the second path
    is that of an instruction file that says all of the first one, and ``two`` is "".
    """

    paths: tuple[str, str]
    kind: str
    one: str
    two: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a dream wants to do, with what it says of it.

    ``reasons`` maps what would go to why. ``left`` are files that it keeps its hands off since
    somebody changed them meanwhile; ``listed`` are files that it cannot help, such as damaged
    ones, each with a sentence. ``sources`` are the logs and transcripts that the run has read.
    """

    edits: tuple[FileEdit, ...] = ()
    merges: tuple[Merge, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    left: tuple[Reasoned, ...] = ()
    listed: tuple[Reasoned, ...] = ()
    sources: tuple[SourceText, ...] = ()


@dataclass(frozen=True, slots=True)
class DirectorySize:
    """How much a memory directory holds: memories, their bytes, the index's lines and bytes."""

    memories: int = 0
    memory_bytes: int = 0
    index_lines: int = 0
    index_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What a dream did. ``gate`` names the gate that closed before it began, "" when it ran.

    ``engine`` is ``local`` or the model's name, ``model_problem`` why a model did not do it.
    ``created`` and ``changed`` leave the index out; a memory that is neither there nor ``merged``
    or ``removed`` is as it was. ``before`` and ``after`` are what the directory holds, ``lost`` how
    many telling words each changed memory has no more. ``questions`` are for the person. ``change``
    undoes it; ``proposal`` is the id of what the judge kept back, with its ``problems``, ``unused``
    that of a question about memories that nobody used.
    ``dollars`` is the price of ``usage``; ``said`` is what the model said last, without
    credentials.
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
    questions: tuple[Question, ...] = ()
    orphans: tuple[str, ...] = ()
    before: DirectorySize | None = None
    after: DirectorySize | None = None
    lost: Mapping[str, int] = field(default_factory=dict)
    change: str | None = None
    proposal: str | None = None
    unused: str | None = None
    problems: tuple[str, ...] = ()
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
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
        facts = json.loads(json.dumps(asdict(self)))
        facts["merged"] = [{"into": path, "from": sources} for path, sources in into.items()]
        facts["usage"] = None if self.usage == Usage() else facts["usage"]
        facts["reason"] = "; ".join(self.problems)
        return {name: value for name, value in facts.items() if value or name in _ALWAYS}


def in_the_end(into: Mapping[str, str], path: str) -> str:
    """Return where a memory is by what went ``into`` what: who took it in may have gone as well."""
    passed = {path}
    while path in into and into[path] not in passed:
        path = into[path]
        passed.add(path)
    return path


def quoted(text: str, characters: int = QUOTED) -> str:
    """Return a sentence as it may be shown: on one line, cut, with no credential in it."""
    return one_line(secrets.scrub(text), characters)

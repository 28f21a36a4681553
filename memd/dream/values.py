"""Values of dreams: the edits that a dream wants, and its report. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from memd.base.text import one_line
from memd.base.values import FileEdit, Pointer, Reasoned, Suggestion, Tree
from memd.model.port import LOCAL, Usage
from memd.store import secret

QUOTED = 120  # characters of a sentence that a problem names
TAKEN_BACK = "a dream did this before, and it was taken back"
_LISTED = 100  # files in a report that need a person
_DAMAGED = "its frontmatter does not parse"
_PARTNER = "it was to become one with {}, which stays as it is"
_ALWAYS = ("merged", "removed", "changed", "change", "proposal")  # in the facts even if empty


class Merge(Struct, frozen=True):
    """The memory ``source`` was merged into another one."""

    into: str
    source: str


class Removal(Struct, frozen=True):
    """Why a memory goes: it is merged ``into`` one, ``by`` a newer one, or for the reason alone."""

    reason: str
    into: str = ""
    by: str = ""


class Group(Struct, frozen=True):
    """Memories that a dream changes together. They are judged, and done or not, by themselves.

    ``before`` has the text of each member as the dream read it, ``None`` for no file; ``removals``
    say why members go. ``problems`` keep the group back. ``old`` and ``new`` are the texts that a
    second reader has to compare, both "" if each sentence only moved.
    """

    edits: tuple[FileEdit, ...]
    before: Mapping[str, bytes | None]
    removals: Mapping[str, Removal] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    old: str = ""
    new: str = ""

    def left(self, path: str, reason: str) -> list[Reasoned]:
        """Return why the whole group stays as it is: for a reason that one file of it has."""
        others = (edit.path for edit in self.edits if edit.path != path)
        return [Reasoned(path, reason), *(Reasoned(p, _PARTNER.format(path)) for p in others)]


class Wanted(Struct, frozen=True):
    """What a dream wants.

    ``pointers`` are new titles and hooks in the index by path. ``left`` are files that it does not
    change, since somebody took such an edit back; ``listed`` are those that are damaged. With
    ``mend_index`` the index is put in order. ``distilled`` are the hashes of the daily logs that it
    has read, ``suggestions`` what it found of the person's words in logs.
    """

    groups: tuple[Group, ...] = ()
    pointers: Mapping[str, Pointer] = field(default_factory=dict)
    left: tuple[Reasoned, ...] = ()
    listed: tuple[Reasoned, ...] = ()
    mend_index: bool = True
    distilled: Mapping[str, str] = field(default_factory=dict)
    suggestions: tuple[Suggestion, ...] = ()


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
    ``merged`` or ``removed`` is unchanged. ``change`` is the id to undo the dream with,
    ``proposal`` that of the edits kept back for the ``problems``. ``dollars`` is the price of
    ``usage``. ``said`` is the model's last message, without credentials.
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
    before: DirectorySize = field(default_factory=DirectorySize)
    after: DirectorySize | None = None
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


def problems_of(groups: Iterable[Group]) -> tuple[str, ...]:
    """Return the problems of all groups, each once."""
    return tuple(dict.fromkeys(each for group in groups for each in group.problems))


def damaged(tree: Tree) -> tuple[Reasoned, ...]:
    """Return the memories that do not parse, which a person has to look at; 100 at most."""
    paths = [header.path for header in tree.headers() if header.damaged]
    return tuple(Reasoned(path, _DAMAGED) for path in paths[:_LISTED])


def quoted(text: str) -> str:
    """Return a sentence for display: on one line, cut, without credentials."""
    return one_line(secret.scrub(text), QUOTED)

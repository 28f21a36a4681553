"""What waits for the person: the items of one inbox, and what each kind of them must be able to do.

A room whose work needs a decision is a ``Source`` of items; the daemon gives all of them to the
review, which lists and decides them.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from memd.base.errors import Conflict
from memd.base.values import Project, Reasoned

OPEN = "open"


class ItemKind(StrEnum):
    """What an item is; each kind has one source."""

    SUGGESTION = "suggestion"
    PROPOSAL = "proposal"
    MESSAGE = "message"
    TEAM = "team"


class Answer(StrEnum):
    """What may be decided about an item."""

    ACCEPT = "accept"
    DISMISS = "dismiss"
    REJECT = "reject"
    REFUSE = "refuse"
    OURS = "ours"
    THEIRS = "theirs"
    EDIT = "edit"


class ItemFile(Struct, frozen=True):
    """One file of an item. ``action`` is created, changed or removed.

    ``diff`` is a unified diff, cut if it is long. ``state`` is open, accepted or rejected, and
    ``stale`` says that the file has changed since the item was made.
    """

    path: str
    action: str
    diff: str
    state: str = OPEN
    reason: str = ""
    stale: bool = False


class InboxItem(Struct, frozen=True):
    """One item that waits for the person.

    ``project`` is its project's root, "" where that is unknown, and ``at`` is ISO 8601 in UTC.
    ``origin`` says whose words or which work it is, and ``why`` why it waits. ``choices`` are the
    possible decisions, none for an item that is decided (``state``). ``type`` is the type of memory
    that it would become. Only the person decides an item with ``person_only``, not a program that
    an assistant started.
    """

    id: str
    kind: ItemKind
    project: str
    at: str
    title: str
    text: str
    origin: str
    choices: tuple[Answer, ...]
    why: tuple[str, ...] = ()
    files: tuple[ItemFile, ...] = ()
    type: str = ""
    state: str = OPEN
    person_only: bool = False


PlacedItem = tuple[str, InboxItem]  # with its memory directory


class ItemDecision(Struct, frozen=True):
    """What was decided about an item, by which client.

    ``text`` and ``type`` replace those of the item. ``paths`` are the files that it is about, none
    for all open ones, and ``reason`` is what the next dream gets.
    """

    answer: Answer
    client: str = ""
    text: str | None = None
    type: str = ""
    paths: tuple[str, ...] = ()
    reason: str = ""


class Decided(Struct, frozen=True):
    """What became of an item: its ``state``, the memory at ``path``, and the change, if any.

    ``paths`` are the files that were decided, ``left`` those that stay open.
    """

    id: str
    state: str
    path: str = ""
    change: str | None = None
    paths: tuple[str, ...] = ()
    left: tuple[Reasoned, ...] = ()


def decided_before(item: str, state: str = "decided", path: str = "") -> Conflict:
    """Return the error that an item, or one file of it, does not wait any more."""
    what = f"{path} of {item}" if path else item
    return Conflict(
        f"{what} was {state} before",
        hint="memctl log shows what was accepted; memctl undo takes it back",
        item=item,
        state=state,
        path=path,
    )


class Source(Protocol):
    """Has the items of one kind."""

    async def items(self, project: Project | None, id_: str = "") -> Sequence[PlacedItem]:
        """Return the open items of a project or of all, each with its memory directory.

        With ``id_`` only that one, decided or not; raises Conflict where that has nothing to show
        any more.
        """
        ...

    async def decide(self, directory: str, item: InboxItem, decision: ItemDecision) -> Decided:
        """Carry out a decision, once. Raises Conflict if it was decided before."""
        ...

"""The inbox: what waits for the person, of all kinds, listed and decided by two methods.

Rules of this file
- A decision is taken once: local ones are carried out one at a time. One about a team's file waits
  for a server, so it is carried out under the lock of its repository instead.
- A program that an assistant started lists items, but reads no held message, and decides nothing
  that is for the person only.
- An id names one item of all projects, but for those of a team: they are paths of a project.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Annotated

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import Invalid, MemdError, NotFound, Off, Refused
from memd.base.inbox import (
    Answer,
    Decided,
    InboxItem,
    ItemDecision,
    ItemFile,
    ItemKind,
    PlacedItem,
    Source,
)
from memd.base.names import printable
from memd.base.threads import in_thread
from memd.base.values import MemoryType, Project
from memd.methods.callers import Callers
from memd.methods.method import method
from memd.rpc.call import Call

_KINDS_BY_LETTER = {"s": ItemKind.SUGGESTION, "p": ItemKind.PROPOSAL, "m": ItemKind.MESSAGE}
_NUMBERED_ID = re.compile(r"[smp][0-9]+")
# These change no memory, so they are possible where memory is off.
_HARMLESS = (Answer.DISMISS, Answer.REJECT, Answer.REFUSE)
_MOST_CHARACTERS = 700_000  # of texts and files in one answer
_NO_ROOM = "not all of it has room in this answer; its id shows more"
_PERSON_READS = "the person reads what is held, in a terminal of their own"
_PERSON_DECIDES = "the person decides this, in a terminal of their own"
ItemId = Annotated[str, msgspec.Meta(max_length=1000)]
Words = Annotated[str, msgspec.Meta(max_length=100_000)]
Reason = Annotated[str, msgspec.Meta(max_length=10_000)]
Paths = Annotated[tuple[str, ...], msgspec.Meta(max_length=2000)]


class Waiting(Struct, frozen=True):
    """What waits for the person, by kind, the newest first."""

    items: tuple[InboxItem, ...]


class Inbox:
    """The items of all sources. ``roots`` returns the roots by memory directory, and blocks."""

    def __init__(
        self,
        callers: Callers,
        sources: Mapping[ItemKind, Source],
        roots: Callable[[], Mapping[str, str]],
    ) -> None:
        self._callers = callers
        self._sources = sources
        self._roots = roots
        self._decision_lock = anyio.Lock()

    @method("review.list", "read")
    async def list_items(
        self,
        call: Call,
        *,
        cwd: str = "",
        kind: ItemKind | None = None,
        id_: ItemId = "",
        all_: bool = False,
    ) -> Waiting:
        """What waits for the person: suggestions, proposals of dreams, held messages, and what a
        team's sync left to decide.

        They are those of the project of ``cwd``, or with ``all`` or without it of every project;
        ``id`` selects one of any. The text of a held message is for the person only: a program that
        an assistant started gets it empty.
        """
        is_person = not await in_thread(self._callers.started_by_an_assistant, call)
        project = None
        if cwd and not all_:
            project = await in_thread(self._callers.readable, call, cwd)
        if id_:
            if _kind_of(id_) is ItemKind.MESSAGE and not is_person:
                raise Refused(_PERSON_READS)
            return Waiting(items=_fitting([(await self._find(call, project, id_))[1]]))
        items: list[InboxItem] = []
        for name, source in self._sources.items():
            if kind in (None, name):
                placed = await source.items(project)
                items += [each for _, each in await self._in_projects(call, project, placed)]
        return Waiting(_fitting(each if is_person else _without_text(each) for each in items))

    @method("review.decide", "write")
    async def decide(
        self,
        call: Call,
        *,
        cwd: str = "",
        id_: Annotated[ItemId, msgspec.Meta(min_length=1)],
        choice: Answer,
        text: Words | None = None,
        type_: MemoryType | None = None,
        paths: Paths = (),
        reason: Reason = "",
    ) -> Decided:
        """Decide an item, once, by one of its ``choices``.

        What is accepted is one change. Of a suggestion ``text`` and ``type`` replace the wording
        and the guessed type; the quotation stays. Of a proposal ``paths`` select files, and a
        ``reason`` for rejecting is given to the next dream. A file that changed meanwhile is merged
        or stays open, and ``left`` says why. ``edit`` sends the ``text`` to the team.
        """
        is_person = not await in_thread(self._callers.started_by_an_assistant, call)
        kind = _kind_of(id_)
        if kind is ItemKind.MESSAGE and not is_person:
            raise Refused(_PERSON_DECIDES)
        async with self._decision_lock if kind is not ItemKind.TEAM else nullcontext():
            project = await in_thread(self._callers.place, call, cwd) if cwd else None
            directory, item = await self._find(call, project, id_)
            _check(item, choice, is_person=is_person)
            if choice not in _HARMLESS and kind is not ItemKind.MESSAGE:
                await in_thread(self._callers.writable, call, item.project)
            client, type_name = call.caller.client, type_ or ""
            decision = ItemDecision(choice, client, text, type_name, paths, reason)
            return await self._sources[kind].decide(directory, item, decision)

    async def _find(self, call: Call, project: Project | None, id_: str) -> PlacedItem:
        """Return an item with its memory directory; it is looked for in the project first.

        Raises NotFound, and Conflict if it is decided and has nothing to show.
        """
        kind = _kind_of(id_)
        if kind is ItemKind.TEAM and project is None:
            raise Invalid(f"{printable(id_)} is an id of one project", hint="cwd says of which")
        source = self._sources[kind]
        placed = await source.items(project, id_) if project else ()
        if not placed and kind is not ItemKind.TEAM:
            project, placed = None, await source.items(None, id_)
        for each in await self._in_projects(call, project, placed):
            return each
        raise NotFound(
            f"nothing waits under the id {printable(id_)}",
            hint="memctl review lists what waits",
            id=printable(id_),
        )

    async def _in_projects(
        self, call: Call, project: Project | None, placed: Iterable[PlacedItem]
    ) -> list[PlacedItem]:
        """Return items with the roots of their projects, but for those where memory is off."""
        if project is not None:  # a message knows the project of its receiver
            of = ItemKind.MESSAGE
            return [
                (directory, each if each.kind is of else replace(each, project=project.root))
                for directory, each in placed
            ]

        def in_projects() -> list[PlacedItem]:
            roots, result = self._roots(), list[PlacedItem]()
            for directory, each in placed:
                root = each.project or roots.get(os.path.realpath(directory), "")
                try:
                    self._callers.readable(call, root)
                except Off:
                    continue
                except MemdError:
                    pass  # the project was moved or removed, and the person decides all the same
                result.append((directory, replace(each, project=root)))
            return result

        return await in_thread(in_projects)


def _check(item: InboxItem, answer: Answer, *, is_person: bool) -> None:
    """Raise Invalid for an answer that the item does not take, Refused if another one decides."""
    if item.choices and answer not in item.choices:
        raise Invalid(
            f"{printable(item.id)} cannot be decided by {answer.value}",
            hint=f"it can by {', '.join(item.choices)}",
        )
    if item.person_only and not is_person:
        raise Refused(_PERSON_DECIDES)


def _kind_of(id_: str) -> ItemKind:
    """Return the kind of the item with an id."""
    return _KINDS_BY_LETTER[id_[0]] if _NUMBERED_ID.fullmatch(id_) else ItemKind.TEAM


def _fitting(items: Iterable[InboxItem]) -> tuple[InboxItem, ...]:
    """Return items so that they fit a message: the last ones without texts and some files."""
    result, room = list[InboxItem](), _MOST_CHARACTERS
    for each in items:
        room -= len(each.text) + sum(map(len, each.why))
        text, files = each.text if room >= 0 else "", list[ItemFile]()
        for file in each.files:
            room -= len(file.path) + len(file.reason) + len(file.diff)
            files += [file] if room >= 0 else []
        why = each.why if room >= 0 else (*each.why, _NO_ROOM)
        result.append(replace(each, text=text, files=tuple(files), why=why))
    return tuple(result)


def _without_text(item: InboxItem) -> InboxItem:
    """Return an item as an assistant's program gets it: a held message without its text."""
    return replace(item, text="") if item.kind is ItemKind.MESSAGE else item

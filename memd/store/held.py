"""Files that memd has just replaced, held open for a moment: somebody may still write into them.

A program that saves by emptying a file and filling it again has the file open meanwhile. When memd
replaces the file in that instant, what the program writes goes into a file that has no name any
more, and nobody would ever see it. So the old file stays open here until a later look, and what
turns up in it is a save like any other: it becomes the file again when nobody has touched that
since memd wrote it, else it is kept in the history. Either way the other text is there as well.
"""

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.text import sha256
from memd.core.values import Actor, Draft, FileEdit, Plan, Provenance, Tree
from memd.state.journal import Step
from memd.store.drafts import StoreDraft
from memd.store.names import INDEX
from memd.store.tree import LiveTree

BY = Provenance(Actor.EXTERNAL, reason="saved while memd was writing the same file")
_SECONDS = limits.LOOK_SECONDS  # a program fills the file within milliseconds of emptying it
_CHUNK = 256 * 1024
_FILES = 64  # descriptors that may be spent on this; a busy store holds each for a shorter time


@dataclass(frozen=True, slots=True)
class Late:
    """A save that went into a replaced file: what the file was, what memd put there, the text."""

    path: str
    before: str
    written: str | None
    body: bytes


@dataclass(slots=True)
class _Held:
    directory: str
    file: int
    step: Step
    until: float


@dataclass(slots=True)
class Holding:
    """The files that one commit is about to replace, by path."""

    files: dict[str, int] = field(default_factory=dict)

    def plan(self, plan: Plan) -> Plan:
        """Return the same plan, which opens what it wants to replace each time it runs."""

        def held(tree: Tree) -> Draft:
            draft = plan(tree)
            self.close()
            if isinstance(tree, LiveTree):
                for path in (INDEX, *(edit.path for edit in draft.edits)):
                    with suppress(MemdError, OSError):
                        file = tree.open(path)
                        if file is not None:
                            self.files[path] = file
            return draft

        return held

    def close(self, but: Collection[str] = ()) -> None:
        """Close all files but those of some paths."""
        for path in [path for path in self.files if path not in but]:
            os.close(self.files.pop(path))


class Held:
    """Replaced files of all directories. Blocks; used under the lock of the directory meant."""

    def __init__(self) -> None:
        self._held: list[_Held] = []

    def keep(self, directory: str, holding: Holding, steps: Sequence[Step], now: float) -> None:
        """Hold what a commit has replaced; ``now`` is in seconds that never go back."""
        replaced = {step.path: step for step in steps if step.before and not step.conflict}
        holding.close(but=replaced.keys())
        self._held += [
            _Held(directory, file, replaced[path], now + _SECONDS)
            for path, file in holding.files.items()
        ]
        holding.files.clear()

    def late(self, directory: str, now: float) -> tuple[list[Late], bool]:
        """Return the saves that turned up, and whether one more call is wanted later."""
        found: list[Late] = []
        crowded = len(self._held) > _FILES
        for held in [held for held in self._held if held.directory == directory]:
            body = _body(held)
            news = body is not None and sha256(body) not in (held.step.before, held.step.after)
            if news and body is not None:
                found.append(Late(held.step.path, held.step.before or "", held.step.after, body))
            if news or now >= held.until or crowded:
                self._drop(held)
        return found, any(held.directory == directory for held in self._held)

    def close(self) -> None:
        """Let go of everything."""
        for held in list(self._held):
            self._drop(held)

    def _drop(self, held: _Held) -> None:
        self._held.remove(held)
        os.close(held.file)


def late_plan(late: Late) -> Plan:
    """Return the plan that makes a late save the file again, if memd's text still stands there."""

    def plan(tree: Tree) -> Draft:
        found = tree.read(late.path)
        live = found.hash if found else None
        edits = (FileEdit(late.path, late.body, live or ""),) if live == late.written else ()
        return StoreDraft(edits, restores=True)

    return plan


def _body(held: _Held) -> bytes | None:
    """Return what a held file says now, ``None`` when it is the live one or cannot be read."""
    try:
        status = os.fstat(held.file)
        if status.st_size > limits.READ_BYTES or _is_live(held, status):
            return None
        return _bytes(held.file)
    except OSError:
        return None


def _bytes(file: int) -> bytes:
    found = b""
    while len(found) < limits.READ_BYTES and (part := os.pread(file, _CHUNK, len(found))):
        found += part
    return found


def _is_live(held: _Held, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(status, os.lstat(f"{held.directory}/{held.step.path}"))
    except OSError:
        return False

"""Store how far each conversation has been read.

A cursor moves only together with the change that holds the memories found before it, so both are
stored or neither is. Functions block and raise StateUnusableError.
"""

import os
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.base.values import Effect
from memd.state import docs
from memd.state.docs import Docs


class ExtractionCursor(Struct, frozen=True):
    """The position up to which a session's conversation has been read.

    ``source`` is the absolute path of its transcript, or another word for what a client sends.
    ``message`` is the id of the person's last message before the position, which memories name as
    their source; it is not stored. ``messages`` is how many of the person's messages were read,
    ``suggested`` how many suggestions they gave.

    ``read`` and ``read_marker`` are the position up to which a model has read, 0 if none did.
    ``unread_since`` is the time of the person's first message behind it (seconds since 1970),
    ``None`` if there is none.
    """

    session: str
    source: str
    position: int
    marker: str
    message: str = ""
    messages: int = 0
    suggested: int = 0
    read: int = 0
    read_marker: str = ""
    unread_since: float | None = None

    def all_read(self) -> "ExtractionCursor":
        """Return the cursor after a model has read everything before the position."""
        return replace(self, read=self.position, read_marker=self.marker, unread_since=None)

    def unread(self) -> "ExtractionCursor | None":
        """Return a cursor from which a model has to read on, ``None`` for the beginning."""
        return replace(self, position=self.read, marker=self.read_marker) if self.read else None


def read_cursor(table: Docs, directory: str, session: str) -> ExtractionCursor | None:
    """Return the cursor of a session in a memory directory, ``None`` if there is none."""
    return table.get(ExtractionCursor, os.path.realpath(directory), session)


def transcript_cursors(table: Docs) -> tuple[tuple[str, ExtractionCursor], ...]:
    """Return the directory's real path and the cursor of each conversation with a transcript."""
    return tuple(
        (place, each)
        for (place, _), each in table.list_all(ExtractionCursor).items()
        if each.source.startswith("/")
    )


def cursor_moved(directory: str, to: ExtractionCursor) -> Effect:
    """Return the effect that stores a session's new cursor."""
    place = os.path.realpath(directory)

    def move(cursor: Any, _change: str | None) -> None:
        docs.put(cursor, replace(to, message=""), place, to.session)

    return move

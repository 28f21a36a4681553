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

AT_END = "\0end"  # behind a session's id in the key of the cursor for a model's readings of it


class ExtractionCursor(Struct, frozen=True):
    """The position up to which a session's conversation has been read.

    ``source`` is the absolute path of its transcript, or another word for what a client sends.
    ``message`` is the id of the person's last message before the position, which memories name as
    their source; it is not stored. ``messages`` is how many of the person's messages were read,
    ``suggested`` how many suggestions they gave.
    """

    session: str
    source: str
    position: int
    marker: str
    message: str = ""
    messages: int = 0
    suggested: int = 0


def read_cursor(table: Docs, directory: str, session: str) -> ExtractionCursor | None:
    """Return the cursor of a session in a memory directory, ``None`` if there is none."""
    return table.get(ExtractionCursor, os.path.realpath(directory), session)


def transcript_cursors(table: Docs) -> tuple[tuple[str, ExtractionCursor], ...]:
    """Return the directory's real path and the cursor of each conversation with a transcript."""
    return tuple(
        (place, each)
        for (place, session), each in table.list_all(ExtractionCursor).items()
        if each.source.startswith("/") and not session.endswith(AT_END)
    )


def cursor_moved(directory: str, to: ExtractionCursor) -> Effect:
    """Return the effect that stores a session's new cursor."""
    place = os.path.realpath(directory)

    def move(cursor: Any, _change: str | None) -> None:
        docs.put(cursor, replace(to, message=""), place, to.session)

    return move

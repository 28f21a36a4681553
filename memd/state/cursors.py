"""Store extraction cursors: how far each conversation has been read.

A cursor moves only in the journal's transaction that marks a change set applied. So the memories of
a turn and its cursor are stored together or not at all. As in the journal, a memory directory is
named by its real path.
"""

import os

from memd.base.values import CursorMove
from memd.state.database import Cursor, Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS cursors (
    directory TEXT NOT NULL,
    session TEXT NOT NULL,
    source TEXT NOT NULL,
    position INTEGER NOT NULL,
    marker TEXT NOT NULL,
    PRIMARY KEY (directory, session)
) WITHOUT ROWID;
"""


class Cursors:
    """Reads cursors; the function ``move`` writes them. Methods block."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, directory: str, session: str) -> CursorMove | None:
        """Return the cursor of a session in a directory, or ``None``. Raises StateUnusableError."""
        rows = self._database.read(
            "SELECT session, source, position, marker FROM cursors"
            " WHERE directory = ? AND session = ?",
            (os.path.realpath(directory), session),
        )
        return CursorMove(**dict(rows[0])) if rows else None

    def transcripts(self) -> tuple[tuple[str, CursorMove], ...]:
        """Return the directory's real path and the cursor of each conversation with a transcript.

        Raises StateUnusableError.
        """
        # The source of a transcript's cursor is the transcript's absolute path.
        rows = self._database.read("SELECT * FROM cursors WHERE source LIKE '/%'")
        return tuple((row["directory"], CursorMove(*tuple(row)[1:])) for row in rows)


def move(cursor: Cursor, directory: str, to: CursorMove) -> None:
    """Store a session's new cursor inside the caller's transaction."""
    cursor.execute(
        "INSERT OR REPLACE INTO cursors (directory, session, source, position, marker)"
        " VALUES (?, ?, ?, ?, ?)",
        (os.path.realpath(directory), to.session, to.source, to.position, to.marker),
    )

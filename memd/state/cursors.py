"""How far each conversation has been read: the extraction cursors.

A cursor moves only inside the journal's transaction that marks a change set applied, so the
memories of a turn and the note that the turn was read are true together or not at all. Like the
journal, cursors know a memory directory by its real path.
"""

import os

from memd.core.values import CursorMove
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
    """Reads cursors; ``move`` writes them. Blocks: call it from a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, directory: str, session: str) -> CursorMove | None:
        """Return where a session was read up to, or ``None``. Raises StateUnusableError."""
        rows = self._database.read(
            "SELECT session, source, position, marker FROM cursors"
            " WHERE directory = ? AND session = ?",
            (os.path.realpath(directory), session),
        )
        return CursorMove(**dict(rows[0])) if rows else None

    def transcripts(self) -> tuple[tuple[str, CursorMove], ...]:
        """Return each conversation that has a transcript, after its directory's real path.

        Raises StateUnusableError.
        """
        rows = self._database.read("SELECT * FROM cursors WHERE source LIKE '/%'")
        return tuple((row["directory"], CursorMove(*tuple(row)[1:])) for row in rows)


def move(cursor: Cursor, directory: str, to: CursorMove) -> None:
    """Move one cursor inside a transaction that the caller owns."""
    cursor.execute(
        "INSERT OR REPLACE INTO cursors (directory, session, source, position, marker)"
        " VALUES (?, ?, ?, ?, ?)",
        (os.path.realpath(directory), to.session, to.source, to.position, to.marker),
    )

"""Store the turns of agents' runs, for ``memctl job show``.

A record is plain data without credentials (``agent/record.py``); only the newest are kept.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memd.base.text import read_json
from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    job TEXT PRIMARY KEY,
    turns TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS runs_at ON runs (at);
"""

ROWS_KEPT = 200  # runs; some 40 MB at the very most


class Runs:
    """The records of agents' runs by job. Methods block and may raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, job: str, turns: Sequence[Mapping[str, Any]], at: float) -> None:
        """Store the turns of a job's last run; ``at`` is seconds since 1970."""
        with self._database.transaction(synced=False) as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO runs (job, turns, at) VALUES (?, ?, ?)",
                (job, json.dumps(list(turns)), at),
            )
            cursor.execute(
                # Ordered by insertion, because the clock may have been wrong.
                "DELETE FROM runs WHERE rowid NOT IN"
                " (SELECT rowid FROM runs ORDER BY rowid DESC LIMIT ?)",
                (ROWS_KEPT,),
            )

    def of(self, job: str) -> list[dict[str, Any]]:
        """Return the turns of a job's last run, empty if no model was used in it."""
        rows = self._database.read("SELECT turns FROM runs WHERE job = ?", (job,))
        turns = read_json(rows[0]["turns"]) if rows else None
        if not isinstance(turns, list):
            return []
        return [turn for turn in turns if isinstance(turn, dict)]

"""Store the rules that a person switched on.

Rules of this file
- Only a person's consent (``rule.add``) creates a row. It names a memory and the hash of the text
  that was consented to; it holds no text of a memory.
- A memory has at most one rule, which keeps its number when it is switched on again.
- The state file may be damaged: a row with invalid values is skipped.
"""

import os

from msgspec import Struct

from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS rules (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    at REAL NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0,
    last_at REAL,
    UNIQUE (directory, path)
) STRICT;
"""
_ADD = """
INSERT INTO rules (directory, path, digest, answer, enabled, at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT (directory, path) DO UPDATE SET
    digest = excluded.digest, answer = excluded.answer, enabled = 1, at = excluded.at
"""


class StoredRule(Struct, frozen=True):
    """A rule that a person switched on for a memory; times are seconds since 1970."""

    number: int
    directory: str
    path: str
    digest: str  # of the memory's text that the person consented to
    answer: str  # "ask" or "deny"
    enabled: bool
    at: float  # when the person switched it on
    answered: int = 0  # tool calls that it answered
    last_at: float | None = None  # when it last answered one


class RuleTable:
    """The rules of all directories by real path. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[StoredRule, ...]:
        """Return every rule, also those switched off, oldest first; skip damaged rows."""
        rows = self._database.read("SELECT * FROM rules ORDER BY number")
        rules = (StoredRule(**dict(row)) for row in rows)
        return tuple(rule for rule in rules if rule.answer in {"ask", "deny"})

    def switch_on(self, directory: str, path: str, digest: str, answer: str, at: float) -> None:
        """Store a memory's rule with the digest of its text, or switch it on again."""
        real = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            cursor.execute(_ADD, (real, path, digest, answer, at))

    def switch_off(self, number: int, *, forget: bool = False) -> None:
        """Switch a rule off; with ``forget``, delete it."""
        statement = "DELETE FROM rules" if forget else "UPDATE rules SET enabled = 0"
        with self._database.transaction() as cursor:
            cursor.execute(f"{statement} WHERE number = ?", (number,))

    def answered(self, number: int, at: float) -> bool:
        """Count one answer of a rule; return whether the rule is still on.

        The count may be lost in a power cut, so that a tool call does not wait for the disk.
        """
        with self._database.transaction(synced=False) as cursor:
            cursor.execute(
                "UPDATE rules SET answered = answered + 1, last_at = ?"
                " WHERE number = ? AND enabled = 1",
                (at, number),
            )
            return cursor.rowcount == 1

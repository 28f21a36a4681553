"""The register's rows: each agent that is known, with the hash of its key.

Rows are input: a state file may be damaged, and a row that makes no sense is passed over.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, fields, replace
from typing import Any

from memd.core.agents import Agent
from memd.state.database import Database, Row

SCHEMA = """
CREATE TABLE IF NOT EXISTS agents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL,
    directory TEXT NOT NULL,
    name TEXT NOT NULL,
    parent INTEGER NOT NULL,
    client TEXT NOT NULL,
    kind TEXT NOT NULL,
    session TEXT NOT NULL,
    child TEXT NOT NULL,
    pid INTEGER NOT NULL,
    began REAL NOT NULL,
    registered REAL NOT NULL,
    seen REAL NOT NULL,
    ended REAL,
    displaced INTEGER NOT NULL,
    transcript TEXT NOT NULL,
    key TEXT NOT NULL
) STRICT;
"""
_NAMES = tuple(item.name for item in fields(Agent))
_READERS = {
    **dict.fromkeys(("id", "parent", "pid"), int),
    **dict.fromkeys(("began", "registered", "seen"), float),
    **dict.fromkeys(("root", "directory", "name", "client", "kind"), str),
    **dict.fromkeys(("session", "child", "transcript"), str),
    "displaced": bool,
}
_SAVE = (
    f"INSERT OR REPLACE INTO agents ({', '.join(_NAMES)}, key)"  # noqa: S608 - names of our own
    f" VALUES ({', '.join('?' * (len(_NAMES) + 1))})"
)


class AgentTable:
    """The rows of all agents. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[tuple[Agent, str], ...]:
        """Return all agents with the hashes of their keys, the oldest first."""
        return tuple(_each(self._database.read("SELECT * FROM agents ORDER BY id")))

    def add(self, agent: Agent, key: str) -> Agent:
        """Store a new agent with the hash of its key; return it with its id."""
        with self._database.transaction() as cursor:
            cursor.execute(_SAVE, (None, *astuple(agent)[1:], key))
            return replace(agent, id=int(cursor.lastrowid or 0))

    def save(self, agents: dict[Agent, str]) -> None:
        """Store agents as they are now, each with the hash of its key."""
        with self._database.transaction() as cursor:
            cursor.executemany(_SAVE, [(*astuple(agent), key) for agent, key in agents.items()])

    def forget(self, ids: tuple[int, ...]) -> None:
        """Forget agents."""
        with self._database.transaction() as cursor:
            cursor.executemany("DELETE FROM agents WHERE id = ?", [(id_,) for id_ in ids])


def _each(rows: list[Row]) -> Iterator[tuple[Agent, str]]:
    for row in rows:
        with suppress(TypeError, ValueError):
            facts: dict[str, Any] = {name: read(row[name]) for name, read in _READERS.items()}
            ended = None if row["ended"] is None else float(row["ended"])
            yield Agent(**facts, ended=ended), str(row["key"])

"""Store the registered agents, each with the hash of its key.

A state file may be damaged, so rows with invalid values are skipped.
"""

from msgspec.structs import asdict, replace

from memd.base.agents import Agent
from memd.state.database import Database
from memd.state.rows import insert_row, read_rows

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
    displaced INTEGER NOT NULL,  -- 0; nobody reads it
    transcript TEXT NOT NULL,
    key TEXT NOT NULL
) STRICT;
"""


class AgentTable:
    """The rows of all agents. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[tuple[Agent, str], ...]:
        """Return all agents with the hashes of their keys, the oldest first."""
        rows = self._database.read("SELECT * FROM agents ORDER BY id")
        return tuple((agent, row["key"]) for row in rows for agent in read_rows([row], Agent))

    def add(self, agent: Agent, key: str) -> Agent:
        """Store a new agent with the hash of its key; return it with its id."""
        with self._database.transaction() as cursor:
            row = asdict(agent) | {"id": None, "displaced": False, "key": key}
            return replace(agent, id=insert_row(cursor, "agents", row))

    def save(self, agents: dict[Agent, str]) -> None:
        """Replace the rows of agents; ``agents`` maps each to the hash of its key."""
        with self._database.transaction() as cursor:
            for agent, key in agents.items():
                row = asdict(agent) | {"displaced": False, "key": key}
                insert_row(cursor, "agents", row, replace=True)

    def forget(self, ids: tuple[int, ...]) -> None:
        """Delete the rows of agents."""
        with self._database.transaction() as cursor:
            cursor.executemany("DELETE FROM agents WHERE id = ?", [(id_,) for id_ in ids])

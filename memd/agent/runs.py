"""Store the turns of agents' runs, for ``memctl job show``.

A record is plain data without credentials (``record.py``); only the newest are kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memd.state import docs
from memd.state.docs import Docs

RUNS_KEPT = 200  # some 40 MB at the very most


class RunTurns(Struct, frozen=True):
    """The turns of a job's last run; the job's id is the document's key."""

    turns: list[dict[str, Any]]


class Runs:
    """The records of agents' runs by job. Methods block and may raise StateUnusableError."""

    def __init__(self, table: Docs) -> None:
        self._table = table

    def save(self, job: str, turns: Sequence[Mapping[str, Any]]) -> None:
        """Store the turns of a job's last run."""
        with self._table.transaction(synced=False) as cursor:
            docs.put(cursor, RunTurns([dict(turn) for turn in turns]), key=job)
            docs.keep_newest(cursor, RunTurns, RUNS_KEPT)

    def of(self, job: str) -> list[dict[str, Any]]:
        """Return the turns of a job's last run, empty if no model was used in it."""
        run = self._table.get(RunTurns, key=job)
        return run.turns if run else []

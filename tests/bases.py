"""Bases of team memory that a test wants somewhere."""

from collections.abc import Iterable

from memd.base.team import Base, PushBatch
from memd.state.teams import TeamTable


def move_bases(table: TeamTable, directory: str, bases: Iterable[Base]) -> None:
    """Move bases as the answer to a batch does."""
    table.begin(directory, PushBatch("moved", 0.0, ()), {})
    table.end(directory, bases, batch="moved")

"""The history of a directory as the journal has it, in one call."""

from memd.base.values import Change
from memd.state.history import Filter, JournalHistory
from memd.state.journal import Journal


def history(journal: Journal, directory: str, path: str = "") -> tuple[Change, ...]:
    """Return the newest changes of a directory, or of one file of it."""
    return JournalHistory(journal).changes(Filter(directory, path), 50)

"""Which daily logs are distilled: their facts are in memories, or a model chose to leave them.

A log that grows afterwards is another text, and so is none of them.
"""

import os

from msgspec import Struct

from memd.base.values import Effect
from memd.state import docs
from memd.state.database import Cursor
from memd.state.docs import Docs

_MOST_LOGS = 400  # of a directory


class DistilledLog(Struct, frozen=True):
    """The hash of a log's text when it was distilled; its path is the document's key."""

    hash: str


def distilled_logs(table: Docs, directory: str) -> dict[str, str]:
    """Return the hashes of a directory's distilled logs by path."""
    logs = table.list_in(DistilledLog, os.path.realpath(directory))
    return {path: log.hash for path, log in logs.items()}


def log_distilled(directory: str, path: str, digest: str) -> Effect:
    """Return the effect that marks a log as distilled."""
    real = os.path.realpath(directory)

    def mark(cursor: Cursor, _change: str | None) -> None:
        docs.put(cursor, DistilledLog(digest), real, path)
        docs.keep_newest(cursor, DistilledLog, _MOST_LOGS, real)

    return mark

"""The tables of the state file, for whoever opens it."""

from memd.state import (
    cursors,
    docs,
    dreams,
    job_rows,
    ledger,
    messages,
    spend,
    suggestions,
    teams,
)

SCHEMAS = (
    teams.SCHEMA,
    cursors.SCHEMA,
    docs.SCHEMA,
    dreams.SCHEMA,
    job_rows.SCHEMA,
    ledger.SCHEMA,
    messages.SCHEMA,
    spend.SCHEMA,
    suggestions.SCHEMA,
)

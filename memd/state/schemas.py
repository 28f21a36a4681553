"""The tables of the state file, for whoever opens it."""

from memd.state import (
    docs,
    job_rows,
    ledger,
    messages,
    spend,
    teams,
)

SCHEMAS = (
    teams.SCHEMA,
    docs.SCHEMA,
    job_rows.SCHEMA,
    ledger.SCHEMA,
    messages.SCHEMA,
    spend.SCHEMA,
)

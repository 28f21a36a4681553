"""The tables of the state file, for whoever opens it."""

from memd.state import (
    docs,
    jobs,
    ledger,
    messages,
    spend,
    teams,
)

SCHEMAS = (
    teams.SCHEMA,
    docs.SCHEMA,
    jobs.SCHEMA,
    ledger.SCHEMA,
    messages.SCHEMA,
    spend.SCHEMA,
)

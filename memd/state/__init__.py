"""The daemon's own durable state in one SQLite file: journal, cursors, jobs, ledger, search."""

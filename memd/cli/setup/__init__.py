"""Connecting clients: a table of them, and edits of their files that change memd's lines alone."""

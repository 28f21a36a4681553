"""Memory directories as a whole: trees, change sets, recovery, history, undo.

Doors: ``drafts``, ``history``, ``service``.
"""

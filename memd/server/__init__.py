"""memd-team, the server of team memory: a program of its own, which the daemon never imports.

Doors: ``command``, ``app``, ``storage``.
"""

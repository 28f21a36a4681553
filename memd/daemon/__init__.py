"""The composition: one process that owns the socket, the store and the jobs.

Doors: ``app``, ``clock``, ``start``.
"""

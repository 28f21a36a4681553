"""Direct use of memories by people and plugins: list, read, write, delete, search, history.

Doors: ``service``, ``writing``.
"""

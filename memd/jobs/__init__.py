"""Jobs: durable background work, one at a time for each memory directory.

Doors: ``priority``, ``service``.
"""

"""Rules: the person's rules for tools, and whether a tool's call breaks one of them.

Doors: ``service``, ``values``.
"""

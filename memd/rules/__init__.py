"""The person's rules for tools: which are switched on, and which of them a tool's call breaks.

Doors: ``service``, ``values``.
"""

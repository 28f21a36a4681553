"""Review: a person accepts or rejects the proposals of dreams and imports.

Doors: ``accepting``, ``service``, ``view``.
"""

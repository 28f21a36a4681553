"""Review: a person accepts or rejects the proposals of dreams.

Doors: ``accepting``, ``service``, ``view``.
"""

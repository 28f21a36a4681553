"""Suggestions: statements that may be worth remembering, shown until a person decides.

Doors: ``service``.
"""

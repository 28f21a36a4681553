"""Suggestions: what was said and may be worth remembering, shown until somebody decides.

Doors: ``service``.
"""

"""Servers that the user configured: one bounded HTTP request at a time.

Doors: ``link``.
"""

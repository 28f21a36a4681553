"""Conversations as values: recorded pieces, token counts, and where a conversation is cut. Pure.

Doors: ``dialogue``, ``history``, ``pieces``.
"""

"""Conversations as values: what is recorded and read of one, counted and cut. Pure.

Doors: ``dialogue``, ``history``, ``pieces``.
"""

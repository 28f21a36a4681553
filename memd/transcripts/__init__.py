"""Conversations as assistants record them: reading, sessions, forks.

Doors: ``forks``, ``reading``, ``sessions``.
"""

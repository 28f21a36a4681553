"""Conversations as assistants record them: reading, whole or as they grow, and their sessions.

Doors: ``reading``, ``sessions``, ``stream``.
"""

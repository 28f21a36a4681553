"""Memories: people and plugins write, delete and share memories directly.

Doors: ``service``, ``writing``.
"""

"""Memories: people and plugins write, delete, share, adopt and move memories directly.

Doors: ``service``, ``writing``.
"""

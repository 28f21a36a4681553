"""Instruction files: what assistants read of CLAUDE.md and its relatives, in which order and why.

Doors: ``service``, ``values``.
"""

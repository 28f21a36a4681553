"""Transcripts: read the conversations that assistants record, whole or as they grow.

Doors: ``reading``, ``sessions``, ``stream``.
"""

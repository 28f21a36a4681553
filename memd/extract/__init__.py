"""Extraction: find what is worth remembering in a conversation and write it as memories.

Doors: ``candidates``, ``service``.
"""

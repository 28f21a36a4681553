"""Recall: find the few memories that help with a prompt.

Doors: ``search``, ``service``.
"""

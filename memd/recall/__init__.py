"""Recall: find the few memories that help with a prompt.

Doors: ``indexes``, ``local``, ``service``.
"""

"""Recall: find the few memories that help with a prompt.

Doors: ``search``, ``service``.
Longer than planned: its own rules at a start, explanations and daily logs came on top of ranking.
"""

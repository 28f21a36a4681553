"""Durable background jobs: one lane per project, coalesced per session.

Doors: ``breaker``, ``priority``, ``service``.
"""

"""Conversations as values: what a model reads of one, and how it is cut. Pure.

Doors: ``dialogue``.
"""

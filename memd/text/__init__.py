"""Analyse text: words, statements, dates, characters. Pure; knows no other room.

Doors: ``invisible``.
"""

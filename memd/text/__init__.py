"""What a text is made of, one table for each question. Pure; knows no other room.

Doors: ``invisible``.
"""

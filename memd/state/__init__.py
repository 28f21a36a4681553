"""The daemon's own durable state in one SQLite file.

Doors: ``database``, ``docs``, and the files of the tables.
"""

"""The daemon's own durable state in one SQLite file.

Doors: ``database``, ``changes``, ``docs``, and the files of the tables.
"""

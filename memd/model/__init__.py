"""Language models: the port that rooms ask, and the servers and programs behind it.

Doors: ``port`` (what a room asks), ``errors``, ``configured`` (what the settings name).
"""

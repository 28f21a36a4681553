"""Language models: the port that rooms ask, and the one door to the SDK behind it.

Doors: ``port`` (what a room asks), ``errors``, ``configured`` (what the settings name).
"""

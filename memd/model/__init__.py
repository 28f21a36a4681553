"""Language models: the interface that rooms use, and the servers and programs behind it.

Doors: ``port`` (the interface), ``errors``, ``configured`` (the model that the settings name).
"""

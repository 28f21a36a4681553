"""Export memories to archives, and import them from archives and from other tools.

Doors: ``service``, ``values``, ``errors``.
"""

"""Team memory: what the members of a project share, kept equal through a server.

Doors: ``service``, ``values``, ``errors``.
"""

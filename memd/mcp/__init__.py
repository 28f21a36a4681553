"""The Model Context Protocol, one more set of methods of the daemon's socket.

Doors: ``server``.
"""

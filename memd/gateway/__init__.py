"""A proxy in the foreground for programs that know only a base URL; a client of the daemon.

Doors: ``command``.
"""

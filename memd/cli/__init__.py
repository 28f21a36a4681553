"""memctl: the command line, one more client of the socket.

Doors: ``arguments``, ``grammar``.
"""

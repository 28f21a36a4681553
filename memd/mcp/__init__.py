"""Serve the Model Context Protocol on standard input and output, as a client of the daemon.

Doors: ``server``.
"""

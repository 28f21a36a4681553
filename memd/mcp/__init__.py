"""The Model Context Protocol on standard input and output: a thin bridge to the daemon's socket.

Doors: ``server``.
"""

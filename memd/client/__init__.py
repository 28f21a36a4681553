"""Clients of the socket: blocking and async, and starting a daemon when none runs.

Doors: ``launch``, ``errors``, ``planner``. Programs use ``blocking`` and ``aio`` as well.
"""

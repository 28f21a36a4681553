"""Clients of the socket: blocking and async, and starting a daemon when none runs.

Doors: ``launch``, ``hook_file``, ``errors``, ``planner``. Programs use ``blocking`` and ``aio``
as well.
"""

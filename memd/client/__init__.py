"""Clients of the socket: blocking and async, and starting a daemon when none runs.

Doors: ``launch``, ``hook_file``, ``errors``, ``planner``. Programs use ``blocking`` and ``aio``
as well. Longer than planned: Keeper (``context`` and what it is made of) is the whole memory of a
program on the Anthropic SDK, and half of this room.
"""

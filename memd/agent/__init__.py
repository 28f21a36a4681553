"""The forked agent: a pure step, a loop over the model port, and the workspace it works in.

Doors: ``service``, ``proposal``, ``workspace``.
"""

"""The table of methods: name, parameters, result, permission, handler.

Doors: ``discover``, ``services``, ``table``.
"""

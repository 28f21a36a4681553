"""Context services: decide which parts of a conversation are sent, stored, cleared or summarised.

Doors: ``service``, ``requests``, ``errors``.
"""

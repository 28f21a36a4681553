"""Context services: what of a conversation is sent whole, stored, cleared or summarised.

Doors: ``service``, ``requests``, ``errors``.
"""

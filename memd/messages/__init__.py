"""Messages: which agents are there, and a mailbox for each.

Doors: ``service``, ``errors``, ``values``.
"""

"""Taking everything with you: archives that memd writes, and what it takes from other tools.

Doors: ``service``, ``values``, ``errors``.
"""

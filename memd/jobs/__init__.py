"""Jobs: durable background work, one at a time for each lane.

Doors: ``breaker``, ``priority``, ``service``.
"""

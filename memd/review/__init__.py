"""What dreams wanted and were not let: a person looks at it, accepts it or rejects it.

Doors: ``accepting``, ``service``, ``view``.
"""

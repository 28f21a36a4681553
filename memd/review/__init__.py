"""Review: the one inbox of what waits for the person.

Doors: ``block``, ``inbox``, ``proposals``, ``suggestions``.
"""

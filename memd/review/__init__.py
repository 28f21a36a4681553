"""Review: the one inbox of what waits for the person.

Doors: ``block``, ``inbox``, ``proposals``, ``suggestions``.
Longer than planned: suggestions as assistants get them and proposals as they are applied live here.
"""

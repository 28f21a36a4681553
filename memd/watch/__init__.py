"""What other programs do to the files of memory directories; the lock shared with them.

Doors: ``external``, ``locks``, ``watch``.
"""

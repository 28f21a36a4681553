"""Notice what other programs do to files of memory directories; the lock shared with them.

Doors: ``external``, ``locks``, ``watch``.
"""

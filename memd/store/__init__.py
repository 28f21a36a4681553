"""Memory directories: rows that say what files say, a log of changes, and how a file is changed.

Door: ``store``; ``head``, ``memory``, ``index``, ``merge`` and ``secret`` are pure.
"""

"""Files beneath a directory: opening safely, replacing whole, bringing to the disk.

Doors: ``directory``, ``confined``, ``disk``.
"""

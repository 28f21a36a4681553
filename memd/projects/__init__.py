"""Projects: which directory keeps a working directory's memories, and the settings in force.

Doors: ``configuration``, ``project``, ``projects``.
"""

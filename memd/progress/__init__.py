"""Progress: lines of two to six words that say what each sub-agent is doing.

Doors: ``service``.
"""

"""Progress: what each sub-agent is doing, in a few words.

Doors: ``service``.
"""

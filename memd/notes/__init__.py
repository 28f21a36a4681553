"""Session notes: what one conversation is about, written down while it runs.

Doors: ``errors``, ``files``, ``service``.
"""

"""Session notes: keep a summary file of each conversation while it runs.

Doors: ``errors``, ``files``, ``service``.
"""

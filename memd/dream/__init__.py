"""dream: consolidation across sessions.

Doors: ``gates`` (when one may begin), ``service``, ``report_page``.
"""

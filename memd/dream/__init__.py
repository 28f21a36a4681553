"""Dreams: consolidate the memories of a project across sessions.

Doors: ``gates`` (whether a dream may begin), ``service``, ``report_page``.
"""

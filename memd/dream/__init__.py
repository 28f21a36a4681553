"""Dreams: consolidate the memories of a project across sessions.

Doors: ``gates`` (whether a dream may begin), ``service``, ``report_page``.
Four times as long as planned: the workspace of its tools and the check of what was moved are still
to shrink.
"""

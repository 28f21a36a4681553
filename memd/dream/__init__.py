"""Dreams: consolidate the memories of a project across sessions.

Doors: ``gates`` (whether a dream may begin), ``service``, ``report_page``.
Three and a half times as long as planned: the tools by which a model chooses, the check of what
was moved and the lock shared with other programs are each as long as a small room.
"""

"""The page on which a person looks at their memories: a small web server for one browser.

It is a client of the daemon in a process of its own; only ``memctl ui`` starts it.
Doors: ``app``, ``link``, ``serving``. Longer than planned: forms, the ends of the server and
the check of who asks are half of it.
"""

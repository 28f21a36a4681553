"""A proxy for programs that know only a base URL: big results are stored as they first pass.

It is a client of the daemon in a process of its own; only ``memd gateway`` starts it.
Doors: ``command``.
"""

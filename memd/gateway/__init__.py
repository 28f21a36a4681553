"""Gateway: a proxy for programs that know only a base URL; it stores large tool results.

It is a client of the daemon in a process of its own; only ``memd gateway`` starts it.
Doors: ``command``.
"""

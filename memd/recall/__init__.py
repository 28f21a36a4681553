"""prefetch: the few memories that matter for this prompt.

Doors: ``indexes``, ``local``, ``service``.
"""

"""What a method of the API is, which there are, and where its callers work.

Doors: ``callers``, ``method``, ``discover``.
"""

"""Extraction: find what is worth remembering in a conversation and write it as memories.

Doors: ``candidates``, ``service``.
Five times as long as planned: phrases of ten languages and the evidence of a model's memories are
most of it, and are still to shrink.
"""

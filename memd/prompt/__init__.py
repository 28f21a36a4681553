"""load_prompt: the memory section of a system prompt.

Doors: ``service``.
"""

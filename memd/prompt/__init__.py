"""Prompt: build the memory section of a system prompt (``load_prompt``).

Doors: ``service``.
"""

"""extract: what was worth remembering in a conversation.

Doors: ``candidates``, ``service``.
"""

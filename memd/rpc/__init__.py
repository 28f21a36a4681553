"""JSON-RPC 2.0 over one Unix socket: framing, conversation, dispatch, server.

Doors: ``connection``, ``listener``, ``server``.
"""

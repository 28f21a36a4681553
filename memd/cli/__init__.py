"""memctl: the command line, one more client of the socket.

Doors: ``arguments``, ``grammar``. Longer than planned: help, options and examples of each command
are rows of tables, set-up edits the files of fourteen clients, and the hook and the bridge of MCP
are here because they start without anything else.
"""

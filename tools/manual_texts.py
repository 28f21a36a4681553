"""What manual pages say beside the help texts of the programs."""

MEMCTL = """
files:
memctl keeps nothing of its own. memd(1) says where memories, settings and the history are.

environment:
MEMD_SOCKET, MEMD_STATE_DIR and MEMD_CONFIG say where things lie, as for memd(1). VISUAL and EDITOR
are for memctl edit. NO_COLOR switches colour off.

examples:
  memctl setup
      connect the assistants and editors that are here
  memctl add --name test-policy --type feedback \\
      --description "Integration tests hit a real database"
      write a memory
  memctl prefetch "may I mock the database?"
      what an assistant would be told
  memctl history
      what changed, with the id that memctl undo takes
  memctl doctor
      when something does not work
"""

MEMD = """
environment:
MEMD_SOCKET: the socket. Otherwise memd/memd.sock in XDG_RUNTIME_DIR, or run/memd.sock in the state
directory.

MEMD_STATE_DIR: the state directory. Otherwise memd in XDG_STATE_HOME (~/.local/state).

MEMD_CONFIG: the settings. Otherwise memd/memd.toml in XDG_CONFIG_HOME (~/.config).

MEMD_BASE_DIR: the folder of all memory directories. Otherwise that of Claude Code.

files:
~/.claude/projects/PROJECT/memory: the memories of a project, plain Markdown.

~/.config/memd/memd.toml: the settings, memd.toml(5); env beside it has variables for the daemon,
such as a key.

~/.local/state/memd/state.db: history, jobs, cursors and spending. Without it no memory is lost.

~/.local/state/memd/memd.log: the log of a daemon that a client started. As a service memd logs to
the journal.

~/.local/share/memd: the hook that clients run, and what the day has cost.

/etc/memd/memd.toml: the policy of whoever runs this machine. It wins over the user's settings.

signals:
SIGTERM and SIGINT end memd: it finishes what it is at first. SIGHUP does nothing: settings are read
when they are used.
"""

SETTINGS = """
description:
One TOML file per user: the one that MEMD_CONFIG names, otherwise memd/memd.toml in
XDG_CONFIG_HOME (~/.config). It must be the user's own and not writable by others.
/etc/memd/memd.toml is the policy of whoever runs this machine, and wins. A file .memd.toml in a
project may switch memory off and make messages stricter, and nothing else.

A change counts at the next use, without a restart. memctl doctor names an option that is wrong; its
default counts then. memctl config prints what differs from the defaults.

examples:
  [dream]
  auto = false

  [recall]
  limit = 3

The options follow, each with its default.
"""

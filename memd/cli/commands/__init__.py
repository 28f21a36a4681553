"""The functions of memctl's commands: each calls the daemon and prints the answer."""

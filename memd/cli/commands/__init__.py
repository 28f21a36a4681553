"""What each command of memctl does: ask the daemon, print its answer."""

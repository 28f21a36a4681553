"""A table of processes that a test fills: what the system would say of a number."""

import os

from memd.base.agents import SystemProcess


class ProcessTable(dict[int, SystemProcess]):
    """Processes by number, as the register's port finds them."""

    def run(self, pid: int, *, began: float = 100.0, parent: int = 1, uid: int = -1) -> int:
        """Let a process run, ours unless a user is named; return its number."""
        self[pid] = SystemProcess(pid, os.getuid() if uid < 0 else uid, began, parent, "agent")
        return pid

    def __call__(self, pid: int) -> SystemProcess | None:
        """Return a living process."""
        return self.get(pid)

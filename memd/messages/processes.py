"""Whose process is whose: by number, user and start, and by who started whom. Blocks."""

import os
from collections.abc import Callable, Iterator

from memd.core.agents import Agent, SystemProcess
from memd.core.errors import WrongParameterError

_SAME_SECONDS = 0.005  # half of what starts are counted in
_ANCESTORS = 32

FindProcess = Callable[[int], SystemProcess | None]


class NoSuchProcessError(WrongParameterError):
    """The process that an agent is said to be is not there, or not this user's."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"no process of yours has the number {pid}", pid=pid)


def is_same(agent: Agent, process: SystemProcess) -> bool:
    """Say whether a process is the one that an agent registered with."""
    same = abs(process.began - agent.began) < _SAME_SECONDS
    return process.pid == agent.pid and process.uid == os.getuid() and same


def runs(find: FindProcess, agent: Agent) -> bool:
    """Say whether the process that an agent registered with runs."""
    process = find(agent.pid) if agent.pid else None
    return process is not None and is_same(agent, process)


def is_anothers(find: FindProcess, agent: Agent, caller: int) -> bool:
    """Say whether an agent's process runs and is neither above nor below a caller's."""
    if not caller or not runs(find, agent):
        return False
    return are_strangers(find, agent.pid, caller)


def are_strangers(find: FindProcess, pid: int, other: int) -> bool:
    """Say whether neither of two processes is above the other."""
    above, below = ({each.pid for each in lineage(find, start)} for start in (other, pid))
    return pid not in above and other not in below


def lineage(find: FindProcess, pid: int) -> Iterator[SystemProcess]:
    """Yield a process and its ancestors, the nearest first."""
    for _ in range(_ANCESTORS):
        process = find(pid)
        if process is None:
            return
        yield process
        pid = process.parent

"""Compare processes with the processes of agents. Blocks.

A process is identified by its number (PID), user and start time. A process is above those that it
started, directly or through others.
"""

import os

from memd.base.agents import Agent, FindProcess, SystemProcess, lineage

_SAME_SECONDS = 0.005  # the system counts start times in 0.01 s


def is_same(agent: Agent, process: SystemProcess) -> bool:
    """Return whether a process is the one that an agent registered with."""
    same_start = abs(process.began - agent.began) < _SAME_SECONDS
    return process.pid == agent.pid and process.uid == os.getuid() and same_start


def runs(find: FindProcess, agent: Agent) -> bool:
    """Return whether the process that an agent registered with still runs."""
    process = find(agent.pid) if agent.pid else None
    return process is not None and is_same(agent, process)


def are_strangers(find: FindProcess, pid: int, other: int) -> bool:
    """Return whether neither of two processes, given by number, is above the other."""
    above_other = {process.pid for process in lineage(find, other)}
    above_pid = {process.pid for process in lineage(find, pid)}
    return pid not in above_other and other not in above_pid

"""What the machine says of its processes and of how busy it is."""

import os
import subprocess
import sys

import psutil

from memd.store import machine


def test_alive_is_a_process_older_than_its_lock() -> None:
    """A process lives when it runs and began before it could have written the lock."""
    started = psutil.Process().create_time()
    assert machine.alive(os.getpid(), started)
    assert not machine.alive(os.getpid(), started - 60)
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not machine.alive(child.pid, started + 1e6)  # a zombie holds nothing
    finally:
        child.wait()
    assert not machine.alive(child.pid, started + 1e6)

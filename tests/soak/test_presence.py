"""Real processes that die, stop, and whose numbers are given anew.

Linux gives a number anew when it is told which one it gave last; where only the administrator may
say so, the rounds go without.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memd.base.agents import AgentState
from memd.daemon.app import SCHEMAS
from memd.daemon.machine import process
from memd.messages.service import Register
from memd.messages.values import Registration
from memd.state.database import open_database
from memd.state.docs import Docs
from tests.soak.figures import FIGURE
from tests.support.clock import FakeClock

_LAST = "/proc/sys/kernel/ns_last_pid"
_WAIT = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
_TRIES = 20


@pytest.fixture
def register(tmp_path: Path) -> Iterator[Register]:
    """Return a register that looks at real processes."""
    database, clock = open_database(str(tmp_path / "state.db"), SCHEMAS), FakeClock()
    yield Register(Docs(database), process, clock.now, clock.monotonic)
    database.close()


def started() -> "subprocess.Popen[bytes]":
    """Start a process that waits for the end of its input."""
    return subprocess.Popen(_WAIT, stdin=subprocess.PIPE)


def ended(child: "subprocess.Popen[bytes]") -> None:
    """Kill a process and take its status."""
    child.kill()
    child.communicate()


def again(pid: int) -> "subprocess.Popen[bytes] | None":
    """Return another process with a number, ``None`` where the system does not give it."""
    for _ in range(_TRIES):
        with suppress(OSError):
            Path(_LAST).write_text(str(pid - 1))
        child = started()
        if child.pid == pid:
            return child
        ended(child)
    return None


def state(register: Register, name: str) -> AgentState:
    """Return whether an agent is there."""
    return register.state(register.resolve(name, "/p"))


@pytest.mark.parametrize("count", [1, pytest.param(200, marks=pytest.mark.soak)])
def test_nobody_is_there_in_another_s_place(
    register: Register, count: int, record_property: Callable[[str, object], None]
) -> None:
    """Killed, unburied and with its number given anew: an agent is never said to be there."""
    wrong = reused = 0
    for number in range(count):
        child = started()
        register.register(Registration("/p", "/m", f"a{number}", pid=child.pid))
        assert state(register, f"a{number}") is AgentState.LIVE
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and its number not free
        wrong += state(register, f"a{number}") is not AgentState.GONE
        child.communicate()
        wrong += state(register, f"a{number}") is not AgentState.GONE
        other = again(child.pid) if os.access(_LAST, os.W_OK) else None
        if other is not None:
            reused += 1
            wrong += state(register, f"a{number}") is not AgentState.GONE
            ended(other)
        register.end(register.resolve(f"a{number}", "/p").id)
    record_property(FIGURE, f"presence: {count} rounds, {reused} numbers given anew, {wrong} wrong")
    assert wrong == 0


def test_who_is_stopped_is_there(register: Register) -> None:
    """A process that was stopped has not gone, however long that lasts."""
    child = started()
    try:
        register.register(Registration("/p", "/m", "ann", pid=child.pid))
        os.kill(child.pid, signal.SIGSTOP)
        assert state(register, "ann") is AgentState.LIVE
        os.kill(child.pid, signal.SIGCONT)
    finally:
        ended(child)
    assert state(register, "ann") is AgentState.GONE

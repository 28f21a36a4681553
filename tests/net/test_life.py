"""The daemon lives on: pauses of its process, and background services that fail."""

import resource
import select
import signal
import sys
from pathlib import Path

import pytest

from tests.net.kit import Home, until

_LINE_SECONDS = 30.0  # between two looks at what sub-agents do
_STACK_BYTES = 64 * 1024 * 1024  # of each thread


@pytest.mark.full
def test_a_pause_of_the_process_ends_nothing(own: Home) -> None:
    """A daemon that is stopped while it looks at sub-agents, for longer than a round, goes on."""
    daemon = own.start().process
    assert daemon is not None
    with own.connect() as client:
        client.call("subscribe", topics=["agent.progress"])
        daemon.send_signal(signal.SIGSTOP)
        select.select([], [], [], _LINE_SECONDS + 2)
        daemon.send_signal(signal.SIGCONT)
        assert client.call("hello")["pid"] == daemon.pid
        for look in range(3):  # by then the next round has begun
            select.select([], [], [], 0.3)
            assert client.call("hello")["pid"] == daemon.pid, look
    assert own.stop() == 0
    assert "fault" not in own.log.read_text()


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process's memory")
def test_a_service_that_fails_ends_nothing(own: Home) -> None:
    """Without memory for threads services fail; they run again once there is, and memd serves."""
    stacks = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (_STACK_BYTES, stacks[1]))
    try:
        project = own.start(clock=True).project()
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, stacks)
    project.write("port.md", "The broker listens on port 9911.")
    assert own.process is not None
    pid, read_log = own.process.pid, own.log.read_text

    def fails() -> bool:
        """Let an hour pass, so that many services want a thread at once."""
        own.pass_time(hours=1)
        assert own.process is not None
        assert own.process.poll() is None, read_log()
        return '"service failed"' in read_log()

    with own.connect() as client:
        limits = resource.prlimit(
            pid, resource.RLIMIT_AS, (_size(pid) + _STACK_BYTES // 2, resource.RLIM_INFINITY)
        )
        for _ in range(30):
            client.ask("status")
        try:
            until(fails, "a service fails")
        except AssertionError:
            pytest.skip("every service had its thread already")
        resource.prlimit(pid, resource.RLIMIT_AS, limits)
    read = project.call("memory.read", path="port.md")
    assert "port 9911" in read["content"]

    def all_run() -> bool:
        own.pass_time(seconds=301)  # the longest pause before a service is started again
        return all(check["name"] != "services" for check in own.call("status")["health"])

    until(all_run, "all services run again")
    assert own.stop() == 0


def _size(pid: int) -> int:
    """Return the bytes of a process's memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmSize:")[2].split()[0]) * 1024

"""Telling the supervisor."""

import os
import socket
from pathlib import Path

import pytest

from memd.daemon.notify import READY, STOPPING, WATCHDOG, notify, watchdog_seconds


@pytest.mark.parametrize("abstract", [False, True])
def test_states_reach_the_supervisor(tmp_path: Path, *, abstract: bool) -> None:
    """One datagram with a state per line, to a path or to an abstract name."""
    if abstract and not os.path.isdir("/proc"):
        pytest.skip("abstract sockets are Linux's")
    name = f"@memd-test-{os.getpid()}" if abstract else os.path.relpath(tmp_path / "notify")
    address = "\0" + name[1:] if abstract else name
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        if abstract:
            supervisor.bind(address)
        else:
            supervisor.bind(address)
            name = str(tmp_path / "notify")
        assert notify({"NOTIFY_SOCKET": name}, READY, WATCHDOG)
        assert supervisor.recv(1000) == b"READY=1\nWATCHDOG=1"
        assert notify({"NOTIFY_SOCKET": name}, STOPPING)
        assert notify({"NOTIFY_SOCKET": name}, WATCHDOG)


@pytest.mark.parametrize("value", [None, "", "relative", "/nonexistent/notify", "@" + "x" * 200])
def test_without_a_supervisor_nothing_fails(value: str | None) -> None:
    """No socket, a wrong one, or one that does not listen: the answer is no."""
    environ = {} if value is None else {"NOTIFY_SOCKET": value}
    assert notify(environ, READY) is False


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_per_term(environ: dict[str, str], seconds: float | None) -> None:
    """Half the time that systemd allows this process; none where it asks for none."""
    assert watchdog_seconds(environ, 7) == seconds

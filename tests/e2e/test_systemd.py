"""memd as the service of a user's own systemd, which is a real one (``user_manager.sh``)."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.cli import service_unit
from tests.e2e.programs import INSTALLED
from tests.e2e.systemd import UserManager, user_manager
from tests.soak.figures import FIGURE

pytestmark = pytest.mark.e2e
Record = Callable[[str, object], None]
ROUNDS = int(os.environ.get("ROUNDS", "20"))  # of restarts under load
RESTARTS = Path(__file__).with_name("scripts") / "restarts.py"
WATCHDOG_SECONDS = 30.0
# What connects, sends its input, ends its side and prints what comes: as `nc -U -N` does.
CONNECT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect(sys.argv[1])
    peer.sendall(sys.stdin.buffer.read())
    peer.shutdown(socket.SHUT_WR)
    sys.stdout.write(peer.makefile().read())
"""
# What keeps a file open for writing until its input ends: a change of it is waited for.
HOLD = """
import sys
with open(sys.argv[1], "r+"):
    print("open", flush=True)
    sys.stdin.read()
"""
# A module that Python loads at its start: a signal blocks the thread of the event loop.
BLOCKING = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: signal.pause())\n"
# Options that a user's unit of systemd 252 cannot have, or has without an effect.
LEFT_OUT = (
    "PrivateDevices=yes",
    "ProtectClock=yes",
    "ProtectKernelLogs=yes",
    "CapabilityBoundingSet=",
    "DynamicUser=yes",
    "ProtectSystem=strict",
    "PrivateTmp=yes",
)


@pytest.fixture(name="manager")
def _manager() -> Iterator[UserManager]:
    with tempfile.TemporaryDirectory(prefix="memd-") as folder, user_manager(Path(folder)) as made:
        yield made


@pytest.fixture(name="service")
def _service(manager: UserManager) -> UserManager:
    """Install memd as its user does."""
    assert manager.memctl("service", "install").endswith("memd runs as a service\n")
    return manager


def ask(manager: UserManager, method: str, **params: Any) -> Any:
    """Return what memd answers a program that knows nothing of it."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    netcat = str(INSTALLED / "bin" / "nc")
    command = (netcat, "-U", "-N") if os.path.exists(netcat) else (sys.executable, "-c", CONNECT)
    answer = json.loads(manager.run(*command, manager.socket, given=json.dumps(request) + "\n"))
    return answer["result"]


def test_the_first_client_starts_it(service: UserManager, record_property: Record) -> None:
    """The socket is there before the daemon and nobody else's; a first connection starts it."""
    service.systemctl("stop", "memd.service")
    assert service.show("ActiveState") == "inactive"
    begun = time.monotonic()
    pid = ask(service, "hello")["pid"]
    record_property(FIGURE, f"socket activation: {time.monotonic() - begun:.2f} s to the answer")
    assert (service.show("ActiveState"), service.show("MainPID")) == ("active", str(pid))
    modes = service.run("stat", "-c", "%a %U", service.socket, os.path.dirname(service.socket))
    assert modes.split() == ["600", modes.split()[1], "700", modes.split()[1]]
    assert "runs memd" in service.memctl("service", "status")
    assert service.ended(sys.executable, "-m", "memd").stderr.startswith("memd: memd ")


def _stopped(service: UserManager) -> None:
    service.run("kill", "-STOP", service.show("MainPID"))


def _loop_blocked(service: UserManager) -> None:
    """Block the thread of the event loop, by a module of the test; all other threads go on."""
    folder = service.home / "blocking"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BLOCKING)
    service.unit("memd.service.d/test.conf", f"[Service]\nEnvironment=PYTHONPATH={folder}\n")
    service.systemctl("restart", "memd.service")
    service.run("kill", "-USR1", service.show("MainPID"))


@pytest.mark.parametrize("freeze", [_stopped, _loop_blocked])
def test_a_frozen_loop_is_started_anew(
    service: UserManager, record_property: Record, freeze: Callable[[UserManager], None]
) -> None:
    """What is stopped, or alive with a loop that hangs, is killed by the watchdog and is back."""
    assert service.show("WatchdogUSec") == f"{WATCHDOG_SECONDS:g}s"
    assert service.show("WatchdogTimestampMonotonic") not in {"0", ""}
    freeze(service)
    pid = service.show("MainPID")
    seconds = service.until("NRestarts", "1", seconds=2 * WATCHDOG_SECONDS)
    assert ask(service, "hello")["pid"] != int(pid)
    assert service.show("NRestarts") == "1"
    record_property(FIGURE, f"watchdog, {freeze.__name__}: restarted after {seconds:.1f} s")


def test_a_killed_daemon_is_started_anew(service: UserManager, record_property: Record) -> None:
    """A client that comes right after ``kill -9`` waits in the socket and is answered."""
    pid = service.show("MainPID")
    begun = time.monotonic()
    service.run("kill", "-KILL", pid)
    assert ask(service, "hello")["pid"] != int(pid)
    record_property(FIGURE, f"kill -9: answered after {time.monotonic() - begun:.2f} s")
    assert service.show("NRestarts") == "1"


def test_a_stop_answers_and_keeps(service: UserManager) -> None:
    """What is under way is answered, an accepted job waits for the next start and is done then."""
    cwd = str(service.home)
    note = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "one"}
    ask(service, "memory.write", cwd=cwd, **note)
    folder = ask(service, "memory.list", cwd=cwd)["memory_dir"]
    ask(service, "pause")
    said = [{"role": "user", "content": "Remember: always run the tests on a real database."}]
    job = ask(service, "extract", cwd=cwd, session_id="s", messages=said)["job"]
    holder = subprocess.Popen(
        service.command(sys.executable, "-c", HOLD, f"{folder}/a.md"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"open\n"
    answers: list[Any] = []
    text = {**note, "body": "two"}
    writing = threading.Thread(
        target=lambda: answers.append(ask(service, "memory.write", cwd=cwd, **text))
    )
    writing.start()
    while ask(service, "status")["connections"] < 2:  # the write and this one
        pass
    service.systemctl("stop", "memd.service")
    writing.join()
    holder.communicate()
    assert service.show("Result") == "success"
    assert answers[0]["change"]
    assert ask(service, "memory.read", cwd=cwd, path="a.md")["content"].endswith("two\n")
    assert ask(service, "job.list", job=job)["jobs"][0]["state"] == "queued"
    ask(service, "resume")
    assert ask(service, "job.wait", job=job)["state"] == "completed"


def test_no_restart_loses_a_request(service: UserManager, record_property: Record) -> None:
    """Restarts in the process and by the service manager, in turns, under load."""
    done = service.run(sys.executable, str(RESTARTS), str(ROUNDS), seconds=3600.0)
    result = json.loads(done)
    record_property(FIGURE, f"systemd --user, {ROUNDS} restarts under load: {result['figures']}")
    assert result["wrong"] == []
    assert service.show("NRestarts") == "0"


def test_nothing_is_left_behind(service: UserManager) -> None:
    """After the removal there is no unit, process, socket or directory; memories stay."""
    note = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "one"}
    ask(service, "memory.write", cwd=str(service.home), **note)
    folder = ask(service, "memory.list", cwd=str(service.home))["memory_dir"]
    assert service.processes() != []
    service.memctl("service", "uninstall")
    assert service.processes() == []
    assert not service.ended("ls", os.path.dirname(service.socket)).stdout
    assert service.ended("ls", os.path.dirname(service.socket)).returncode
    units = service.systemctl("list-units", "--all", "--no-legend", "memd*")
    assert units == ""
    assert not list(Path(service.home).glob(".config/systemd/user/**/*memd*"))
    assert Path(folder, "a.md").exists()


def test_the_units_are_sound_and_locked_down(service: UserManager, record_property: Record) -> None:
    """The service manager finds no fault, and the process has the limits that they ask for."""
    units = [str(path) for path in Path(service.home).glob(".config/systemd/user/memd.*")]
    verified = service.ended("systemd-analyze", "--user", "verify", *units)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    status = service.run("cat", f"/proc/{service.show('MainPID')}/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines())
    assert (facts["NoNewPrivs"], facts["Seccomp"], facts["Umask"]) == ("1", "2", "0077")
    unit = next(path for path in units if path.endswith(".service"))
    score = service.run("systemd-analyze", "--user", "security", "--offline=true", unit)
    record_property(FIGURE, score.strip().splitlines()[-1].strip(" →"))


def test_what_is_left_out_would_not_work(manager: UserManager, record_property: Record) -> None:
    """Of each option that the unit does not have, this service manager shows why."""
    template = Path(service_unit.UNITS, "memd.service").read_text()
    assert _effect(manager, "Nice=1") == "no effect"  # what a unit without any of them does
    results = {option: _effect(manager, option) for option in LEFT_OUT}
    record_property(FIGURE, ", ".join(f"{name}: {words}" for name, words in results.items()))
    assert not [name for name in LEFT_OUT if f"\n{name.partition('=')[0]}=" in template]
    assert {results["CapabilityBoundingSet="], results["DynamicUser=yes"]} == {"does not start"}


def _effect(manager: UserManager, option: str) -> str:
    """Return what an option does to a unit that writes a file outside of the home."""
    probe = f"/var/tmp/memd-e2e-{os.getpid()}"
    command = f"[Service]\nType=oneshot\nExecStart=touch {probe}\n{option}\n"
    manager.unit("probe.service", command)
    started = manager.ended("systemctl", "--user", "start", "probe.service")
    written = manager.ended("ls", probe, root=True).returncode == 0
    manager.ended("rm", "-f", probe, root=True)
    manager.ended("systemctl", "--user", "reset-failed", "probe.service")
    if started.returncode:
        return "does not start"
    return "no effect" if written else "works"

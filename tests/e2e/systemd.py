"""A user's own systemd, in namespaces of its own, and commands that are run in it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.programs import INSTALLED, ROOT, ProgramFailedError
from tests.support.daemon import memctl_command

UID = 12345
SECONDS = 120.0
SCRIPT = Path(__file__).with_name("user_manager.sh")
_GROUPS = Path("/sys/fs/cgroup")
_RUNTIME = f"/run/user/{UID}"
_PLACES = ("/lib/systemd/systemd", "/usr/lib/systemd/systemd")
_BECOME = ("setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups")
_PAUSE = 0.05


class UserManager:
    """A running ``systemd --user``; ``home`` is its user's, ``socket`` where memd listens."""

    socket = f"{_RUNTIME}/memd/memd.sock"

    def __init__(self, home: Path, pid: int) -> None:
        self.home = home
        self._pid = pid

    def run(self, *command: str, given: str = "", seconds: float = SECONDS) -> str:
        """Return what a command of the user prints. Raises ProgramFailedError."""
        done = self.ended(*command, given=given, seconds=seconds)
        if done.returncode:
            raise ProgramFailedError(command, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def ended(
        self, *command: str, given: str = "", seconds: float = SECONDS, root: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the user, or as ``root``, to its end."""
        return subprocess.run(
            self.command(*command, root=root),
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def command(self, *command: str, root: bool = False) -> list[str]:
        """Return what runs a command in here, as the user with a shell's variables."""
        enter = ["nsenter", "-t", str(self._pid), "--mount", "--pid", "--cgroup", "--"]
        if root:
            return [*enter, *command]
        path = f"{INSTALLED}/bin:/usr/local/bin:/usr/bin:/bin"
        variables = (f"HOME={self.home}", f"XDG_RUNTIME_DIR={_RUNTIME}", f"PATH={path}")
        return [*enter, *_BECOME, "env", "-i", "-C", "/", *variables, *command]

    def systemctl(self, *words: str) -> str:
        """Run ``systemctl --user``. Raises ProgramFailedError."""
        return self.run(_tool("systemctl"), "--user", *words)

    def memctl(self, *words: str) -> str:
        """Run memctl of this checkout. Raises ProgramFailedError."""
        return self.run(*memctl_command(*words))

    def unit(self, name: str, content: str) -> None:
        """Write a unit of the user, or a part of one, and have it read."""
        path = self.home / ".config" / "systemd" / "user" / name
        self.run("mkdir", "-p", str(path.parent))
        path.write_text(content)
        self.systemctl("daemon-reload")

    def show(self, name: str) -> str:
        """Return a property of memd.service."""
        return self.systemctl("show", "memd.service", "--value", "-p", name).strip()

    def until(self, name: str, *values: str, seconds: float = SECONDS) -> float:
        """Wait until a property of memd.service has one of some values; return the seconds."""
        begun = time.monotonic()
        while (now := self.show(name)) not in values:
            waited = time.monotonic() - begun
            assert waited < seconds, f"{name} is {now} after {seconds:g} s"
            time.sleep(_PAUSE)
        return time.monotonic() - begun

    def processes(self) -> list[str]:
        """Return the command lines of memd that run in here."""
        below = psutil.Process(self._pid).children(recursive=True)
        lines = [" ".join(each.cmdline()) for each in below]
        return [line for line in lines if "memd" in line and "serve" in line]


def why_not() -> str:
    """Return why no systemd of its own can be run here, "" where it can."""
    if sys.platform != "linux":
        return "systemd is Linux's"
    lacking = [name for name in ("unshare", "nsenter", "setpriv") if not shutil.which(name)]
    if lacking:
        return f"{', '.join(lacking)} are not installed"
    if subprocess.run([*_BECOME, "true"], capture_output=True, check=False).returncode:
        return "only root may make control groups and become another user"
    if not _manager():
        return "there is no systemd, and tests/e2e/install.sh could not bring it"
    return ""


@contextmanager
def user_manager(home: Path) -> Iterator[UserManager]:
    """Run a user's systemd until the end of the block; nothing of it is left. May skip the test."""
    if problem := why_not():
        pytest.skip(problem)
    os.chown(home, UID, UID)
    name = f"memd-e2e-{os.getpid()}-{time.monotonic_ns()}"
    needed = [sys.base_prefix, str(ROOT), str(home)]
    needed += [str(INSTALLED)] if INSTALLED.exists() else []
    command = [str(SCRIPT), name, str(UID), str(home), _RUNTIME, _manager(), *needed]
    with open(home / "systemd.log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        manager = _started(process, home)
        yield manager
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        _remove_groups(name)


def _started(process: "subprocess.Popen[bytes]", home: Path) -> UserManager:
    """Return the manager once it answers; skip where the namespaces cannot be made."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        if children := psutil.Process(process.pid).children():
            manager = UserManager(home, children[0].pid)
            done = manager.ended(_tool("systemctl"), "--user", "is-system-running")
            if done.stdout.strip() in {"running", "degraded"}:
                return manager
        time.sleep(_PAUSE)
    words = (home / "systemd.log").read_text(errors="replace")
    pytest.skip(f"no systemd --user can be run here: {words.strip()[-500:]}")


def _manager() -> str:
    """Return the program ``systemd``: this machine's, or the one that install.sh brought."""
    brought = INSTALLED / "bin" / "systemd"
    there = [place for place in _PLACES if os.path.exists(place)]
    return there[0] if there else str(brought) if brought.exists() else ""


def _tool(name: str) -> str:
    return shutil.which(name) or str(INSTALLED / "bin" / name)


def _remove_groups(name: str) -> None:
    until = time.monotonic() + SECONDS
    kinds: Sequence[str] = (".",) if (_GROUPS / "cgroup.controllers").exists() else ()
    for kind in kinds or ("unified", "systemd"):
        top = _GROUPS / kind / name
        while top.exists() and time.monotonic() < until:
            for folder, _, _ in os.walk(top, topdown=False):
                with suppress(OSError):  # a process in it is still going
                    os.rmdir(folder)
            time.sleep(_PAUSE)

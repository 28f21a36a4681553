"""Find the daemon, and start it when none runs.

Rules of this file
- The supervisor is asked first (systemd's socket unit, launchd's agent). Only where it does not
  know memd a process is spawned.
- A lock in the state directory lets one client start it; the others wait for the socket. If two
  start one anyway, the daemon's own lock lets one serve, and the other ends with status 0.
- A spawned daemon is detached from the client's terminal: new session, no input, output to the log.
- No process is ever killed. An error says what was tried and where the log is.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from memd.base.errors import MemdError
from memd.base.places import CONFIG, SOCKET, STATE_DIR, Places, find, for_daemon
from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.client.peer import check_socket

if TYPE_CHECKING:
    import subprocess

    from memd.client.aio import AsyncClient as AsyncClient

__all__ = [
    "Client",
    "check_socket",
    "connect",
    "last_words",
    "main",
    "wait_until_gone",
]

# -P: a folder memd in the working directory must not be taken for the program.
SERVE = (sys.executable, "-P", "-m", "memd", "serve")
CHECK = (*SERVE[:-1], "check")
LAUNCHD_LABEL = "dev.memd.memd"
_PAUSE_SECONDS = 0.01  # between two attempts to connect, or two looks at a file
_LOCK_BYTES = 4096  # read of the instance lock's file
_LAST_LINE_BYTES = 4096  # read from the end of the log
_LOG_BYTES = 4 * 1024 * 1024  # a larger log is renamed to memd.log.1, which is replaced
_SUPERVISOR_SECONDS = 5.0  # limit for a command of the supervisor
_CHECK_SECONDS = 60.0  # limit for ``memd check``
# Process ids of the daemons that this process started; those that ended are reaped when it starts
# another one.
_started_pids: set[int] = set()
_MESSAGE_PREFIX = "memd: "  # begins the daemon's last message; the other lines of the log are JSON
_NOT_STARTED = "nothing listens there, and starting was not asked for"


def connect(
    places: Places,
    environ: Mapping[str, str],
    *,
    name: str,
    version: str = "",
    start: bool = True,
    deadline: float = 10.0,
    command: Sequence[str] = SERVE,
) -> Client:
    """Return a connected client, after starting a daemon if none runs and ``start`` is true.

    ``deadline`` is in seconds from now; ``command`` starts a daemon. It gets the socket, state
    directory and settings of ``places``. Raises DaemonUnavailableError, which says what was tried
    and where the log is.
    """
    until = time.monotonic() + deadline
    starter = Starter(places, environ, command)
    with starter:
        while True:
            try:
                return _connect(places, name, version, environ)
            except DaemonUnavailableError as error:
                if not start:
                    raise DaemonUnavailableError(places.socket, _NOT_STARTED) from error
                failure = starter.step()
                if failure or time.monotonic() >= until:
                    cause = failure or f"{starter.tried}, no answer in {deadline:g} s"
                    raise DaemonUnavailableError(places.socket, cause, places.log) from error
            time.sleep(_PAUSE_SECONDS)


def asynchronous(
    socket_path: str, environ: Mapping[str, str], *, name: str, version: str = ""
) -> "AsyncClient":
    """Return an asynchronous client for a running daemon; entering it connects."""
    from memd.client.aio import AsyncClient  # noqa: PLC0415 - memctl starts without anyio

    return AsyncClient(socket_path, name=name, version=version, environment=environ)


def main() -> None:
    """Start a daemon for a hook, which does not wait; the start lock is held until it is up.

    Then the file ``hook-start`` is removed, which tells hooks that a start is running or failed.
    """
    # The cause of a failure is in the daemon's log.
    with suppress(MemdError, FileNotFoundError):
        places = find(os.environ, os.path.expanduser("~"))
        connect(places, os.environ, name="hook").close()
        os.unlink(f"{places.state_dir}/hook-start")


def _connect(places: Places, name: str, version: str, environ: Mapping[str, str]) -> Client:
    """Return a client of the daemon at the usual socket, or at the one its lock file names.

    A daemon that was started with another XDG_RUNTIME_DIR (from cron, su or ssh) listens at
    another path. Raises DaemonUnavailableError.
    """
    try:
        return Client(places.socket, name=name, version=version, environment=environ)
    except DaemonUnavailableError:
        other_path = serving_socket(places)
        if other_path in {"", places.socket}:
            raise
        return Client(other_path, name=name, version=version, environment=environ)


def serving_socket(places: Places) -> str:
    """Return the socket path in the lock file of the running daemon, "" if none runs."""
    path = _lock_facts(places).get("socket")
    return path if isinstance(path, str) else ""


def wait_until_gone(places: Places, pid: int, deadline: float = 5.0) -> None:
    """Wait until the daemon ``pid`` has released the instance lock, or for ``deadline`` seconds.

    A daemon empties its lock file as its last action.
    """
    until = time.monotonic() + deadline
    while _lock_facts(places).get("pid") == pid and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)


def _lock_facts(places: Places) -> dict[str, Any]:
    """Return the JSON object in the instance lock's file, an empty dict without a valid one."""
    try:
        descriptor = os.open(
            places.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        )
    except OSError:
        return {}
    with open(descriptor, "rb") as file:
        try:
            facts = json.loads(file.read(_LOCK_BYTES) or b"{}")
        except (OSError, ValueError, RecursionError):
            return {}
    return facts if isinstance(facts, dict) else {}


def last_words(places: Places, wait_seconds: float = 0.0) -> str:
    """Return the last message of a daemon that ended, "" where its log ends with another line.

    A daemon that is just ending may not have written it yet, so it is waited for ``wait_seconds``.
    """
    until = time.monotonic() + wait_seconds
    while True:
        line = _last_line(places.log)
        if line.startswith(_MESSAGE_PREFIX):
            return line.removeprefix(_MESSAGE_PREFIX)
        if time.monotonic() >= until:
            return ""
        time.sleep(_PAUSE_SECONDS)


def _last_line(path: str) -> str:
    """Return the last line of a log file, "" if it cannot be read."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(os.open(path, flags), "rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - _LAST_LINE_BYTES, 0))
            text = log.read(_LAST_LINE_BYTES).decode(errors="replace")
    except OSError:
        return ""
    return text.rstrip().rpartition("\n")[2]


class Starter:
    """Starts the daemon once, if this client gets the start lock."""

    def __init__(
        self, places: Places, environ: Mapping[str, str], command: Sequence[str] = SERVE
    ) -> None:
        self._places = places
        self._environ = environ
        self._command = command  # starts a daemon where the supervisor does not
        self._lock = -1  # the descriptor of the start lock, -1 while another client has it
        self._child: subprocess.Popen[bytes] | None = None  # the daemon, if it was spawned here
        self._has_started = False  # by the supervisor or as ``_child``
        self.tried = "waited for another client that starts it"  # words for an error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:
            os.close(self._lock)
        if self._child is not None and self._child.poll() is None:
            _started_pids.add(self._child.pid)
            self._child.returncode = 0  # Popen would warn at the end that it is still running

    def step(self) -> str:
        """Take the start lock and start a daemon, as far as not done yet; then check the daemon.

        Returns "" while the caller should go on connecting, else why there will be no daemon.
        """
        try:
            if self._lock < 0 and not self.take_lock():
                return ""
            if not self._has_started:
                self._start()
        except OSError as error:
            return f"starting it failed: {error}"
        status = None if self._child is None else self._child.poll()
        # Status 0 means that another daemon serves: go on connecting.
        if not status:
            return ""
        sentence = f"the memd that was started ended with status {status}"
        words = last_words(self._places)
        return f"{sentence}: {words}" if words else sentence

    def take_lock(self) -> bool:
        """Take the start lock if no other client has it; return whether it is taken.

        Until it is left no other client starts a daemon. Raises OSError.
        """
        old_mask = os.umask(0o077)  # makedirs gives its mode to the last directory alone
        try:
            os.makedirs(self._places.state_dir, mode=0o700, exist_ok=True)
        finally:
            os.umask(old_mask)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(f"{self._places.state_dir}/start.lock", flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def _start(self) -> None:
        """Ask the supervisor for a daemon, else spawn one. Raises OSError."""
        for command in supervisor(self._environ, self._places.home, sys.platform):
            if not failure_of_command(command, self._environ, _SUPERVISOR_SECONDS):
                self.tried = f"asked the supervisor ({' '.join(command)})"
                self._has_started = True
                return
        self.tried = "started one"
        self._has_started = True
        with suppress(OSError):  # there is no log yet, or it cannot be renamed and grows further
            if os.lstat(self._places.log).st_size > _LOG_BYTES:
                os.replace(self._places.log, f"{self._places.log}.1")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        log = os.open(self._places.log, flags, 0o600)
        try:
            import subprocess  # noqa: PLC0415 - memctl starts without, and mostly a daemon runs

            _reap_ended()
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env=daemon_environ(self._places, self._environ),
            )
        finally:
            os.close(log)


def daemon_environ(places: Places, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a client starts a daemon of these places."""
    paths = {SOCKET: places.socket, STATE_DIR: places.state_dir, CONFIG: places.config}
    return for_daemon(environ) | paths


def reason_against_start(places: Places, environ: Mapping[str, str]) -> str:
    """Run ``memd check`` of this Python; return why memd could not serve, "" if it could."""
    words = failure_of_command(CHECK, daemon_environ(places, environ), _CHECK_SECONDS, cwd="/")
    last_line = words.rpartition("\n")[2]
    return last_line.removeprefix(_MESSAGE_PREFIX)


def failure_of_command(
    command: Sequence[str], environ: Mapping[str, str], seconds: float, cwd: str | None = None
) -> str:
    """Run a program for at most ``seconds``; return why it failed, "" if it succeeded.

    The reason is what the program wrote to standard error, else to standard output.
    """
    import subprocess  # noqa: PLC0415 - as in Starter

    try:
        process = subprocess.run(
            command,
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if process.returncode == 0:
        return ""
    return process.stderr.strip() or process.stdout.strip() or f"status {process.returncode}"


def supervisor(environ: Mapping[str, str], home: str, platform: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands, none or one, that ask this system's supervisor to start memd.

    There is none where the supervisor does not know memd, or where the environment sets paths of
    its own (``MEMD_SOCKET`` and the like), which the supervisor's daemon would not use.
    """
    if any(environ.get(name) for name in (SOCKET, STATE_DIR, CONFIG)):
        return ()
    import shutil  # noqa: PLC0415 - as in Starter

    search = environ.get("PATH", os.defpath)
    if platform == "darwin":
        program = shutil.which("launchctl", path=search)
        plist = f"{home}/Library/LaunchAgents/{LAUNCHD_LABEL}.plist"
        service = f"gui/{os.getuid()}/{LAUNCHD_LABEL}"
        if program is None or not os.path.exists(plist):
            return ()
        return ((program, "kickstart", service),)
    program = shutil.which("systemctl", path=search)
    config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    folders = (f"{config}/systemd/user", "/etc/systemd/user", "/usr/lib/systemd/user")
    if program is None or not any(os.path.exists(f"{folder}/memd.socket") for folder in folders):
        return ()
    return ((program, "--user", "start", "memd.socket"),)


def _reap_ended() -> None:
    """Reap those daemons of this process that have ended."""
    for pid in tuple(_started_pids):
        with suppress(ChildProcessError):  # somebody else has reaped it
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue  # it still runs
        _started_pids.discard(pid)

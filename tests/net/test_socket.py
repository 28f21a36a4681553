"""The socket's place, its modes, its one daemon, and who is answered on it."""

import os
import re
import signal
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import PYTHON, Home, Project
from tests.net.socket_bytes import raw
from tests.net.wire import BIN

MEMD = f"{BIN}/memd"
# Waits behind a socket of its own (its path is given), perhaps as another user; says what it got.
LISTENER = """
import os, socket, sys
path, user = sys.argv[1], int(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
os.umask(0o177)
listener.bind(path)
if user: os.seteuid(user)
listener.listen()
print("ready", flush=True)
sys.stdin.read()
listener.settimeout(0)
try:
    with listener.accept()[0] as connection:
        print("got", len(connection.recv(1000)))
except BlockingIOError:
    print("nobody came")
"""
CONNECT = """
import os, socket, sys
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
connection = socket.socket(socket.AF_UNIX)
connection.settimeout(60)
connection.connect(sys.argv[1])
try:
    connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello"}\\n')
    print(connection.recv(1000))
except OSError:
    print(b"")
"""


def test_the_socket_is_private(home: Home) -> None:
    """The socket has mode 0600 in a directory of mode 0700."""
    assert stat.S_IMODE(os.stat(home.socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(home.socket)).st_mode) == 0o700


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"MEMD_SOCKET": "{}/own.sock"}, "own.sock"),
        ({"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": "{}/t"}, "t/memd/run/memd.sock"),
    ],
)
def test_config_prints_the_sockets_path(home: Home, variables: dict[str, str], place: str) -> None:
    """The path follows from MEMD_SOCKET, the runtime directory or the state directory."""
    environ = {name: value.format(home.path) for name, value in variables.items()}
    done = home.memctl("config", environ=environ)
    assert f"{home.path}/{place}" in done.stdout


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": "{}/t"}, "t/memd/run/memd.sock"),
        ({"MEMD_SOCKET": "{}/q/own.sock", "MEMD_STATE_DIR": "{}/s"}, "q/own.sock"),
    ],
)
@pytest.mark.full
def test_the_daemon_listens_where_the_environment_says(
    own: Home, variables: dict[str, str], place: str
) -> None:
    """MEMD_SOCKET comes first; without a runtime directory the state directory has the socket."""
    environ = {name: value.format(own.path) for name, value in variables.items()}
    (own.path / "q").mkdir(mode=0o700)
    own.socket = f"{own.path}/{place}"
    assert own.start(environ=environ).call("status")["socket"] == own.socket


@pytest.mark.parametrize("program", ["memd", "memctl"])
def test_a_path_that_is_too_long_is_named_with_a_shorter_choice(home: Home, program: str) -> None:
    """A path of more than 107 bytes is an error that says what to set."""
    command = [f"{BIN}/{program}", "serve" if program == "memd" else "status"]
    done = home.run(*command, environ={"MEMD_SOCKET": f"{home.path}/{'x' * 120}"})
    assert done.returncode == 78
    assert "MEMD_SOCKET" in done.stderr
    assert "short" in done.stderr


def test_a_second_daemon_says_which_one_serves(home: Home) -> None:
    """A second daemon ends with 0, names the process, and leaves the socket in its place."""
    before = os.stat(home.socket).st_ino
    done = home.run(MEMD, "serve")
    assert done.returncode == 0
    assert str(home.call("hello")["pid"]) in done.stderr
    assert os.stat(home.socket).st_ino == before


@pytest.mark.full
def test_of_many_daemons_that_start_at_once_one_serves(own: Home) -> None:
    """Of eight daemons seven end with 0, and the one that stays is asked."""
    starts = [
        subprocess.Popen([MEMD, "serve"], env=own.environ, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    try:
        own.start()  # an eighth, perhaps, which then ends
    except AssertionError:
        own.process = None
    serving = own.call("hello")["pid"]
    ended = [each for each in starts if each.pid != serving]
    assert [each.wait(60) for each in ended] == [0] * len(ended)
    assert len(ended) >= 7
    for each in starts:
        if each.pid == serving:
            each.terminate()
        each.communicate(timeout=60)


@pytest.mark.full
def test_a_stale_socket_is_replaced(own: Home) -> None:
    """After a kill the socket file is left, and the next daemon listens in its place."""
    own.start().stop(signal.SIGKILL)
    assert stat.S_ISSOCK(os.stat(own.socket).st_mode)
    assert own.start().call("hello")["name"] == "memd"


def test_what_is_no_socket_stays(home: Home) -> None:
    """A file in the socket's place is neither replaced nor removed."""
    place = home.path / "taken"
    place.mkdir(mode=0o700)
    (place / "file").write_text("of somebody")
    environ = {"MEMD_SOCKET": str(place / "file"), "MEMD_STATE_DIR": str(place / "state")}
    assert home.run(MEMD, "serve", environ=environ).returncode == 78
    assert (place / "file").read_text() == "of somebody"


def test_a_directory_that_others_may_use_is_refused(home: Home) -> None:
    """The daemon does not listen in a directory that others may read or write."""
    place = home.path / "wide"
    place.mkdir()
    place.chmod(0o755)
    environ = {"MEMD_SOCKET": str(place / "s"), "MEMD_STATE_DIR": str(home.path / "state")}
    assert home.run(MEMD, "serve", environ=environ).returncode == 78
    assert not (place / "s").exists()
    assert stat.S_IMODE(place.stat().st_mode) == 0o755


def _connected_by_another_user(home: Home) -> "subprocess.CompletedProcess[str]":
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    return home.run(PYTHON, "-c", CONNECT, home.socket, cwd="/")


def test_another_user_gets_no_byte(home: Home) -> None:
    """A process of another user is closed without an answer, even where the modes let it in."""
    opened = [Path(home.socket).parents[1], Path(home.socket).parent, Path(home.socket)]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in opened]
    try:
        for path in opened:
            path.chmod(0o777)
        done = _connected_by_another_user(home)
    finally:
        for path, mode in zip(opened, modes, strict=True):
            path.chmod(mode)
    assert (done.stdout, done.returncode) == ("b''\n", 0), done.stderr


def test_another_user_cannot_reach_the_socket(home: Home) -> None:
    """The modes already keep another user out."""
    done = _connected_by_another_user(home)
    assert "PermissionError" in done.stderr


@pytest.mark.parametrize("fault", ["directory", "socket", "listener"])
def test_a_client_sends_nothing_to_a_doubtful_socket(home: Home, fault: str) -> None:
    """Owner and modes of directory and socket and the listener's user are checked first."""
    if fault == "listener" and os.getuid() != 0:
        pytest.skip("only root can become another user")
    place = home.path / f"doubtful-{fault}"
    place.mkdir(mode=0o700)
    path = place / "s"
    user = "65534" if fault == "listener" else "0"
    command = [PYTHON, "-c", LISTENER, str(path), user]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
        if fault == "directory":
            place.chmod(0o777)
        if fault == "socket":
            path.chmod(0o666)
        done = home.memctl("status", environ={"MEMD_SOCKET": str(path)})
        seen = listener.communicate(timeout=60)[0]
    assert done.returncode == 78, done.stderr
    assert seen in ("nobody came\n", "got 0\n")


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="/proc tells what listens")
def test_nothing_but_the_socket_listens(home: Home) -> None:
    """The daemon listens on no TCP port and has no UDP socket."""
    pid = home.call("hello")["pid"]
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
    held = {match[1] for link in links if (match := re.fullmatch(r"socket:\[(\d+)\]", link))}
    listening, unconnected = "0A", "07"  # the state of a TCP and of a UDP socket that takes bytes
    inet = {
        line.split()[9]
        for name in ("tcp", "tcp6", "udp", "udp6")
        if Path(f"/proc/net/{name}").exists()
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        if line.split()[3] in {listening, unconnected}
    }
    assert held
    assert held & inet == set()


def test_the_daemon_never_speaks_first(home: Home) -> None:
    """A connection that says nothing hears nothing, not even at its end."""
    with raw(home) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""


def test_no_client_is_refused_because_of_its_version(home: Home) -> None:
    """Name and version of a client are free, and may be missing."""
    for params in ({}, {"version": "0.0.1"}, {"client": "x", "version": "99.0"}, {"client": None}):
        assert home.call("hello", **params)["name"] == "memd"


def test_both_framings_serve_the_same(project: Project) -> None:
    """A line is answered by a line and headers by headers, with the same result."""
    found = [
        project.home.connect(framing).call("load_prompt", cwd=project.cwd)
        for framing in ("line", "header")
    ]
    assert found[0] == found[1]
    assert found[0]["enabled"]

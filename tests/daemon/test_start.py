"""From a command line to a serving daemon."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.base.errors import MemdError
from memd.client.blocking import Client
from memd.client.launch import connect
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.waiting import wait_until_up

MEMD = [sys.executable, "-m", "memd"]
STARTERS = 8
FULL = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.execv(sys.argv[1], sys.argv[1:])
"""


def run(home: Home, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run memd to its end."""
    return subprocess.run(
        [*MEMD, *arguments],
        env=dict(home.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_term_signal_ends_it_cleanly() -> None:
    """SIGTERM ends the daemon with status 0 and takes the socket away; SIGHUP does not end it."""
    with throw_away_home() as home, daemon_process(home) as process:
        process.send_signal(signal.SIGHUP)
        with client(home) as connection:
            assert connection.call("status", {})["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not Path(home.places.socket).exists()
        assert "ready" in Path(home.places.log).read_text()


def test_a_start_on_a_full_disk_serves_reads() -> None:
    """Where no file can grow, the log's neither, a start serves memories."""
    note = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "b"}
    with throw_away_home() as home:
        cwd = home.project()
        with daemon_process(home), client(home) as connection:
            connection.call("memory.write", {"cwd": cwd, **note})
        full = (sys.executable, "-c", FULL, *MEMD, "serve")
        with daemon_process(home, command=full), client(home) as connection:
            results = connection.call("memory.read", {"cwd": cwd, "path": "a.md"})
            assert "b" in results["content"]
            assert len(connection.call("memory.list", {"cwd": cwd})["memories"]) == 1
            with pytest.raises(MemdError) as caught:
                connection.call("memory.write", {"cwd": cwd, **note, "body": "c"})
            assert caught.value.kind == "storage_failed"


def test_a_client_finds_the_daemon_at_another_path() -> None:
    """A client with another socket path is led to the daemon of its state directory."""
    with throw_away_home() as home, daemon_process(home) as process:
        places = home.places._replace(socket=f"{home.path}/other.sock")
        with connect(places, home.environ, name="cron", start=False) as connection:
            assert connection.call("hello", {})["pid"] == process.pid


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_the_env_file_names_a_model_if_it_is_private(mode: int) -> None:
    """Its address counts whole before that of memd serve; others may not read it, or it is told."""
    with throw_away_home() as made:
        path = Path(made.places.env_file)
        path.parent.mkdir(parents=True)
        path.write_text("ANTHROPIC_BASE_URL=http://127.0.0.1:1\n")
        path.chmod(mode)
        home = replace(made, environ={**made.environ, "ANTHROPIC_BASE_URL": "http://a.example"})
        with daemon_process(home), client(home) as connection:
            if mode == 0o600:
                model = connection.call("status", {})["model"]
                named = f"ANTHROPIC_BASE_URL of {path}"
                assert (model["host"], model["source"]) == ("127.0.0.1:1", named)
            else:
                checks = connection.call("doctor", {})["checks"]
                (detail,) = (check["detail"] for check in checks if check["name"] == "model")
                assert "a.example" in detail
                assert f"{path} may be read by others: run chmod 600 on it" in detail


def test_sockets_of_a_supervisor_are_served() -> None:
    """With LISTEN_FDS the daemon serves descriptor 3, tells when it is ready, and leaves it."""
    with throw_away_home() as home:
        folder = Path(home.path) / "activated"
        folder.mkdir(mode=0o700)
        environ = dict(home.environ) | {"MEMD_SOCKET": f"{folder}/s"}
        code = (
            "import os, socket, sys\n"
            "notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            f"notify.bind('{folder}/notify')\n"
            "os.umask(0o177)\n"
            "listener = socket.socket(socket.AF_UNIX)\n"
            f"listener.bind('{folder}/s')\n"
            "listener.listen()\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    os.dup2(listener.fileno(), 3)\n"
            "    os.set_inheritable(3, True)\n"
            "    os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()),\n"
            f"        NOTIFY_SOCKET='{folder}/notify', WATCHDOG_USEC='30000000')\n"
            "    os.execv(sys.executable, [sys.executable, '-m', 'memd'])\n"
            "notify.settimeout(60)\n"
            "heard = set()\n"
            "while not {b'READY=1', b'WATCHDOG=1'} <= heard:\n"
            "    heard.add(notify.recv(100))\n"
            "from memd.client.blocking import Client\n"
            f"with Client('{folder}/s', name='t') as client:\n"
            "    assert client.call('hello', {})['pid'] == child\n"
            "    client.call('shutdown', {})\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            f"assert os.path.exists('{folder}/s')\n"
        )
        subprocess.run([sys.executable, "-c", code], env=environ, timeout=60, check=True)


def start_together(home: Home) -> None:
    """Start eight daemons at once: one must serve, seven must say who and end with status 0."""
    processes = [
        subprocess.Popen(
            MEMD, env=dict(home.environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for _ in range(STARTERS)
    ]
    try:
        ended: list[subprocess.Popen[bytes]] = []
        while len(ended) < STARTERS - 1:
            ended = [process for process in processes if _over(process)]
        (winner,) = (process for process in processes if process not in ended)
        with _connected(home) as connection:
            assert connection.call("hello", {})["pid"] == winner.pid
        for process in ended:
            assert process.returncode == 0
            assert process.stderr
            assert b"serves already" in process.stderr.read()
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait()
            if process.stderr:
                process.stderr.close()


def _over(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(0.01)
    except subprocess.TimeoutExpired:
        return False
    return True


def _connected(home: Home) -> Client:
    wait_until_up(home.places, 30)
    return client(home)


@pytest.mark.soak
def test_of_eight_starters_one_serves_fifty_times() -> None:
    """Fifty rounds of eight starters leave exactly one server each, on one state directory."""
    with throw_away_home() as home:
        for _ in range(50):
            start_together(home)

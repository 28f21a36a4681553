"""How a daemon starts, is started by a client, learns of settings, and ends."""

import json
import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.net.kit import Home, Project, until
from tests.net.recorder import Recorder
from tests.net.socket_bytes import GOOD, raw, rest
from tests.net.wire import BIN, RpcError

MEMD = f"{BIN}/memd"
_SWITCHES = 12  # of all threads, when a timer wakes the daemon once
KEYS = {
    "ANTHROPIC_API_KEY": "canary-4711",
    "ANTHROPIC_AUTH_TOKEN": "canary-4711",
    "ANTHROPIC_MODEL": "canary-4711",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/canary-4711",
    "CLAUDE_CODE_OAUTH_TOKEN": "canary-4711",
    "CLAUDE_CODE_SESSION_ID": "canary-4711",
    "GITHUB_TOKEN": "canary-4711",
    "HTTPS_PROXY": "http://canary-4711",
    "PYTHONUSERBASE": "/canary-4711",
}


def test_a_client_starts_a_daemon_without_its_keys(own: Home) -> None:
    """Memctl starts a detached daemon, which has no key, model or address of the client."""
    done = own.memctl("status", "--json", environ=KEYS)
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["model"]["configured"] is False
    pid = status["pid"]
    assert os.getsid(pid) != os.getsid(0)
    environ = Path(f"/proc/{pid}/environ")
    if environ.exists():
        names = {each.split(b"=")[0].decode() for each in environ.read_bytes().split(b"\0") if each}
        assert b"canary" not in environ.read_bytes()
        assert {"HOME", "PATH"} <= names
    assert own.call("doctor")["checks"]


@pytest.mark.full
def test_many_clients_start_one_daemon(own: Home) -> None:
    """Of twelve clients that come at once all are served, by one process."""
    command = [f"{BIN}/memctl", "status", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    clients = [subprocess.Popen(command, env=own.environ, **pipes) for _ in range(12)]  # type: ignore[call-overload]
    found = {json.loads(each.communicate(timeout=90)[0])["pid"] for each in clients}
    assert len(found) == 1
    assert [each.returncode for each in clients] == [0] * 12


def test_a_wrong_command_line_is_status_2(home: Home) -> None:
    """An option that memd does not have is told on standard error."""
    done = home.run(MEMD, "serve", "--no-such-option")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.full
def test_a_shutdown_lets_open_requests_end(own: Home) -> None:
    """An idle connection ends at once, an open request is answered, and the daemon ends with 0."""
    project = own.start().project()
    assert "ready" in own.log.read_text()
    client, idle = own.connect(), raw(own)
    key = client.call("agent.register", cwd=project.cwd, name="waits")["key"]
    waits = client.ask("message.receive", key=key, wait=2)
    client.call("hello")
    assert own.call("shutdown")["stopping"] is True
    with idle:
        assert rest(idle) == b""
    with suppress(RpcError):
        client.answer(waits)
    assert own.process is not None
    assert own.process.wait(90) == 0
    assert not Path(own.socket).exists()


@pytest.mark.full
def test_a_repeated_call_is_made_once_over_a_restart(own: Home) -> None:
    """After shutdown memctl starts the next daemon, and the same request id has no new effect."""
    project = own.start().project()
    first = project.write("port.md", "Port 9911.", request_id="again")
    own.call("shutdown")
    assert own.process is not None
    assert own.process.wait(90) == 0
    own.process = None
    assert project.memctl("list").returncode == 0
    assert project.write("port.md", "Port 9911.", request_id="again") == first


def test_settings_are_read_at_use(home: Home) -> None:
    """A switch in memd.toml counts for the next call, without a restart."""
    project = home.project()
    assert project.call("load_prompt")["enabled"] is True
    home.configure("enabled = false\n")
    assert project.call("load_prompt")["enabled"] is False
    home.configure("")
    assert project.call("load_prompt")["enabled"] is True


def test_a_hang_up_reads_settings_and_ends_nothing(home: Home) -> None:
    """SIGHUP lets the daemon read its settings; it goes on serving."""
    pid = home.call("hello")["pid"]
    os.kill(pid, signal.SIGHUP)
    assert home.call("hello")["pid"] == pid


@pytest.mark.full
@pytest.mark.parametrize(
    "lost",
    [
        "socket",
        "replaced socket",
        "lock",
        "state.db",
    ],
)
def test_a_daemon_whose_places_are_gone_ends(own: Home, lost: str) -> None:
    """Without its socket, lock or state file the daemon drains and ends by itself."""
    project = own.start().project()
    project.write("port.md", "Port 9911.")
    process, own.process = own.process, None
    assert process is not None
    path = Path(own.socket)
    if "socket" in lost:
        path.unlink()
    if lost == "replaced socket":
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(own.socket)
    if lost == "lock":
        (own.state / "memd.lock").unlink()
    if lost == "state.db":
        (own.state / "state.db").unlink()
    try:
        until(lambda: process.poll() is not None, "the daemon has ended")
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait(60)
    if lost == "replaced socket":
        path.unlink()
    own.start()
    assert "9911" in project.call("memory.read", path="port.md")["content"]


@pytest.mark.full
def test_a_stopped_process_goes_on(own: Home) -> None:
    """A daemon that was stopped for a while with a subscriber serves as before."""
    project = own.start().project()
    assert own.process is not None
    with own.connect() as client:
        client.call("subscribe")
        os.kill(own.process.pid, signal.SIGSTOP)
        with raw(own) as waiting:
            waiting.sendall(GOOD + b"\n")
            waiting.settimeout(35)
            with pytest.raises(TimeoutError):
                waiting.recv(100)
            os.kill(own.process.pid, signal.SIGCONT)
            waiting.settimeout(60)
            assert b"memd" in waiting.recv(1000)
        project.write("port.md", "Port 9911.")
        assert client.event("memory.changed")["files"][0]["path"] == "port.md"
    assert own.process.poll() is None


@pytest.mark.full
def test_an_idle_daemon_sleeps(own: Home) -> None:
    """A minute without a request costs next to no processor time, and two wakes at most."""
    own.start().project().write("port.md", "Port 9911.")
    assert own.process is not None
    pid = own.process.pid
    if not Path(f"/proc/{pid}/stat").exists():
        pytest.skip("/proc tells the processor time")

    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def switches() -> int:
        """Return how often a thread has waited."""
        threads = Path(f"/proc/{pid}/task").glob("*/status")
        counts = [each.read_text().split("\nvoluntary_ctxt_switches:") for each in threads]
        return sum(int(after.split()[0]) for _, after in counts)

    with raw(own) as silent:
        silent.settimeout(10)
        with pytest.raises(TimeoutError):
            silent.recv(1)  # what was begun has ended
        before, waited = ticks(), switches()
        silent.settimeout(50)
        with pytest.raises(TimeoutError):
            silent.recv(1)
    assert ticks() - before <= 10
    assert switches() - waited <= 2 * _SWITCHES


@pytest.mark.full
def test_the_first_prompt_after_a_start_asks_the_model(own: Home) -> None:
    """With a configured model the first prefetch that waits long enough is the model's."""
    model = Recorder()
    own.configure(model.settings())
    project = own.start().project()
    project.write("port.md", "The broker listens on port 9911.", description="broker port")
    given = {"query": "which port has the broker", "deadline_ms": 10_000}
    assert project.call("prefetch", session_id="s", **given)["memories"]
    until(lambda: project.call("prefetch", session_id=os.urandom(4).hex(), **given)["memories"])
    model.close()


def test_the_log_has_no_text_of_a_person(project: Project, model: Recorder) -> None:
    """At the default level the log holds no memory, prompt, message or key, and no traceback."""
    project.write("port.md", "sesame-1 in the body", description="sesame-2 in the head")
    given = {"query": "what is sesame-3 for, please", "deadline_ms": 10_000}
    project.call("prefetch", session_id="s", **given)
    told = project.conversation().user("The broker says sesame-4 each day.").assistant("Ok.")
    path = str(told.path)
    model.script = lambda _: 400
    project.call("extract", session_id=told.session, transcript_path=path, wait=True)
    project.call("dream", force=True, wait=True)
    with suppress(RpcError):
        project.call("memory.write", path="../sesame-5.md", content="sesame-6")
    with raw(project.home) as broken:
        broken.sendall(b'{"sesame-7": \xff}\n')
        broken.shutdown(socket.SHUT_WR)
        rest(broken)
    written = project.home.log.read_text()
    assert "ready" in written
    assert "sesame" not in written
    assert "sk-recorded" not in written
    assert "raceback" not in written

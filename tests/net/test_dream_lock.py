"""The lock that dreams share with any program of the same protocol, and the gates before it."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.net.extract_talk import memory
from tests.net.kit import PYTHON, Home, Project, until
from tests.net.recorder import Recorder
from tests.net.wire import RpcError

HOUR = 3600.0
RAN = ("completed", "done", "finished")


def lock(project: Project) -> Path:
    """Return the lock's path."""
    return project.memory / ".consolidate-lock"


def lay(project: Project, body: str, hours: float) -> int:
    """Write the lock with an age; return its time in nanoseconds."""
    project.memory.mkdir(parents=True, exist_ok=True)
    lock(project).write_text(body)
    then = time.time_ns() - int(hours * HOUR * 1e9) + 123
    os.utime(lock(project), ns=(then, then))
    return lock(project).stat().st_mtime_ns


def sessions(project: Project, count: int, hours: float = 0.1) -> None:
    """Write transcripts of an age."""
    for number in range(count):
        talk = project.conversation(f"session-{number}").user("Hello.").assistant("Hi.")
        then = time.time() - hours * HOUR
        os.utime(talk.path, (then, then))


def dream(project: Project, **members: Any) -> tuple[str, Any]:
    """Ask for a dream and wait; return its status and the gate that closed."""
    done = project.call("dream", wait=True, **members)
    return done["status"], done["gate"]


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Return another living program, which began before the lock is written."""
    program = "print(flush=True); input()"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([PYTHON, "-I", "-S", "-c", program], **pipes)
    assert process.stdout
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("hours", "count", "expected"),
    [
        (None, 0, ("skipped", "sessions")),
        (None, 4, ("skipped", "sessions")),
        (None, 5, "ran"),
        (23.9, 6, ("skipped", "time")),
        (24.1, 4, ("skipped", "sessions")),
        (24.1, 5, "ran"),
    ],
)
def test_the_first_closed_gate_is_named(
    project: Project, hours: float | None, count: int, expected: Any
) -> None:
    """A dream needs 24 hours since the last one and five sessions since then."""
    if hours is not None:
        lay(project, "", hours)
    sessions(project, count)
    found = dream(project)
    assert found[0] in RAN if expected == "ran" else found == expected, found


def test_old_sessions_do_not_count(project: Project) -> None:
    """Only transcripts that changed since the last consolidation open the gate."""
    lay(project, "", 25)
    sessions(project, 8, hours=26)
    assert dream(project) == ("skipped", "sessions")


def test_the_folder_is_scanned_once_in_ten_minutes(project: Project) -> None:
    """Sessions that come right after a look are seen by a later one."""
    lay(project, "", 25)
    assert dream(project) == ("skipped", "sessions")
    sessions(project, 6)
    assert dream(project)[0] == "skipped"


def test_a_success_leaves_its_own_time(project: Project) -> None:
    """After a dream the lock's time is now, the next one is skipped, and force skips two gates."""
    project.put("a.md", memory("a", "The build takes three minutes."))
    before = time.time()
    assert dream(project, force=True)[0] in RAN
    assert before - 2 <= lock(project).stat().st_mtime <= time.time() + 2
    sessions(project, 6)
    assert dream(project) == ("skipped", "time")
    assert dream(project, force=True)[0] in RAN


@pytest.mark.parametrize("switch", ["enabled = false", "[dream]\nenabled = false"])
def test_a_switch_that_is_off_is_named(project: Project, switch: str) -> None:
    """Force does not start a dream that the person has switched off."""
    project.home.configure(f"{switch}\n")
    try:
        status, gate = dream(project, force=True)
        found = (status, bool(gate))
    except RpcError as error:
        found = ("skipped", error.kind == "memory_off")
    assert found == ("skipped", True)
    assert not lock(project).exists()


@pytest.mark.parametrize("body", ["{pid}\n", "{pid}", "{pid}\n{ms}\n"])
@pytest.mark.parametrize("force", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_living_holder_keeps_dreams_out(
    project: Project, other: subprocess.Popen[bytes], body: str, *, force: bool
) -> None:
    """A fresh lock with a living holder closes the gate, and stays as it is to the byte."""
    project.home.configure("[dream]\nmin_hours = 0.0\nmin_sessions = 0\n")
    words = body.format(pid=other.pid, ms=int(time.time() * 1000))
    then = lay(project, words, 0)
    assert dream(project, force=force) == ("skipped", "lock")
    assert (lock(project).read_text(), lock(project).stat().st_mtime_ns) == (words, then)


@pytest.mark.parametrize(
    ("body", "hours"),
    [
        ("{pid}\n", 61 / 60),  # alive, but for too long
        ("{pid}\n", 0.2),  # the holder began after the lock's time: it is another program
        ("{dead}\n", 0),
        ("garbage\n", 0.1),
        ("\x00\n5\n", 0.1),
        ("-1\n", 0.1),
        ("0\n", 0.1),
        ("99999999999999999999\n", 0.1),
        ("", 0.1),
    ],
)
def test_a_dead_holder_is_replaced(
    project: Project, other: subprocess.Popen[bytes], body: str, hours: float
) -> None:
    """A dead or stale holder, a reused PID and garbage keep nobody out."""
    dead = subprocess.Popen(["/bin/true"])
    dead.wait()
    lay(project, body.format(pid=other.pid, dead=dead.pid), hours)
    assert dream(project, force=True)[0] in RAN
    assert (
        not body
        or lock(project).read_text().strip() != body.format(pid=other.pid, dead=dead.pid).strip()
    )


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_lock_that_is_no_file_stops_a_dream(project: Project, kind: str) -> None:
    """Where something else lies in the lock's place no dream runs, and it stays there."""
    project.put("a.md", memory("a", "The build takes three minutes."))
    place, target = lock(project), project.home.path / "h/target"
    target.write_text("target\n")
    if kind == "link":
        place.symlink_to(target)
    elif kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    with suppress(RpcError):
        assert dream(project, force=True)[0] not in RAN
    assert target.read_text() == "target\n"
    assert not place.is_file() or place.is_symlink()


def begun(project: Project, model: Recorder) -> str:
    """Start a dream whose model hangs; return its job once it holds the lock."""
    model.gate = threading.Event()
    project.put("a.md", memory("a", "The build takes three minutes."))
    asked = len(model.requests)
    job: str = project.call("dream", force=True)["job"]
    until(lambda: len(model.requests) > asked, "the model is asked")
    return job


@pytest.mark.parametrize("prior", [30.0, None])
def test_a_cancelled_dream_gives_the_time_back(
    project: Project, model: Recorder, prior: float | None
) -> None:
    """While a dream runs the lock names its process; cancelled, it is as before."""
    then = lay(project, "", prior) if prior else None
    job = begun(project, model)
    with project.home.connect() as client:
        assert lock(project).read_text().split()[0] == str(client.call("hello")["pid"])
        assert time.time() - lock(project).stat().st_mtime < 60
        assert project.call("dream", force=True)["status"] in ("skipped", "coalesced", "started")
        assert client.call("job.cancel", job=job)["cancelled"]
        assert client.call("job.wait", job=job)["state"] in ("killed", "cancelled")
    assert model.gate
    model.gate.set()
    if then is None:
        until(lambda: not lock(project).exists(), "no lock remains")
    else:
        until(lambda: lock(project).stat().st_mtime_ns == then, "the time is as before")
        assert lock(project).read_text().strip() == ""


@pytest.mark.full
def test_who_takes_the_lock_over_keeps_it(
    project: Project, model: Recorder, other: subprocess.Popen[bytes]
) -> None:
    """A dream that another program overtook ends without a change and without that lock."""
    begun(project, model)
    before = project.tree()
    words = f"{other.pid}\n"
    lay(project, words, 0)
    then = lock(project).stat().st_mtime_ns
    assert model.gate
    model.gate.set()
    until(lambda: not project.call("dream.status")["running"], "the dream has ended")
    assert (lock(project).read_text(), lock(project).stat().st_mtime_ns) == (words, then)
    assert project.tree() == before
    assert project.call("dream.status")["proposals"] == 0


@pytest.mark.full
@pytest.mark.parametrize("prior", [50.0, None])
def test_after_a_kill_the_next_start_gives_the_time_back(own: Home, prior: float | None) -> None:
    """After kill -9 and a start the lock is as before the dream, or the dream is done again."""
    model = Recorder()
    own.configure(model.settings() + "[dream]\nauto = false\n")
    project = own.start().project()
    then = lay(project, "", prior) if prior else None
    begun(project, model)
    own.stop(signal.SIGKILL)
    assert lock(project).read_text().strip() != ""
    own.configure("[dream]\nauto = false\n")
    begin = time.time()
    own.start()

    def settled() -> bool:
        if not lock(project).exists():
            return then is None
        found = lock(project).stat()
        holds = bool(lock(project).read_text().strip())
        return (found.st_mtime_ns == then and not holds) or found.st_mtime >= begin - 1

    until(settled, "the lock is as before, or the dream was done again")
    assert model.gate
    model.gate.set()
    model.close()


@pytest.mark.full
def test_two_daemons_never_dream_together(new_home: Any) -> None:
    """Of two memds over one memory directory one dreams, the other names the lock."""
    model = Recorder()
    first, second = new_home(), new_home()
    shared = str(first.path / "shared")
    settings = f'auto_memory_directory = "{shared}"\n{model.settings()}[dream]\nauto = false\n'
    for home in (first, second):
        home.configure(settings)
        home.start()
    one, two = first.project(), second.project()
    one.memory = two.memory = Path(one.call("memory.list")["memory_dir"])
    assert Path(two.call("memory.list")["memory_dir"]) == one.memory
    begun(one, model)
    assert dream(two, force=True) == ("skipped", "lock")
    assert model.gate
    model.gate.set()
    until(lambda: not one.call("dream.status")["running"], "the first has ended")
    model.close()


def test_the_status_agrees_with_the_gates(project: Project) -> None:
    """``dream.status`` names the gate that a dream is skipped for, and changes nothing."""
    fresh = project.call("dream.status")
    assert (fresh["enabled"], fresh["auto"], fresh["gate"], fresh["last"]) == (
        True,
        True,
        "sessions",
        None,
    )
    assert not lock(project).exists()
    lay(project, "", 3)
    status = project.call("dream.status")
    assert status["gate"] == "time"
    assert status["due"] - status["last"] == pytest.approx(24 * HOUR)


def test_the_status_has_the_last_report(project: Project) -> None:
    """``dream.status`` has the last dream's report and its page."""
    project.put("a.md", memory("a", "The build takes three minutes."))
    dream(project, force=True)
    status = project.call("dream.status")
    assert {"report", "markdown"} <= set(status)
    assert status["markdown"].startswith("# ")

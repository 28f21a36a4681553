"""status, spend, doctor, watch, stop, sockname and discover."""

import json
import time
from typing import Any

from memd.testing.scripted_daemon import ScriptedDaemon, SentProgress
from tests.cli.driver import memctl
from tests.cli.home import Home

STATUS: dict[str, Any] = {
    "name": "memd",
    "version": "1.2",
    "pid": 7,
    "uptime": 61.0,
    "socket": "/s",
    "state_dir": "/d",
    "connections": 1,
    "rss": 45 * 1024**2,
    "jobs": {"running": 1, "completed": 2},
    "projects": ["/p/memory", "/q/memory"],
    "notes": ["something was mended"],
}


def test_the_status_reads_like_a_page(home: Home) -> None:
    """Version, age, size, jobs and projects, one fact a line."""
    with ScriptedDaemon(home.places.socket, {"status": STATUS}):
        ran = memctl(home, "status")
        small = memctl(home, "status", "--json")
    assert ran.out.splitlines() == [
        "memd         1.2, up 1 min 1 s",
        "pid          7",
        "size         45.0 MiB",
        "socket       /s",
        "state        /d",
        "connections  1",
        "jobs         2 completed, 1 running",
        "project      /p/memory",
        "project      /q/memory",
        "note         something was mended",
    ]
    assert small.json == STATUS


def test_the_status_tells_what_holds_work_up(home: Home) -> None:
    """A pause, and each directory that does without a model for a while, with the reason."""
    now = time.time()
    row = {"directory": "/p/memory", "until": now + 600.5, "why": "the server is overloaded"}
    held_up = {"paused_since": now - 3600.5, "breakers": [row]}
    with ScriptedDaemon(home.places.socket, {"status": STATUS | held_up}):
        lines = memctl(home, "status").out.splitlines()
    assert lines[7:9] == [
        "paused       for 1 h; memctl resume lets background work go on",
        "no model     for /p/memory in the next 10 min: the server is overloaded",
    ]


def test_the_status_tells_of_conversations(home: Home) -> None:
    """What is stored of them, and which caches were lost, where there are any."""
    totals = {"conversations": 3, "results": 2, "bytes": 2 * 1024**2, "breaks": 1, "missed": 5_000}
    with ScriptedDaemon(home.places.socket, {"status": STATUS | {"contexts": totals}}):
        lines = memctl(home, "status").out.splitlines()
    assert lines[9:11] == [
        "context      conversations: 3; stored results: 2, 2.0 MiB",
        "             caches lost: 1; 5,000 tokens paid again",
    ]


def test_the_status_tells_of_teams(home: Home) -> None:
    """Projects that are equal with their team are not worth a line."""
    answer = {**STATUS, "teams": {"/m/a": "equal", "/m/b": "waits"}}
    with ScriptedDaemon(home.places.socket, {"status": answer}):
        ran = memctl(home, "status")
    lines = [line for line in ran.out.splitlines() if line.startswith("team")]
    assert [" ".join(line.split()) for line in lines] == ["team waits in /m/b: memctl team status"]


def test_the_status_tells_of_suggestions(home: Home) -> None:
    """Where there are or were any, a line counts them and names the command."""
    none = {"open": 0, "offered": 0, "taken": 0, "dismissed": 0, "expired": 0}
    for counts, number in ((none, 0), (none | {"open": 2, "taken": 1}, 1)):
        with ScriptedDaemon(home.places.socket, {"status": STATUS | {"suggestions": counts}}):
            lines = memctl(home, "status").out.splitlines()
        shown = [line for line in lines if line.startswith("suggested")]
        assert len(shown) == number
    assert "2 open: memctl suggestions; 0 offered, 1 taken, 0 dismissed" in shown[0]


def test_the_status_tells_of_the_model(home: Home) -> None:
    """The model with its server, today's money and what stands still; or why there is none."""
    used = {"dollars": 0.5, "requests": 4}
    spend = {"used": used, "dollars_per_day": 1.0, "caps": {"dream": "spend.dream_share"}}
    names = {"recall": "small", "extract": "small", "dream": "big"}
    model = {"configured": True, "problem": "", "host": "localhost:1", "names": names}
    none = {"configured": False, "problem": "no key", "host": "", "names": {}}
    with ScriptedDaemon(home.places.socket, {"status": STATUS | {"model": model, "spend": spend}}):
        lines = memctl(home, "status").out.splitlines()
    assert lines[9:12] == [
        "model        big, small at localhost:1",
        "spend        $0.5000 of $1.00, 4 requests today",
        "             dream stands still until tomorrow: spend.dream_share",
    ]
    with ScriptedDaemon(home.places.socket, {"status": STATUS | {"model": none}}):
        lines = memctl(home, "status").out.splitlines()
    assert lines[9:11] == ["model        none", "             no key"]


def test_the_doctor_gives_a_remedy(home: Home) -> None:
    """Each check has a line, and a remedy below it; this side's checks follow the daemon's."""
    checks = [
        {"name": "python", "state": "ok", "detail": "3.11", "remedy": ""},
        {"name": "socket", "state": "failed", "detail": "mode 0666", "remedy": "chmod it"},
    ]
    results = {"ok": False, "checks": checks}
    with ScriptedDaemon(home.places.socket, {"doctor": results}) as daemon:
        ran = memctl(home, "doctor")
        assert daemon.params("doctor") == {"cwd": home.cwd}
        plain = memctl(home, "doctor", "--json")
        memctl(home, "--cwd", home.path, "doctor")
        assert daemon.params("doctor") == {}
    assert (ran.status, plain.status, plain.json["ok"]) == (1, 1, False)
    assert plain.json["checks"][:2] == checks
    assert ran.out.splitlines()[:3] == [
        "ok      python: 3.11",
        "failed  socket: mode 0666",
        "        → chmod it",
    ]
    assert "off     clients: none is here" in ran.out
    assert "off     service: memd is no service" in ran.out


def test_the_doctor_works_without_a_daemon(home: Home) -> None:
    """Where no daemon answers that is the first row, and this side is looked at all the same."""
    ran = memctl(home, "doctor", "--json")
    assert (ran.status, ran.json["checks"][0]["name"]) == (69, "daemon")
    assert ran.json["checks"][-1]["name"] == "service"


def test_events_are_printed_as_they_come(home: Home) -> None:
    """Each event is a line for a person or an object for a program, as many as were asked for."""
    changed = {"change": "c1", "actor": "dream", "files": [{"path": "a.md", "action": "deleted"}]}
    events = (("memory.changed", changed), ("job.done", {"job": "j1", "result": {}}))
    with ScriptedDaemon(home.places.socket, {"subscribe": SentProgress({}, events)}) as daemon:
        ran = memctl(home, "watch", "--topic", "job.done", "--here", "--count", "2")
        assert daemon.params("subscribe") == {"cwd": home.cwd, "topics": ["job.done"]}
        program = memctl(home, "watch", "--count", "2", "--json")
        assert daemon.params("subscribe") == {}
        silent = memctl(home, "watch", "--timeout", "0.2")
    assert [line[8:] for line in ran.out.splitlines()] == [
        "  memory.changed  deleted a.md, change c1, actor dream",
        "  job.done        job j1",
    ]
    assert [json.loads(line) for line in program.out.splitlines()] == [
        {"method": "memory.changed", "params": changed},
        {"method": "job.done", "params": {"job": "j1", "result": {}}},
    ]
    assert (silent.status, len(silent.out.splitlines())) == (0, 2)


def test_stopping_waits_for_the_end(home: Home) -> None:
    """The command ends when the daemon has hung up, and without a daemon there is nothing to do."""
    reported = SentProgress({"stopping": True}, (("job.done", {}),), hang_up=True)
    with ScriptedDaemon(home.places.socket, {"shutdown": reported}):
        ran = memctl(home, "stop")
    assert (ran.status, ran.out) == (0, "stopped\n")
    with ScriptedDaemon(home.places.socket, {"shutdown": {"stopping": True}}):
        ran = memctl(home, "stop", "--timeout", "0.2")
    assert (ran.status, ran.out) == (75, "")
    assert "still at work after 0.2 s" in ran.err
    ran = memctl(home, "shutdown")
    assert (ran.status, ran.out, ran.err) == (0, "", "no memd is running\n")
    assert memctl(home, "stop", "--json").json == {"stopping": False}


USED = {
    "requests": 3,
    "input": 1000,
    "output": 20,
    "cache_read": 5000,
    "cache_created": 200,
    "dollars": 0.0123,
}
FOUND: dict[str, Any] = {
    "days": 7,
    "by": "kind",
    "rows": [{"label": "recall", **USED}],
    "total": USED,
    "today": {
        "used": USED,
        "dollars_per_day": 1.0,
        "caps": {"recall": "spend.recall_share"},
    },
}


def test_spending_reads_like_a_bill(home: Home) -> None:
    """A row each, the sum, today with its bound, and what stands still."""
    with ScriptedDaemon(home.places.socket, {"spend": FOUND}) as daemon:
        ran = memctl(home, "spend", "--days", "7", "--by", "kind")
        assert daemon.params("spend") == {"days": 7, "by": "kind"}
        plain = memctl(home, "spend", "--json")
        assert daemon.params("spend") == {}
    assert ran.out.splitlines() == [
        "kind    requests  input  output  cached  dollars",
        "recall  3         1200   20      5000    0.0123",
        "all     3         1200   20      5000    0.0123",
        "",
        "today: $0.0123 of $1.00, 3 requests",
        "recall stands still until tomorrow: spend.recall_share",
    ]
    assert plain.json == FOUND

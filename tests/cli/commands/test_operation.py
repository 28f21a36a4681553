"""spend, doctor, watch, stop, sockname and discover."""

import json
from typing import Any

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, SentProgress


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

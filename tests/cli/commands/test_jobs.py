"""job list, show, wait, cancel and retry, pause and resume."""

from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, SentProgress

JOB: dict[str, Any] = {
    "job": "j1",
    "kind": "extract",
    "state": "completed",
    "phase": "",
    "directory": "/m",
    "session": "s",
    "attempts": 1,
    "created": 0.0,
    "started": 10.0,
    "ended": 12.5,
    "result": {"saved": ["é.md"]},
    "error": None,
    "parked": False,
    "holder": None,
}
RUNNING = {
    **JOB,
    "job": "j2",
    "state": "running",
    "phase": "reading",
    "holder": 7,
    "ended": None,
    "result": None,
}
FAILED = {**JOB, "job": "j3", "state": "failed", "result": None, "error": {"message": "no disk"}}


_RESULT: dict[str, Any] = {
    "status": "completed",
    "saved": ["a.md", "b.md"],
    "updated": [],
    "removed": [],
    "refused": 1,
    "refused_rules": ["aws-key"],
    "passed_over": {},
    "engine": "a-model",
    "usage": {"input": 10, "output": 20, "cache_read": 90, "cache_created": 0},
    "hit_rate": 0.9,
    "turns": 2,
    "prefix_changed": ["tools"],
    "change": "c4",
    "merged": [{"into": "a.md", "from": ["b.md"]}],
    "unknown": "x",
}
_TURN: dict[str, Any] = {
    "turn": 1,
    "model": "a-model",
    "stop": "tool_use",
    "seconds": 2.0,
    "usage": {"input": 10, "output": 20},
    "reply": [
        {"type": "thinking", "thinking": "first\nsecond"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "name": "Read", "input": {"file_path": "/m/a.md"}},
        "…",
    ],
    "results": [
        {"tool": "Read", "text": "x" * 1000},
        {"tool": "Bash", "text": "no", "fault": "denied"},
    ],
}


def test_jobs_are_listed(home: Home) -> None:
    """All projects by default, one with --here; a running job tells its phase."""
    with ScriptedDaemon(home.places.socket, {"job.list": {"jobs": [RUNNING, JOB]}}) as daemon:
        ran = memctl(home, "job", "list")
        assert daemon.params("job.list") == {}
        memctl(home, "job", "list", "--here", "--limit", "3")
        assert daemon.params("job.list") == {"cwd": home.cwd, "limit": 3}
    first, second = ran.out.splitlines()
    assert first.startswith("j2  extract  running (reading)  ")
    assert second.startswith("j1  extract  completed          ")
    assert first.endswith("ago  /m")


def test_parked_jobs_are_marked_and_put_back(home: Home) -> None:
    """A parked job says so wherever it is shown, and can be put back by its id."""
    parked = {**FAILED, "parked": True}
    answers = {"job.list": {"jobs": [parked]}, "job.retry": {**FAILED, "state": "queued"}}
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        ran = memctl(home, "job", "list", "--parked")
        assert daemon.params("job.list") == {"parked": True}
        again = memctl(home, "job", "retry", "j3")
        assert daemon.params("job.retry") == {"job": "j3"}
    assert ran.out.startswith("j3  extract  failed (parked)  ")
    assert again.out == "j3 is queued again\n"


def test_background_work_is_paused_and_resumed(home: Home) -> None:
    """Both say what is left to do; with --now running jobs go back as well."""
    stands = {"paused_since": 1.0, "waiting": 0, "breakers": []}
    with ScriptedDaemon(home.places.socket, {"pause": stands}) as daemon:
        plain = memctl(home, "pause")
        assert daemon.params("pause") == {}
        memctl(home, "pause", "--now")
        assert daemon.params("pause") == {"now": True}
    assert plain.out == "background work is paused; no job waits\n"
    for waiting, words in ((1, "1 job to do"), (2, "2 jobs to do")):
        with ScriptedDaemon(home.places.socket, {"resume": {**stands, "waiting": waiting}}):
            assert memctl(home, "resume").out == f"background work goes on; {words}\n"


@pytest.mark.parametrize(
    ("job", "lines"),
    [
        (JOB, ["took       2 s", "  saved é.md"]),
        (RUNNING, ["state      running (reading)", "held by    process 7"]),
        (FAILED, ["state      failed", "error      no disk"]),
    ],
)
def test_a_job_is_shown(home: Home, job: dict[str, Any], lines: list[str]) -> None:
    """State, times, result and error are there as far as there are any."""
    with ScriptedDaemon(home.places.socket, {"job.get": job}) as daemon:
        ran = memctl(home, "job", "show", "j1")
    assert daemon.params("job.get") == {"job": "j1", "record": True}
    assert ran.status == 0
    assert set(lines) <= set(ran.out.splitlines())


def test_a_result_and_its_turns_are_shown(home: Home) -> None:
    """Engine, tokens and files are named, then each turn; long texts are cut."""
    job = {**JOB, "result": _RESULT, "record": [_TURN, {}]}
    with ScriptedDaemon(home.places.socket, {"job.get": job}):
        ran = memctl(home, "job", "show", "j1")
    lines = ran.out.splitlines()
    assert lines[lines.index("engine      a-model") :] == [
        "engine      a-model",
        "turns       2",
        "tokens      10 input, 20 output, 90 cache read",
        "from cache  90% of the input",
        "new prefix  tools",
        "  saved a.md",
        "  saved b.md",
        "  merged b.md into a.md",
        "  refused 1: they looked like secrets or broke a rule",
        "undo with: memctl undo c4",
        "",
        "turn 1  a-model · 2 s · 10 input, 20 output · stop: tool_use",
        "  [thinking] first",
        "    second",
        "  I look.",
        '  → Read {"file_path": "/m/a.md"}',
        "  ← Read: " + "x" * 600 + "… (1000 characters)",
        "  ← Bash (denied): no",
        "",
        "turn ?  0 ms · stop: ?",
    ]


@pytest.mark.parametrize(("job", "status"), [(JOB, 0), (FAILED, 1)])
def test_waiting_ends_with_the_job(home: Home, job: dict[str, Any], status: int) -> None:
    """The status is 0 only for a job that completed."""
    with ScriptedDaemon(home.places.socket, {"job.wait": job}):
        ran = memctl(home, "job", "wait", "j1", "--json")
    assert (ran.status, ran.json) == (status, job)


def test_a_job_is_cancelled(home: Home) -> None:
    """A job that had ended is no failure to cancel."""
    for cancelled, words in ((True, "cancelled\n"), (False, "it had ended already\n")):
        with ScriptedDaemon(home.places.socket, {"job.cancel": {"cancelled": cancelled}}):
            ran = memctl(home, "job", "cancel", "j1")
        assert (ran.status, ran.out) == (0, words)


def test_waiting_on_a_terminal_shows_how_it_goes(home: Home) -> None:
    """What was said before comes on standard error; the job at its end is the answer."""
    texts = [{"turn": 1, "text": "I look first."}]
    running = {**RUNNING, "progress": {"phase": "starting", "texts": texts}}
    answers: list[Any] = [SentProgress(running, (("job.done", {"job": "j2"}),)), FAILED]
    script = {"subscribe": {}, "job.get": lambda _: answers.pop(0)}
    with ScriptedDaemon(home.places.socket, script):
        ran = memctl(home, "job", "wait", "j2", terminal=True)
    assert ran.status == 1
    assert "I look first." in ran.err
    assert "no disk" in ran.out

"""A job followed live."""

from memd.cli import progress
from memd.testing.scripted_daemon import ScriptedDaemon, Told
from tests.cli.driver import Stream, invocation
from tests.cli.home import Home

JOB = {"job": "j1", "state": "completed", "result": {"changed": ["a.md"]}, "error": None}


def _told(*phases: tuple[str, str]) -> Told:
    notes = [
        ("job.progress", {"job": job, "kind": "dream", "phase": phase, "files": 3, "more": {}})
        for job, phase in phases
    ]
    done = [("job.done", {"job": "other"}), ("job.done", {"job": "j1"})]
    return Told({"status": "started", "job": "j1"}, (*notes, *done))


def test_progress_is_shown_until_the_job_ends(home: Home) -> None:
    """The line shows this job's phases and is cleared; the end is what waiting would answer."""
    script = {
        "subscribe": {},
        "dream": _told(("j1", "reading"), ("other", "elsewhere"), ("j1", "writing")),
        "job.get": JOB,
    }
    with ScriptedDaemon(home.places.socket, script) as daemon:
        run = invocation(home, "dream", "--wait", terminal=True)
        done = progress.follow(run, "dream", {"force": True})
        run.close()
    assert done == {"status": "completed", "job": "j1", "changed": ["a.md"]}
    assert isinstance(run.around.stderr, Stream)
    shown = run.around.stderr.getvalue().split("\r\x1b[K")
    assert shown == ["", "dream: reading, files 3", "dream: writing, files 3", ""]
    assert daemon.methods == ["subscribe", "dream", "job.get"]
    assert daemon.params("subscribe") == {
        "cwd": home.cwd,
        "topics": ["job.progress", "job.done"],
    }


def test_what_is_not_started_is_answered_at_once(home: Home) -> None:
    """A closed gate is an answer without a job to follow."""
    skipped = {"status": "skipped", "gate": "off"}
    with ScriptedDaemon(home.places.socket, {"subscribe": {}, "dream": skipped}):
        run = invocation(home, "dream", terminal=True)
        assert progress.follow(run, "dream", {}) == skipped
        run.close()


def test_waiting_has_an_end(home: Home) -> None:
    """A daemon that tells nothing for the time given does not hold the program."""
    script = {
        "subscribe": {},
        "dream": {"status": "started", "job": "j1"},
        "job.get": {**JOB, "state": "running", "result": None, "error": {"message": "why"}},
    }
    with ScriptedDaemon(home.places.socket, script):
        run = invocation(home, "--timeout", "0.3", "dream", terminal=True)
        done = progress.follow(run, "dream", {})
        run.close()
    assert done == {"status": "running", "job": "j1", "reason": "why"}

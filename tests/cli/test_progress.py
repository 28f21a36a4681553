"""A job followed live."""

from typing import Any

import pytest

from memd.cli import live
from memd.cli.arguments import parser
from memd.cli.invocation import Invocation, Surroundings
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
        done = live.follow(run)
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
        assert live.follow(run) == skipped
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
        done = live.follow(run)
        run.close()
    assert done == {"status": "running", "job": "j1", "reason": "why"}


class _Interrupting(Stream):
    """A terminal at which somebody presses Ctrl-C when a word is shown."""

    def __init__(self, word: str) -> None:
        super().__init__(terminal=True)
        self._word = word

    def write(self, text: str) -> int:
        """Take a text, or be interrupted."""
        if self._word and self._word in text:
            self._word = ""
            raise KeyboardInterrupt
        return super().write(text)


def test_who_stops_watching_hears_that_the_job_goes_on(home: Home) -> None:
    """Ctrl-C ends memctl alone: it says so, and how the job can be ended too."""
    err = _Interrupting("reading")
    around = Surroundings(home.environ, home.path, Stream(), Stream(terminal=True), err)
    options = parser().parse_args(["--cwd", home.cwd, "--no-start", "dream", "--wait"])
    script = {"subscribe": {}, "dream": _told(("j1", "reading"))}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        run = Invocation(options, around)
        with pytest.raises(KeyboardInterrupt):
            live.follow(run)
        run.close()
    goes_on = "j1 goes on in the daemon; end it with: memctl job cancel j1\n"
    assert goes_on in err.getvalue()
    assert daemon.methods == ["subscribe", "dream"]


@pytest.mark.parametrize("progress_told", [None, {"phase": "starting", "texts": []}])
def test_a_job_that_ended_or_told_nothing_can_be_joined(
    home: Home, progress_told: dict[str, Any] | None
) -> None:
    """An ended job is not awaited, and one that told nothing is awaited all the same."""
    ended = {**JOB, "ended": 2.0}
    waiting = {"job": "j1", "kind": "dream", "ended": None, "progress": progress_told}
    answers: list[Any] = [ended, Told(waiting, (("job.done", {"job": "j1"}),)), ended]
    script = {"subscribe": {}, "job.get": lambda _: answers.pop(0)}
    with ScriptedDaemon(home.places.socket, script):
        run = invocation(home, "job", "wait", "j1", terminal=True)
        assert live.join(run, "j1") == ended
        assert live.join(run, "j1") == ended
        run.close()
    assert answers == []

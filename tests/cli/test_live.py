"""A running job on a terminal, and how it is followed to its end."""

from typing import Any

import pytest

from memd.cli import live
from memd.cli.arguments import parser
from memd.cli.invocation import Invocation, Surroundings
from memd.cli.live import JobView
from memd.cli.output import Screen
from memd.testing.scripted_daemon import ScriptedDaemon, SentProgress
from tests.cli.driver import Stream, invocation
from tests.cli.home import Home

SAID = {"turn": 1, "text": "I look\nfirst.", "tools": ["Read", "Read", "Grep"]}
REPORTED: dict[str, Any] = {
    "job": "j1",
    "kind": "dream",
    "phase": "starting",
    "tool_calls": 3,
    "touched": [],
    "tokens": 1234,
    **SAID,
}


class Terminal:
    """A view, the time it goes by, and what it shows."""

    def __init__(self) -> None:
        self.now = 10.0
        self._err = Stream(terminal=True)
        self.view = JobView(Screen(Stream(terminal=True), self._err, {}), lambda: self.now)

    def shown(self) -> list[str]:
        """Return what was shown, each passing line an item that begins with its mark."""
        text = self._err.getvalue()
        return [part for part in text.replace("\r\x1b[K", "\x00~").split("\x00") if part.strip("~")]


@pytest.fixture(name="terminal")
def _terminal() -> Terminal:
    return Terminal()


def test_who_comes_late_sees_each_turn_once(terminal: Terminal) -> None:
    """Turns from before come first; one that is told again is not shown again."""
    second = {"turn": 2, "text": "Now I write.", "tools": ["Write"]}
    terminal.view.catch_up({"kind": "dream", "phase": "starting", "texts": [SAID, second]})
    terminal.view.show({**REPORTED, **second})
    terminal.view.show({**REPORTED, **second})
    assert [line for line in terminal.shown() if line.endswith("\n")] == [
        "~  1  I look first.  [Read x2, Grep]\n",
        "~  2  Now I write.  [Write]\n",
        "~  2  Now I write.  [Write, 3 calls, 1,234 tokens]\n",
    ]


def test_control_characters_of_a_model_are_shown_and_not_obeyed(terminal: Terminal) -> None:
    """A reply cannot clear the screen or write another line."""
    terminal.view.show({**REPORTED, "text": "\x1b[2Jx\ry", "tools": ["\x1b[H"]})
    assert terminal.shown()[0].startswith("~  1  \\u001b[2Jx y  [\\u001b[H, ")


JOB = {"job": "j1", "state": "completed", "result": {"changed": ["a.md"]}, "error": None}


def _reported(*phases: tuple[str, str]) -> SentProgress:
    notes = [
        ("job.progress", {"job": job, "kind": "dream", "phase": phase, "files": 3, "more": {}})
        for job, phase in phases
    ]
    done = [("job.done", {"job": "other"}), ("job.done", {"job": "j1"})]
    return SentProgress({"status": "started", "job": "j1"}, (*notes, *done))


def test_progress_is_shown_until_the_job_ends(home: Home) -> None:
    """The line shows this job's phases and is cleared; the end is what waiting would answer."""
    script = {
        "subscribe": {},
        "dream": _reported(("j1", "reading"), ("other", "elsewhere"), ("j1", "writing")),
        "job.get": JOB,
    }
    with ScriptedDaemon(home.places.socket, script) as daemon:
        run = invocation(home, "dream", "--wait", terminal=True)
        done = live.follow(run)
        run.close()
    assert done == {"status": "completed", "job": "j1", "changed": ["a.md"]}
    assert isinstance(run.surroundings.stderr, Stream)
    shown = run.surroundings.stderr.getvalue().split("\r\x1b[K")
    assert shown == ["", "dream: reading, files 3", "dream: writing, files 3", ""]
    assert daemon.methods == ["subscribe", "dream", "job.get"]
    assert daemon.params("subscribe") == {
        "cwd": home.cwd,
        "topics": ["job.progress", "job.done"],
    }


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
    surroundings = Surroundings(home.environ, home.path, Stream(), Stream(terminal=True), err)
    options = parser().parse_args(["--cwd", home.cwd, "--no-start", "dream", "--wait"])
    script = {"subscribe": {}, "dream": _reported(("j1", "reading"))}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        run = Invocation(options, surroundings)
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
    answers: list[Any] = [ended, SentProgress(waiting, (("job.done", {"job": "j1"}),)), ended]
    script = {"subscribe": {}, "job.get": lambda _: answers.pop(0)}
    with ScriptedDaemon(home.places.socket, script):
        run = invocation(home, "job", "wait", "j1", terminal=True)
        assert live.join(run, "j1") == ended
        assert live.join(run, "j1") == ended
        run.close()
    assert answers == []

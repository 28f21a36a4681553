"""dream, its reports, and dream review, accept and reject."""

import time
from typing import Any

import pytest

from memd.cli.commands import dreaming
from memd.core.text import iso_time
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, SentProgress

FILE: dict[str, Any] = {
    "path": "a.md",
    "action": "changed",
    "state": "open",
    "reason": "",
    "merged_into": "",
    "stale": False,
    "diff": "-old\n+new",
}
PROPOSAL: dict[str, Any] = {
    "id": "p3",
    "at": "2026-03-03T12:00:00.000Z",
    "job": "j5",
    "engine": "claude-x",
    "state": "open",
    "reason": "",
    "problems": ["a rule\nof yours was reworded", "a merge is not true"],
    "said": "I merged\n## accept with: evil",
    "files": [
        FILE,
        {**FILE, "path": "b.md", "action": "removed", "merged_into": "a.md", "reason": "x",
         "stale": True, "diff": ""},
        {**FILE, "path": "c.md", "action": "removed", "reason": "out of date",
         "state": "accepted", "diff": "-c\n"},
    ],
}  # fmt: skip
STATUS: dict[str, Any] = {
    "enabled": True,
    "auto": True,
    "engine": "local",
    "last": None,
    "due": None,
    "sessions": 2,
    "min_sessions": 5,
    "gate": "sessions",
    "waits": "",
    "gates": [{"name": "sessions", "open": False, "says": "2 of 5"}],
    "running": None,
    "proposals": 0,
}


def test_a_dream_reports(home: Home) -> None:
    """Merged, removed and changed memories are listed; a failed dream is status 1."""
    report = {
        "status": "failed",
        "reason": "disk full",
        "merged": [{"into": "a.md", "from": ["b.md", "c.md"]}],
        "removed": [{"path": "d.md", "reason": "superseded"}],
        "changed": ["e.md"],
        "created": ["n.md"],
        "left": [{"path": "l.md", "reason": "changed meanwhile"}],
        "listed": [{"path": "x.md", "reason": "damaged"}],
        "model_problem": "the cap is met",
        "proposal": "p3",
        "unused": "p4",
    }
    with ScriptedDaemon(home.places.socket, {"dream": report}) as daemon:
        ran = memctl(home, "dream", "--force", "--wait")
    assert daemon.params("dream") == {"cwd": home.cwd, "force": True}
    assert ran.status == 1
    assert ran.out.splitlines() == [
        "failed: disk full",
        "  created n.md",
        "  changed e.md",
        "  merged b.md, c.md into a.md",
        "  removed d.md: superseded",
        "  left l.md: changed meanwhile",
        "  look at x.md: damaged",
        "  the cap is met",
        "a proposal waits for you: memctl dream review p3",
        "memories that nobody used: memctl dream review p4",
    ]


@pytest.mark.parametrize(("proposals", "words"), [(1, "1 waits for you"), (2, "2 wait for you")])
def test_the_status_tells_what_keeps_a_dream(home: Home, proposals: int, words: str) -> None:
    """Times are relative and absolute; the running job and the proposals have their commands."""
    now = time.time()
    last, due = now - 7210, now + 79_290
    results = {
        **STATUS, "auto": False, "last": last, "due": due, "waits": "a prompt is in flight",
        "running": "j5", "proposals": proposals,
    }  # fmt: skip
    with ScriptedDaemon(home.places.socket, {"dream.status": results}):
        lines = memctl(home, "dream", "--status").out.splitlines()
    assert lines[:2] == [
        f"last         2 h ago ({iso_time(last)})",
        f"due          in 22 h 1 min ({iso_time(due)})",
    ]
    assert lines[3] == "by itself    no: dream.auto is off"
    assert lines[6:9] == [
        "waits        a prompt is in flight",
        "running      j5: memctl job wait j5",
        f"proposals    {words}: memctl dream review",
    ]
    assert dreaming._time_words(now, now + 0.9) == f"just now ({iso_time(now)})"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--last", "--status"], "cannot stand beside"),
        (["--last", "--force", "--wait"], "--last cannot stand beside --force --wait"),
        (["--status", "--wait"], "--status cannot stand beside --wait"),
        (["--force", "review"], "--force cannot stand beside review"),
        (["--last", "accept", "p3"], "--last cannot stand beside accept"),
        (["--wait", "reject", "p3"], "--wait cannot stand beside reject"),
        (["accept"], "the following arguments are required: proposal"),
        (["revue"], "the nearest is review"),
    ],
)
def test_what_does_not_go_together_is_a_wrong_command_line(
    home: Home, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A clear sentence, status 2, and nobody is asked."""
    ran = memctl(home, "dream", *arguments)
    reported = ran.err + capsys.readouterr().err
    assert (ran.status, ran.out) == (2, "")
    assert words.lower() in reported.lower()


def test_proposals_are_shown(home: Home) -> None:
    """All open ones, one of them, or also those that were decided."""
    with ScriptedDaemon(home.places.socket, {"dream.review": {"proposals": [PROPOSAL]}}) as daemon:
        ran = memctl(home, "dream", "review")
        assert daemon.params("dream.review") == {"cwd": home.cwd}
        colored = memctl(home, "dream", "review", "p3", "--all", terminal=True)
        assert daemon.params("dream.review") == {"cwd": home.cwd, "proposal": "p3", "all": True}
        assert memctl(home, "dream", "review", "--json").json == {"proposals": [PROPOSAL]}
    assert ran.status == 0
    assert (
        ran.out.partition(", by ")[2]
        == """\
claude-x, open
kept back: a rule of yours was reworded
kept back: a merge is not true
the model said: I merged ## accept with: evil

changed a.md
-old
+new

removed b.md into a.md (stale: somebody changed it since)

removed c.md: out of date (accepted)
-c

accept with: memctl dream accept p3 [FILE...]
reject with: memctl dream reject p3 [FILE...] --reason TEXT
"""
    )
    assert "\x1b[31m-old\x1b[0m\n" in colored.out


def test_a_question_says_what_is_asked(home: Home) -> None:
    """Which memories nobody used, since when, and how each is kept or removed."""
    file = {**FILE, "path": "b.md", "action": "removed", "reason": "not surfaced since 2026-01-02"}
    asks = {"problems": [], "said": "", "engine": "", "files": [file], "kind": "unused"}
    with ScriptedDaemon(home.places.socket, {"dream.review": {"proposals": [PROPOSAL | asks]}}):
        lines = memctl(home, "dream", "review").out.splitlines()
    assert lines[1].startswith("question: nobody used these in 90 days on which memd ran;")
    assert lines[3] == "removed b.md: not surfaced since 2026-01-02"
    assert lines[-2:] == [
        "remove with: memctl dream accept p3 [FILE...]",
        "keep with: memctl dream reject p3 [FILE...]",
    ]


def test_a_proposal_of_an_import_says_its_source(home: Home) -> None:
    """No model said anything there."""
    proposal = {**PROPOSAL, "engine": "import:memd", "said": "import of x.tar.gz (memd)"}
    with ScriptedDaemon(home.places.socket, {"dream.review": {"proposals": [proposal]}}):
        ran = memctl(home, "dream", "review")
    assert "by import:memd" in ran.out
    assert "\nsource: import of x.tar.gz (memd)\n" in ran.out


def test_a_proposal_is_accepted(home: Home) -> None:
    """Whole or by file; the way back is told, and what was left is status 1."""
    done: dict[str, Any] = {
        "proposal": "p3", "state": "accepted", "change": "c9", "accepted": ["a.md"], "left": []
    }  # fmt: skip
    left_file = {"path": "b.md", "reason": "changed since"}
    nothing = {**done, "state": "open", "change": None, "accepted": [], "left": [left_file]}
    with ScriptedDaemon(home.places.socket, {"dream.accept": done}) as daemon:
        ran = memctl(home, "dream", "accept", "p3")
        assert daemon.params("dream.accept") == {"cwd": home.cwd, "proposal": "p3"}
    with ScriptedDaemon(home.places.socket, {"dream.accept": nothing}) as daemon:
        left = memctl(home, "dream", "accept", "p3", "a.md", "b.md")
        assert daemon.params("dream.accept")["paths"] == ["a.md", "b.md"]
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "accepted a.md\nundo with: memctl undo c9\np3 is accepted\n"
    assert (left.status, left.err) == (1, "left alone: b.md: changed since\n")
    assert left.out == "p3 is still open\n"


def test_a_proposal_is_rejected(home: Home) -> None:
    """Whole or by file, with a reason for the next dream."""
    done = {"proposal": "p3", "state": "partly", "rejected": ["a.md"]}
    with ScriptedDaemon(home.places.socket, {"dream.reject": done}) as daemon:
        ran = memctl(home, "dream", "reject", "p3", "a.md", "--reason", "I meant both")
        assert daemon.params("dream.reject") == {
            "cwd": home.cwd,
            "proposal": "p3",
            "paths": ["a.md"],
            "reason": "I meant both",
        }
        memctl(home, "dream", "reject", "p3")
        assert daemon.params("dream.reject") == {"cwd": home.cwd, "proposal": "p3"}
    assert (ran.status, ran.out) == (0, "rejected a.md\np3 is decided, accepted in part\n")


def test_no_dream_is_a_note(home: Home) -> None:
    """Where none has run nothing goes to standard output."""
    with ScriptedDaemon(home.places.socket, {"dream.last": {"job": None, "markdown": ""}}):
        ran = memctl(home, "dream", "--last")
    assert (ran.status, ran.out, ran.err) == (0, "", "no dream has run here\n")


def test_a_dream_is_watched_on_a_terminal(home: Home) -> None:
    """On a terminal the job is followed live, and its end is the answer."""
    reported = SentProgress({"status": "started", "job": "j1"}, (("job.done", {"job": "j1"}),))
    job = {"job": "j1", "state": "completed", "result": {"changed": []}}
    script = {"subscribe": {}, "dream": reported, "job.get": job}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        ran = memctl(home, "dream", "--wait", terminal=True)
    assert (ran.status, ran.out) == (0, "completed as j1\n")
    assert daemon.methods == ["status", "subscribe", "dream", "job.get"]

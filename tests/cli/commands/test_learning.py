"""extract."""

from pathlib import Path

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, Silence

SAVED = {
    "status": "completed",
    "job": "j1",
    "saved": ["a.md"],
    "updated": ["b.md"],
    "removed": ["c.md"],
    "refused": 2,
    "suggested": 3,
    "passed_over": {"structure": 1},
    "already_said": [{"text": "Use pnpm", "file": "/p/AGENTS.md"}],
    "change": "c7",
}


@pytest.mark.parametrize("text", ['[{"role":"user"}]', '{"messages":[{"role":"user"}]}'])
def test_messages_come_from_a_program(home: Home, text: str) -> None:
    """An array, or an object that holds it, is read from standard input."""
    answer = {"status": "skipped", "reason": "off"}
    with ScriptedDaemon(home.places.socket, {"extract": answer}) as daemon:
        ran = memctl(home, "extract", "--messages", "-", "--session", "s", stdin=text)
    assert (ran.status, ran.out) == (0, "skipped: off\n")
    assert daemon.params("extract")["messages"] == [{"role": "user"}]


def test_waiting_prints_what_was_learnt(home: Home) -> None:
    """With --wait the files, the refusals and the way back are printed."""
    facts = {"state": "completed", "job": "j1", "result": SAVED}
    script = {"extract": {"status": "queued", "job": "j1"}, "job.wait": facts}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        ran = memctl(home, "extract", "--transcript", "/s.jsonl", "--wait")
    troubled = {**SAVED, "problem": "models failed"}
    with ScriptedDaemon(home.places.socket, {"extract": troubled}):
        assert "  models failed\n" in memctl(home, "extract", "--transcript", "/s.jsonl").out
    assert daemon.params("job.wait") == {"job": "j1"}
    assert ran.out.splitlines() == [
        "completed as j1",
        "  saved a.md",
        "  updated b.md",
        "  removed c.md",
        "  refused 2: they looked like secrets or broke a rule",
        "  suggested 3: memctl suggestions lists what waits for you",
        "  passed over 1: structure",
        "  not saved, /p/AGENTS.md says it: Use pnpm",
        "undo with: memctl undo c7",
    ]


def test_waiting_leaves_out_no_member(home: Home) -> None:
    """--json has every member of the method's answer, also those that are null at the end."""
    facts = {"state": "completed", "job": "j1", "result": {"saved": [], "refused_rules": []}}
    answer = {"status": "queued", "job": "j1", "saved": None, "change": None, "reason": None}
    script = {"extract": answer, "job.wait": facts}
    with ScriptedDaemon(home.places.socket, script):
        ran = memctl(home, "extract", "--transcript", "/s.jsonl", "--wait", "--json")
    assert ran.json == answer | {"status": "completed", "saved": [], "refused_rules": []}


def test_who_stops_waiting_knows_what_goes_on(home: Home) -> None:
    """A job that does not end in the time that is given is named, and is no failure of it."""
    script = {"extract": {"status": "queued", "job": "j8"}, "job.wait": Silence()}
    with ScriptedDaemon(home.places.socket, script):
        ran = memctl(home, "--timeout", "0.2", "extract", "--transcript", "/s.jsonl", "--wait")
    assert ran.status == 75
    assert "j8 goes on" in ran.err
    assert "memctl job wait j8" in ran.err


def test_who_waits_while_work_is_paused_is_told(home: Home) -> None:
    """What would wait for a person says so at once; without a pause, or without --wait, not."""
    for since, wait, words in (
        (5.0, ["--wait"], "memctl resume"),
        (None, ["--wait"], ""),
        (5.0, [], ""),
    ):
        script = {"extract": SAVED, "status": {"paused_since": since}}
        with ScriptedDaemon(home.places.socket, script):
            ran = memctl(home, "extract", "--transcript", "/s.jsonl", *wait)
        assert ran.status == 0
        assert (words in ran.err) if words else ran.err == ""


@pytest.mark.parametrize(
    "arguments",
    [[], ["--transcript", "a", "--messages", "b"], ["--messages", "-"]],
)
def test_an_unclear_source_is_a_wrong_command_line(home: Home, arguments: list[str]) -> None:
    """One source, and for messages a session, or nothing is asked."""
    ran = memctl(home, "extract", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("memctl: ")


def test_messages_must_be_json(home: Home) -> None:
    """Broken JSON is named with its file and not sent."""
    file = Path(home.path) / "m.json"
    file.write_text("[")
    ran = memctl(home, "extract", "--messages", str(file), "--session", "s")
    assert ran.status == 1
    assert f"{file} cannot be read: it is not JSON" in ran.err

"""agent: who is there, and an agent of one's own."""

from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, SentProgress

AGENT: dict[str, Any] = {
    "agent": "tests", "address": "builder/tests", "client": "claude-code", "kind": "reviewer",
    "project": "/src/app", "state": "live", "since": "2026-01-01T00:00:00Z",
    "progress": "Reading\nparser.py", "unread": 2,
}  # fmt: skip
LISTED = {"agents": [AGENT, {**AGENT, "address": "old", "state": "gone", "unread": 0}]}
REGISTERED = {"agent": "builder", "address": "builder", "key": "secret-key"}


def test_agents_are_a_table(home: Home) -> None:
    """One line an agent, what programs said on that line, and JSON is the answer itself."""
    with ScriptedDaemon(home.places.socket, {"agent.list": LISTED}) as daemon:
        first, second = memctl(home, "agent", "list").out.splitlines()
        assert daemon.params("agent.list") == {"cwd": home.cwd}
        assert first.split("  ") == [
            "builder/tests", "live", "claude-code reviewer", "2 unread", "Reading parser.py"
        ]  # fmt: skip
        assert second.startswith("old")
        assert memctl(home, "--json", "agent", "list", "--all").json == LISTED
        assert daemon.params("agent.list") == {"cwd": home.cwd, "all": True}
        assert "\x1b[" in memctl(home, "--color", "always", "agent", "list").out
    with ScriptedDaemon(home.places.socket, {"agent.list": {"agents": []}}):
        assert "no agent" in memctl(home, "agent", "list").err


def test_what_changes_is_printed_as_it_does(home: Home) -> None:
    """With --watch, lines of progress and changes stand below the table until the time is over."""
    progress = ("agent.progress", {"address": "builder/tests", "line": "Running pytest"})
    changed = ("agent.changed", {"address": "builder", "change": "ended"})
    answer = SentProgress(LISTED, after=(progress, changed))
    with ScriptedDaemon(home.places.socket, {"agent.list": answer, "subscribe": {}}) as daemon:
        ran = memctl(home, "--timeout", "0.3", "agent", "list", "--watch")
        topics = ["agent.changed", "agent.progress"]
        assert daemon.params("subscribe") == {"cwd": home.cwd, "topics": topics}
    assert ran.out.splitlines()[2:] == ["builder/tests  Running pytest", "builder  ended"]


def test_one_agent_is_shown(home: Home) -> None:
    """All of it, or status 1 and a sentence for an address that nobody has."""
    with ScriptedDaemon(home.places.socket, {"agent.list": LISTED}):
        assert "/src/app" in memctl(home, "agent", "show", "builder/tests").out
        ran = memctl(home, "agent", "show", "nobody")
    assert (ran.status, ran.out) == (1, "")
    assert "no agent has the address nobody" in ran.err


def test_an_agent_of_another_project_is_shown_by_its_name(home: Home) -> None:
    """With --all the name will do, alone or with the folder, where only one agent has it."""
    places = ("ann@-x-app", "/x/app"), ("ann@-x-web", "/x/web"), ("ben@-x-web", "/x/web")
    agents = [{**AGENT, "address": address, "project": root} for address, root in places]
    with ScriptedDaemon(home.places.socket, {"agent.list": {"agents": agents}}):
        for address, root in (("ben", "/x/web"), ("ann@app", "/x/app"), ("ann@-x-web", "/x/web")):
            assert root in memctl(home, "agent", "show", address, "--all").out
        ran = memctl(home, "agent", "show", "ann", "--all")
        assert (ran.status, "there is ann@-x-app, ann@-x-web" in ran.err) == (1, True)
        assert memctl(home, "agent", "show", "ben").status == 1


def test_registering_prints_the_key(home: Home) -> None:
    """The parent's key comes from the environment, and goes along with a parent alone."""
    with ScriptedDaemon(home.places.socket, {"agent.register": REGISTERED}) as daemon:
        words = ("agent", "register", "--name", "builder", "--pid", "7", "--session", "s1")
        ran = memctl(home, *words, MEMD_AGENT_KEY="other")
        sent = {"cwd": home.cwd, "name": "builder", "pid": 7, "session_id": "s1"}
        assert daemon.params("agent.register") == sent
        assert "secret-key" in ran.out
        assert "export MEMD_AGENT_KEY=secret-key" in ran.err
        memctl(home, *words, "--parent", "lead", MEMD_AGENT_KEY="other")
        assert daemon.params("agent.register") == {**sent, "parent": "lead", "key": "other"}


@pytest.mark.parametrize("words", [("--key", "k"), ()])
def test_an_agent_is_ended_with_its_key(home: Home, words: tuple[str, ...]) -> None:
    """By --key or MEMD_AGENT_KEY; without one nothing is asked and the status is 2."""
    with ScriptedDaemon(
        home.places.socket, {"agent.end": {"ended": True, "returned": 3}}
    ) as daemon:
        ran = memctl(home, "agent", "end", *words, MEMD_AGENT_KEY="" if words else "k")
        assert daemon.params("agent.end") == {"key": "k"}
        assert ran.out == "ended; 3 unread went back\n"
        assert memctl(home, "agent", "end").status == 2
        assert len(daemon.methods) == 1

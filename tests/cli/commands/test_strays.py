"""agent merge."""

from typing import Any

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

STRAY: dict[str, Any] = {
    "directory": "/p/src/.claude/agent-memory/a",
    "agent": "a",
    "scope": "project",
    "target": "/p/.claude/agent-memory/a",
    "merged": ["x.md"],
    "left": [],
}


def test_each_memory_that_was_taken_is_named(home: Home) -> None:
    """What went where is printed; what stayed is an error and the status 1."""
    with ScriptedDaemon(home.places.socket, {"agent.merge": {"strays": [STRAY]}}):
        ran = memctl(home, "agent", "merge")
        assert (ran.status, ran.out) == (
            0,
            f"{STRAY['directory']}/x.md went to {STRAY['target']}\n",
        )
        assert memctl(home, "agent", "merge", "--json").json == {"strays": [STRAY]}
    left = {**STRAY, "merged": [], "left": ["it is too large"]}
    with ScriptedDaemon(home.places.socket, {"agent.merge": {"strays": [left]}}):
        ran = memctl(home, "agent", "merge")
        assert (ran.status, ran.out) == (1, "")
        assert "it is too large" in ran.err


def test_a_dry_run_says_what_would_be(home: Home) -> None:
    """With --dry-run places are named; where nothing lies astray that is said."""
    dry = {"strays": [{**STRAY, "merged": []}]}
    with ScriptedDaemon(home.places.socket, {"agent.merge": dry}) as daemon:
        assert "would go to" in memctl(home, "agent", "merge", "--dry-run").out
        assert daemon.params("agent.merge") == {"cwd": home.cwd, "dry_run": True}
    with ScriptedDaemon(home.places.socket, {"agent.merge": {"strays": []}}):
        assert "nothing lies astray" in memctl(home, "agent", "merge").err

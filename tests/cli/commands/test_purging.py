"""memctl purge."""

from typing import Any

from memd.testing.scripted_daemon import ScriptedDaemon
from tests.cli.driver import memctl
from tests.cli.home import Home

HASH = "ab" * 32


def done(*, dry_run: bool = False) -> dict[str, Any]:
    """Return what a purge answers."""
    return {
        "dry_run": dry_run,
        "bodies": [{"hash": HASH, "paths": ["a.md"], "changes": ["c1", "c2"]}],
        "texts": {"jobs": 2},
        "files": [{"path": "/state/memd.log", "hash": HASH}],
        "live": [],
        "running": 0,
    }


def test_what_was_purged_is_listed(home: Home) -> None:
    """Each text stands on its line with its hash, its files and its changes; --json has it all."""
    with ScriptedDaemon(home.places.socket, {"memory.purge": done()}) as daemon:
        ran = memctl(home, "purge", "--change", "c1", "--yes")
        assert memctl(home, "purge", "--change", "c1", "--yes", "--json").json == done()
    assert (ran.status, ran.out.splitlines()) == (
        0,
        [
            f"purged {HASH} a.md (c1 c2)",
            "cleaned 2 rows of jobs",
            f"removed from /state/memd.log ({HASH})",
        ],
    )
    expected = {"cwd": home.cwd, "change": "c1", "dry_run": False}
    assert daemon.params("memory.purge") == expected


def test_nothing_is_purged_without_a_yes(home: Home) -> None:
    """Without --yes it is a dry run that says so, and the status is 2; --dry-run is one of 0."""
    answers = {"memory.purge": done(dry_run=True)}
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        asked = memctl(home, "purge", "--pattern", "-", stdin="sesame open\n")
        tried = memctl(home, "purge", "--path", "a.md", "--dry-run", "--yes")
    assert (asked.status, "--yes" in asked.err, "would be purged" in asked.out) == (2, True, True)
    assert (tried.status, tried.err) == (0, "")
    sent = [asked.params for asked in daemon.asked if asked.method == "memory.purge"]
    assert [params["dry_run"] for params in sent] == [True, True]
    assert sent[0]["pattern"] == "sesame open"


def test_what_is_left_is_told(home: Home) -> None:
    """Files of people in which it still stands, and jobs that may write it again, are named."""
    answer = done() | {"live": ["/m/a.md"], "running": 1, "bodies": [], "texts": {}, "files": []}
    with ScriptedDaemon(home.places.socket, {"memory.purge": answer}):
        ran = memctl(home, "purge", "--pattern", "sesame", "--regex", "--yes")
    assert "/m/a.md" in ran.err
    assert "1 jobs" in ran.err
    assert "nothing is kept of it" in ran.out

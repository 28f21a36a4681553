"""history, diff and undo."""

from typing import Any

from memd.testing.scripted_daemon import ScriptedDaemon
from tests.cli.driver import memctl
from tests.cli.home import Home

CHANGES: dict[str, Any] = {
    "changes": [
        {
            "id": "c2",
            "at": "2026-11-21T10:00:01.123Z",
            "actor": "client",
            "client": "memctl",
            "session": "",
            "model": "",
            "reason": "memory.write",
            "files": [{"path": "a.md", "action": "updated"}, {"path": "b.md", "action": "created"}],
        },
        {
            "id": "c1",
            "at": "2026-11-20T10:00:01.123Z",
            "actor": "external",
            "client": "",
            "reason": "",
            "files": [{"path": "a.md", "action": "created"}],
        },
    ]
}


def test_changes_are_listed(home: Home) -> None:
    """Who, when, why and what stand on one line."""
    with ScriptedDaemon(home.places.socket, {"memory.history": CHANGES}) as daemon:
        ran = memctl(home, "history", "a.md", "--limit", "2", "--before", "c3")
    assert ran.out.splitlines() == [
        "c2  2026-11-21 10:00:01  client (memctl)  memory.write  updated a.md, created b.md",
        "c1  2026-11-20 10:00:01  external         -             created a.md",
    ]
    assert daemon.params("memory.history") == {
        "cwd": home.cwd,
        "path": "a.md",
        "limit": 2,
        "before": "c3",
    }


def test_no_change_is_a_note(home: Home) -> None:
    """An empty history prints nothing to standard output."""
    with ScriptedDaemon(home.places.socket, {"memory.history": {"changes": []}}):
        ran = memctl(home, "history")
    assert (ran.status, ran.out, ran.err) == (0, "", "no changes\n")


def test_a_diff_is_printed(home: Home) -> None:
    """The diffs follow each other, each ending with a newline, coloured on a terminal."""
    files = [
        {"path": "a.md", "diff": "--- a\n@@ 1\n-old\n+new"},
        {"path": "b.md", "diff": ""},
        {"path": "c.md", "diff": "same\n"},
    ]
    with ScriptedDaemon(home.places.socket, {"memory.diff": {"files": files}}) as daemon:
        ran = memctl(home, "diff", "c2")
        colored = memctl(home, "diff", "c2", terminal=True).out
    assert ran.out == "--- a\n@@ 1\n-old\n+new\nsame\n"
    assert "\x1b[32m+new\x1b[0m\n" in colored
    assert "\x1b[31m-old\x1b[0m\n" in colored
    assert daemon.params("memory.diff") == {"cwd": home.cwd, "change": "c2"}


def test_an_undo_says_what_came_back(home: Home) -> None:
    """The files and the way back are printed; a retry would be known."""
    done = {"change": "c9", "files": [{"path": "a.md", "action": "deleted"}], "conflicts": []}
    with ScriptedDaemon(home.places.socket, {"memory.undo": done}) as daemon:
        ran = memctl(home, "undo", "c2")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "deleted a.md\nundo the undo with: memctl undo c9\n"
    assert len(daemon.params("memory.undo")["request_id"]) == 32


def test_an_undo_that_left_something_is_status_one(home: Home) -> None:
    """Newer work is left alone and named."""
    done = {"change": None, "files": [], "conflicts": ["a.md was changed by c3"]}
    with ScriptedDaemon(home.places.socket, {"memory.undo": done}):
        ran = memctl(home, "undo", "c2")
    assert (ran.status, ran.out) == (1, "nothing to undo\n")
    assert ran.err == "left alone: a.md was changed by c3\n"

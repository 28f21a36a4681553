"""report and usage."""

from typing import Any

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon


def memory(path: str, **more: Any) -> dict[str, Any]:
    """Return a memory as a report names it."""
    return {"path": path, "project": "app", "cwd": "/p/app", "directory": "/m", **more}


def counted(count: int, *paths: str) -> dict[str, Any]:
    """Return a list of a report."""
    return {"count": count, "memories": [memory(path, at="2026-03-03") for path in paths]}


REPORT: dict[str, Any] = {
    "since": "2026-03-03T12:00:00.000Z",
    "until": "2026-03-10T12:00:00.000Z",
    "days": 7,
    "learnt": counted(5, "a.md", "b.md", "c.md", "d.md", "e.md"),
    "changed": counted(1, "x\x1b[31m.md"),
    "merged": counted(0),
    "removed": counted(0),
    "surfaced": {"times": 1200, "memories": 2, "sessions": 1},
    "read": 1,
    "acted": 0,
    "most": [memory("a.md", surfaced=9, read=1, acted=0)],
    "unused": counted(1, "old.md"),
    "suggestions": {"made": 3, "accepted": 1, "edited": 0, "dismissed": 0, "open": 2},
    "dreams": 2,
    "dollars": 0.1234,
    "tokens": 12_345,
    "questions": [{"project": "app", "cwd": "/p/app", "directory": "/m", "proposals": 1}],
}
NOTHING = REPORT | {
    **{name: counted(0) for name in ("learnt", "changed", "unused")},
    "surfaced": {"times": 0, "memories": 0, "sessions": 0},
    "read": 0,
    "most": [],
    "suggestions": dict.fromkeys(REPORT["suggestions"], 0),
    "dreams": 0,
    "dollars": 0.0,
    "tokens": 0,
    "questions": [],
    "days": 1,
}
USED = {
    "path": "a.md",
    "surfaced": 3,
    "sessions": 2,
    "read": 1,
    "acted": 0,
    "last_surfaced": "2020-03-03T12:00:00.000Z",
    "last_read": None,
    "last_acted": None,
    "unused": False,
}
NEVER = USED | dict.fromkeys(("surfaced", "sessions", "read"), 0)
NEVER |= {"path": "b.md", "last_surfaced": None, "unused": True}


def test_a_report_reads_like_a_page(home: Home) -> None:
    """A line for each thing of which there is any, and what to do about what waits."""
    with ScriptedDaemon(home.places.socket, {"report": REPORT}) as daemon:
        ran = memctl(home, "report", "--week")
        coloured = memctl(home, "report", terminal=True)
        as_json = memctl(home, "report", "--here", "--days", "7", "--json")
    assert [one.params for one in daemon.requested if one.method != "hello"] == [
        {},
        {},
        {"cwd": home.cwd, "days": 7},
    ]
    assert ran.out.splitlines() == [
        "the last     7 days since 2026-03-03T12:00Z",
        "learnt       5: a.md (app), b.md (app), c.md (app), and 2 more",
        "changed      1: x\x1b[31m.md (app)",
        "unused       1: old.md (app)",
        "             in 90 days on which memd ran: memctl usage --unused",
        "surfaced     1,200 times: 2 memories in 1 session",
        "read         1 time",
        "most used    a.md (app), 10 times",
        "suggestions  3 made, 1 accepted, 2 open",
        "             those that are open wait for you: memctl suggestions",
        "dreams       2",
        "spent        $0.1234, 12,345 tokens",
        "questions    1 proposal for you in /p/app: memctl dream review",
    ]
    assert "\x1b[31m" not in coloured.out
    assert as_json.json == REPORT


def test_a_report_of_nothing_is_one_line(home: Home) -> None:
    """Nothing happened: only the time is told."""
    with ScriptedDaemon(home.places.socket, {"report": NOTHING}):
        ran = memctl(home, "report", "--days", "1")
    assert ran.out == "the last  day since 2026-03-03T12:00Z\n"


def test_two_spans_are_refused(home: Home) -> None:
    """A week is seven days and no other number."""
    with ScriptedDaemon(home.places.socket, {"report": REPORT}):
        ran = memctl(home, "report", "--week", "--days", "30")
    assert (ran.status, "--week is seven days" in ran.err) == (2, True)


def test_usage_is_a_table(home: Home) -> None:
    """A row for each memory, since when it was counted, and whether there are more."""
    answer = {"since": "2026-01-02T03:04:05.000Z", "memories": [USED, NEVER], "next": "1 2 a.md"}
    with ScriptedDaemon(home.places.socket, {"usage.list": answer}) as daemon:
        ran = memctl(home, "usage", "a.md", "b.md", "--order", "most", "--limit", "2")
        as_json = memctl(home, "usage", "--json")
    first, second = [one.params for one in daemon.requested if one.method != "hello"]
    assert first == {"cwd": home.cwd, "paths": ["a.md", "b.md"], "order": "most", "limit": 2}
    assert second == {"cwd": home.cwd}
    lines = ran.out.splitlines()
    assert lines[0].split() == ["SURFACED", "SESSIONS", "READ", "ACTED", "LAST", "MEMORY"]
    assert lines[1].split()[:4] == ["3", "2", "1", "0"]
    assert lines[1].endswith("ago          a.md")
    assert lines[2].split() == ["0", "0", "0", "0", "never", "unused", "b.md"]
    assert lines[3] == "counted since 2026-01-02"
    assert lines[4].startswith("there are more")
    assert as_json.json == answer


def test_a_memory_that_is_not_there_is_said(home: Home) -> None:
    """A name without its suffix is the memory's; what is nowhere is no empty table."""
    found = {"since": "2026-01-02T03:04:05.000Z", "memories": [USED], "next": None}
    listed = {"memories": [{"path": "a.md", "name": "first"}], "next": None}
    with ScriptedDaemon(home.places.socket, {"usage.list": found, "memory.list": listed}):
        assert memctl(home, "usage", "first").out.splitlines()[1].endswith("a.md")
        ran = memctl(home, "usage", "a.md", "aa")
    assert (ran.status, ran.out) == (1, "")
    assert "there is no memory aa.md; the nearest: a.md" in ran.err


def test_an_empty_table_says_why(home: Home) -> None:
    """No memory is unused, or nothing was counted yet."""
    answer: dict[str, Any] = {"since": "2026-01-02T03:04:05.000Z", "memories": [], "next": None}
    for since, words in ((answer["since"], "no memory is unused"), (None, "nothing was counted")):
        with ScriptedDaemon(home.places.socket, {"usage.list": answer | {"since": since}}):
            ran = memctl(home, "usage", "--unused")
        assert (ran.status, ran.out.strip(), ran.err.startswith(words)) == (0, "", True)

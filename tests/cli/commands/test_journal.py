"""log, diff, undo, why, restore and purge."""

import time
from typing import Any

import pytest

from memd.core.text import iso_time
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon


def changes() -> dict[str, Any]:
    """Return two changes, one of them a little over two hours ago by the clock on the wall."""
    return {
        "changes": [
            {
                "id": "c2",
                "at": iso_time(time.time() - 7530),
                "actor": "client",
                "client": "memctl",
                "session": "",
                "model": "",
                "reason": "memory.write",
                "directory": "/m/one",
                "files": [
                    {"path": "a.md", "action": "updated"},
                    {"path": "b.md", "action": "created"},
                ],
            },
            {
                "id": "c1",
                "at": iso_time(time.time() - 3 * 86400 - 5),
                "actor": "external",
                "client": "",
                "reason": "",
                "directory": "/m/two",
                "files": [{"path": "a.md", "action": "created"}],
            },
        ]
    }


def test_changes_are_listed(home: Home) -> None:
    """Who, when, why and what stand on one line."""
    with ScriptedDaemon(home.places.socket, {"memory.history": changes()}) as daemon:
        ran = memctl(home, "log", "a.md", "--limit", "2", "--before", "c3")
        assert memctl(home, "history", "a.md", "--limit", "2", "--before", "c3") == ran
    assert ran.out.splitlines() == [
        "c2  2 h 5 min ago  client (memctl)  memory.write  updated a.md, created b.md",
        "c1  3 d ago        external         -             created a.md",
    ]
    assert daemon.params("memory.history") == {
        "cwd": home.cwd,
        "path": "a.md",
        "limit": 2,
        "before": "c3",
    }


def test_changes_are_chosen(home: Home) -> None:
    """Who, when and where can be said; times as a person says them, and all projects told apart."""
    told_of = changes()
    with ScriptedDaemon(home.places.socket, {"memory.history": told_of}) as daemon:
        ran = memctl(
            home, "log", "--actor", "dream", "--session", "s1", "--client", "editor",
            "--since", "1970-01-02 00:00Z", "--until", "1 hour ago", "--all",
        )  # fmt: skip
        reported = memctl(home, "log", "--json")
    requested = daemon.requested[1].params
    assert time.time() - 3600 - requested.pop("until") < 60
    assert requested == {
        "cwd": home.cwd,
        "actor": "dream",
        "session": "s1",
        "client": "editor",
        "since": 86400.0,
        "all_projects": True,
    }
    assert ran.out.splitlines()[1].endswith("-             /m/two  created a.md")
    assert reported.json == told_of


@pytest.mark.parametrize(
    "words",
    [
        ["log", "--since", "soon"],
        ["log", "--actor", "king"],
        ["diff", "--from", "x12"],
        ["undo", "--as-of", "c12"],
        ["undo", "--as-of", "yesterday", "tomorrow", "never"],
    ],
)
def test_a_time_that_is_none_is_refused(home: Home, words: list[str]) -> None:
    """What is no time, no change and nobody never reaches the daemon."""
    assert memctl(home, *words).status == 2


def test_a_range_and_a_time_are_undone(home: Home) -> None:
    """A range goes as it is written; a time is told as it was understood."""
    done = {"change": "c9", "files": [], "merged": ["b.md"], "conflicts": []}
    with ScriptedDaemon(home.places.socket, {"memory.undo": done}) as daemon:
        ran = memctl(home, "undo", "--from", "c2", "--to", "c4")
        requested = dict(daemon.params("memory.undo"))
        back = memctl(home, "undo", "--as-of", "1970-01-02 00:00Z", "--dry-run")
    del requested["request_id"]
    assert requested == {"cwd": home.cwd, "from": "c2", "to": "c4"}
    assert ran.out == "merged with newer work: b.md\nundo the undo with: memctl undo c9\n"
    params = daemon.params("memory.undo")
    assert (params["as_of"], params["dry_run"]) == (86400.0, True)
    assert back.err == "everything after 1970-01-02T00:00:00.000Z\n"


def test_a_memory_says_where_it_comes_from(home: Home) -> None:
    """First and last writer with session, model and message, all changes and the last use."""
    first = {
        "change": "c1", "at": iso_time(time.time() - 86400 - 5), "action": "created",
        "actor": "extract", "client": "claude-code", "session": "s1", "model": "m",
        "origin": "user", "reason": "extracted", "message": "m7", "transcript": "t.jsonl",
    }  # fmt: skip
    last = {"change": "c2", "at": "?", "action": "deleted", "actor": "external"}
    seen = {"at": iso_time(time.time() - 3605), "session": "s2"}
    results = {"path": "a.md", "exists": False, "first": first, "last": last}
    results |= {"changes": ["c2", "c1"], "surfaced": seen}
    with ScriptedDaemon(home.places.socket, {"memory.why": results}):
        ran = memctl(home, "why", "a.md")
    first_line = (
        "first     c1, 1 d ago: created by extract (claude-code), "
        "session s1, model m, message m7, transcript t.jsonl, reason extracted"
    )
    assert ran.out.splitlines() == [
        "memory    a.md (not there any more)",
        first_line,
        "last      c2, ?: deleted by external",
        "changes   c2 c1",
        "surfaced  last 1 h ago, in session s2",
    ]


@pytest.mark.parametrize(("actor", "is_note"), [("external", True), ("client", False)])
def test_why_says_what_a_change_outside_memd_costs(
    home: Home, actor: str, *, is_note: bool
) -> None:
    """A memory of the person's that another program wrote last names the way back."""
    version = {"change": "c2", "at": "2026-03-03T12:00:00Z", "action": "updated", "actor": actor}
    version |= dict.fromkeys(("client", "session", "model", "reason", "transcript"), "")
    results = {"path": "a.md", "exists": True, "origin": "user", "first": version, "last": version}
    results |= {"changes": ["c2"], "surfaced": None, "shared": None}
    with ScriptedDaemon(home.places.socket, {"memory.why": results}):
        ran = memctl(home, "why", "a.md")
    assert ran.status == 0
    assert ("memctl adopt" in ran.out) == is_note


def test_a_team_memory_says_who_shared_it(home: Home) -> None:
    """Member, device, age and revision, as the server stamped them."""
    by = {"member": "bob", "device": "desk", "at": iso_time(time.time() - 3605), "revision": 7}
    results = {"path": "team/a.md", "exists": True, "first": None, "last": None, "shared": by}
    results |= {"changes": [], "surfaced": None}
    with ScriptedDaemon(home.places.socket, {"memory.why": results}):
        ran = memctl(home, "why", "team/a.md")
    assert "shared by  bob by desk, 1 h ago, revision 7\n" in ran.out


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
        requested = memctl(home, "purge", "--pattern", "-", stdin="sesame open\n")
        tried = memctl(home, "purge", "--path", "a.md", "--dry-run", "--yes")
    assert (requested.status, "--yes" in requested.err, "would be purged" in requested.out) == (
        2,
        True,
        True,
    )
    assert (tried.status, tried.err) == (0, "")
    sent = [
        requested.params for requested in daemon.requested if requested.method == "memory.purge"
    ]
    assert [params["dry_run"] for params in sent] == [True, True]
    assert sent[0]["pattern"] == "sesame open"


def test_a_memory_to_purge_or_to_compare_may_be_named(home: Home) -> None:
    """The name of a memory stands for its path in options as well."""
    listed = {"memories": [{"path": "a/plan.md", "name": "the-plan"}], "next": None}
    answers = {"memory.list": listed, "memory.purge": done(), "memory.diff": {"files": []}}
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        memctl(home, "purge", "--path", "the-plan", "--yes")
        memctl(home, "diff", "--path", "plan")
        memctl(home, "diff", "--path", "gone")
    methods = ("memory.purge", "memory.diff")
    sent = [request.params["path"] for request in daemon.requested if request.method in methods]
    assert sent == ["a/plan.md", "a/plan.md", "gone.md"]


def test_what_is_left_is_told(home: Home) -> None:
    """Files of people in which it still stands, and jobs that may write it again, are named."""
    answer = done() | {"live": ["/m/a.md"], "running": 1, "bodies": [], "texts": {}, "files": []}
    with ScriptedDaemon(home.places.socket, {"memory.purge": answer}):
        ran = memctl(home, "purge", "--pattern", "sesame", "--regex", "--yes")
    assert "/m/a.md" in ran.err
    assert "1 jobs" in ran.err
    assert "nothing is kept of it" in ran.out


def test_a_bare_undo_says_what_it_takes_back(home: Home) -> None:
    """The daemon chooses the change, and the answer or the rehearsal names it."""
    files = [{"path": "a.md", "action": "updated"}]
    answer = {"change": "c3", "undone": "c2", "files": files, "merged": [], "conflicts": []}
    with ScriptedDaemon(home.places.socket, {"memory.undo": answer}) as daemon:
        ran = memctl(home, "undo")
        assert daemon.params("memory.undo").keys() == {"cwd", "request_id"}
    assert (ran.out, ran.err) == (
        "updated a.md\nundo the undo with: memctl undo c3\n",
        "takes back c2\n",
    )
    with ScriptedDaemon(home.places.socket, {"memory.undo": {**answer, "change": None}}):
        assert memctl(home, "undo", "--dry-run").err == "would take back c2\n"

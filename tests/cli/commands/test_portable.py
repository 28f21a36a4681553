"""export and import."""

from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, ScriptedRefusal, Silence

LEFT = [{"name": f"projects/app/memory/{n}\x1b.md", "reason": "it is a link"} for n in range(25)]
DONE: dict[str, Any] = {
    "path": "/x/out.tar.gz",
    "files": 7,
    "bytes": 5000,
    "projects": [{"id": "app", "name": "app", "files": 7}],
    "left_out": [],
    "left_out_more": 0,
    "problems": [],
}


def test_the_daemon_gets_absolute_paths(home: Home) -> None:
    """Only the client knows where it stands; parts come as a list."""
    with ScriptedDaemon(home.places.socket, {"export": DONE}) as daemon:
        plain = memctl(home, "export", "out.tar.gz")
        more = memctl(
            home, "export", "out", "--project", "../b", "--with", "team, history", "--json"
        )
        every = memctl(home, "export", "out", "--all")
    calls = [each.params for each in daemon.requested if each.method == "export"]
    here = calls[0]["dest"].removesuffix("/out.tar.gz")
    assert here.startswith("/")
    assert calls[0].items() >= {"cwd": home.cwd, "dest": f"{here}/out.tar.gz"}.items()
    assert not {"project", "all", "with"} & calls[0].keys()
    assert calls[1]["with"] == ["team", "history"]
    assert calls[1]["project"] == f"{here.rpartition('/')[0]}/b"
    assert calls[2]["all"] is True
    assert more.json == DONE
    assert (plain.status, every.status, plain.err) == (0, 0, "")
    assert "7, 4.9 KiB" in plain.out
    assert "app (7)" in plain.out


def test_what_is_left_out_is_named(home: Home) -> None:
    """The first ones with their reasons on standard error, escaped; how many more there are."""
    problem = "the archive is too large"
    answer = DONE | {"left_out": LEFT, "left_out_more": 3, "problems": [problem]}
    with ScriptedDaemon(home.places.socket, {"export": answer}):
        ran = memctl(home, "export", "out")
        quiet = memctl(home, "export", "out", "--quiet")
    assert ran.status == 0
    assert "left out: projects/app/memory/0\\x1b.md: it is a link" in ran.err
    assert "\x1b" not in ran.err
    assert "left out: 8 more; --json names them" in ran.err
    assert problem in ran.err
    assert quiet.err == ""


def test_a_refusal_is_told(home: Home) -> None:
    """The sentence and the status are those of the error."""
    refusal = ScriptedRefusal(1072, "the export cannot be written", {"kind": "destination_refused"})
    with ScriptedDaemon(home.places.socket, {"export": refusal}):
        ran = memctl(home, "export", "out")
    assert ran.status == 1
    assert "the export cannot be written" in ran.err


@pytest.mark.parametrize("words", [["export"], ["export", "out", "--with", "secrets"]])
def test_a_wrong_line_is_told_before_anything_is_asked(home: Home, words: list[str]) -> None:
    """Without a destination, or with a part that there is not, nothing is asked."""
    with ScriptedDaemon(home.places.socket, {"export": DONE}) as daemon:
        ran = memctl(home, *words)
    assert ran.status == 2
    assert not [each for each in daemon.requested if each.method == "export"]


FILES = [
    {"path": "a.md", "action": "created", "name": ""},
    {"path": "b-2.md", "action": "beside", "name": "b.md"},
]
FOLDER: dict[str, Any] = {
    "id": "app",
    "directory": "/m\x1b",
    "change": "c7",
    "proposal": "",
    "files": FILES,
    "files_more": 0,
    "same": 3,
}
BROUGHT: dict[str, Any] = {
    "kind": "memd",
    "dry_run": False,
    "projects": [FOLDER],
    "agents": [FOLDER | {"id": "project/reviewer", "change": "c8"}],
    "notes": 2,
    "past_changes": 9,
    "learning": ["j1"],
    "left_out": LEFT,
    "left_out_more": 3,
    "problems": ["one thing failed"],
    "diff": "",
}


def test_an_import_is_told(home: Home) -> None:
    """What came, how to take it back, and what was left out; paths are absolute, --json exact."""
    with ScriptedDaemon(home.places.socket, {"import": BROUGHT}) as daemon:
        ran = memctl(home, "import", "in.tar.gz", "--accept", "--project", "app=../x")
        exact = memctl(
            home, "import", "in", "--from", "mem0", "--project", "b", "--json", "--learn"
        )
    calls = [each.params for each in daemon.requested if each.method == "import"]
    here = calls[0]["source"].removesuffix("/in.tar.gz")
    assert calls[0]["project"] == [f"app={here.rpartition('/')[0]}/x"]
    assert calls[0]["accept"] is True
    assert calls[1].items() >= {"kind": "mem0", "project": [f"{here}/b"], "learn": True}.items()
    assert not {"accept", "dry_run"} & calls[1].keys()
    assert exact.json == BROUGHT
    assert ran.status == 0
    for words in (
        "app in /m\\x1b: 1 put beside another of its name, 1 created, 3 here already",
        "put beside another of its name: b-2.md, from b.md",
        f"memctl --cwd {here.rpartition('/')[0]}/x undo c7\n",
        "memctl undo c8 --agent reviewer --scope project",
        "session notes: 2",
        "past changes: 9",
        "memctl job list",
    ):
        assert words in ran.out
    assert "left out: 8 more" in ran.err
    assert "one thing failed" in ran.err


def test_an_import_that_takes_nothing_is_no_success(home: Home) -> None:
    """Where everything is left out, the reasons and the status say so."""
    empty = {"projects": [], "agents": [], "notes": 0, "past_changes": 0, "learning": []}
    with ScriptedDaemon(home.places.socket, {"import": BROUGHT | empty}):
        ran = memctl(home, "import", "in.tar.gz", "--accept")
    assert (ran.status, "nothing was taken" in ran.err, "left out: " in ran.err) == (1, True, True)


@pytest.mark.parametrize(
    ("more", "arguments"), [({"diff": "--- a\n"}, []), ({}, ["--dry-run"]), ({}, ["--learn"])]
)
def test_an_import_may_rightly_take_nothing(
    home: Home, more: dict[str, object], arguments: list[str]
) -> None:
    """A diff is a result, a dry run takes nothing, and what was learned before is not again."""
    empty = {"projects": [], "agents": [], "notes": 0, "past_changes": 0, "learning": []}
    with ScriptedDaemon(home.places.socket, {"import": BROUGHT | empty | more}):
        ran = memctl(home, "import", "in", *arguments)
    assert (ran.status, "nothing was taken" in ran.err) == (0, False)


def test_a_proposal_and_a_dry_run_say_what_they_are(home: Home) -> None:
    """A proposal names the commands that decide it, a dry run what would be; a diff is printed."""
    proposal = FOLDER | {"change": None, "proposal": "p4"}
    answer = BROUGHT | {"projects": [proposal], "agents": [], "diff": "--- a\n+++ b\n"}
    with ScriptedDaemon(home.places.socket, {"import": answer}):
        ran = memctl(home, "import", "in")
    assert "memctl dream accept p4" in ran.out
    assert "would be created: a.md" in ran.out
    assert "nothing is changed yet" in ran.out
    assert ran.out.startswith("--- a\n")
    with ScriptedDaemon(home.places.socket, {"import": answer | {"dry_run": True}}):
        ran = memctl(home, "import", "in", "--dry-run")
    assert "would be created: a.md" in ran.out


@pytest.mark.parametrize(("words", "said"), [(["--accept"], True), ([], False)])
def test_an_import_without_an_answer_is_no_riddle(
    home: Home, words: list[str], *, said: bool
) -> None:
    """Who stops waiting for an accepted import reads what becomes of it, and how to undo it."""
    with ScriptedDaemon(home.places.socket, {"import": Silence()}):
        ran = memctl(home, "--timeout", "0.05", "import", "x.zip", *words)
    assert ran.status == 75
    assert ("memctl undo takes it back" in ran.err) is said

"""export."""

from typing import Any

import pytest

from memd.testing.scripted_daemon import ScriptedDaemon, ScriptedRefusal
from tests.cli.driver import memctl
from tests.cli.home import Home

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

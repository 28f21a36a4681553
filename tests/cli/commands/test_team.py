"""team: joining and leaving, what goes out and comes in, and what waits for a person."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from memd.cli.invocation import Surroundings
from memd.cli.running import run
from tests.cli.driver import Stream, memctl, surroundings
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, SentProgress

HELD = {"key": "a.md", "hash": "h", "reason": "only_here", "detail": ""}
LEFT_OUT = {"key": "c.md", "revision": 3, "hash": "h", "rule": "no type"}
CONFLICT = {
    "key": "b.md", "ours": "h1", "theirs": "h2", "base": "", "member": "bob", "change": "c4",
    "at": 0.0,
}  # fmt: skip
SYNC: dict[str, Any] = {
    "taken": ["team/x.md"], "merged": [], "removed": [], "sent": ["team/y.md"], "held": [],
    "conflicts": [], "left_out": [], "change": "c7", "waits": "", "left": 0, "waiting": 0,
}  # fmt: skip
NOTHING = {**SYNC, "taken": [], "sent": [], "change": ""}
PREVIEW = {
    "server": "https://team.example", "remote": "github.com/acme/app", "root": "/src/app",
    "directory": "/m", "device": "laptop", "sends": ["team/y.md"], "bytes": 2048,
    "left": [{**HELD, "reason": "secret", "detail": "aws-key in line 3"}], "code_needed": True,
    "joined": False,
}  # fmt: skip
JOINED = {
    "server": "https://team.example", "remote": "github.com/acme/app", "member": "anna",
    "device": "laptop", "role": "member", "types": {"project": 2, "feedback": 1},
    "newest": [
        {"path": "team/x.md", "description": "freeze\n\x1b[31mon", "member": "bob", "at": 1.0}
    ],
    "sync": SYNC,
}  # fmt: skip
STATUS: dict[str, Any] = {
    "server": "https://team.example", "remote": "github.com/acme/app", "member": "anna",
    "device": "laptop", "state": "equal", "entries": 12, "outgoing": [], "held": [],
    "conflicts": [], "left_out": [], "mark": "e.4", "pulled_at": 0.0, "pushed_at": 0.0,
    "paused": "", "until": 0.0, "waits": "", "review": False,
}  # fmt: skip


def _join(params: dict[str, Any]) -> dict[str, Any]:
    return {"preview": PREVIEW, "joined": None if params.get("preview") else JOINED}


@contextmanager
def _person(home: Home, *lines: str) -> Iterator[tuple[Surroundings, Stream]]:
    """Give surroundings whose standard input is a terminal on which a person typed these lines."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, encoding="utf-8") as stdin:
        os.write(ours, "".join(f"{line}\n" for line in lines).encode())
        around = surroundings(home, terminal=True)
        stderr = Stream(terminal=True)
        yield Surroundings(around.environ, around.home, stdin, around.stdout, stderr), stderr
        os.close(ours)


def _typed(home: Home, *words: str, lines: tuple[str, ...]) -> tuple[int, str, str]:
    with _person(home, *lines) as (around, stderr):
        status = run(["--cwd", home.cwd, "--no-start", *words], around)
        assert isinstance(around.stdout, Stream)
        return status, around.stdout.getvalue(), stderr.getvalue()


def test_joining_shows_asks_and_reads_the_code(home: Home) -> None:
    """The preview comes first, then the question, then the code, which is sent once."""
    with ScriptedDaemon(home.places.socket, {"team.join": _join}) as daemon:
        status, out, err = _typed(
            home, "team", "join", "https://team.example", lines=("y", "code-1234")
        )
    assert status == 0
    asked = [call.params for call in daemon.requested if call.method == "team.join"]
    assert asked[0] == {"cwd": home.cwd, "url": "https://team.example", "preview": True}
    assert asked[1].pop("workDoneToken")
    assert asked[1] == {"cwd": home.cwd, "url": "https://team.example", "code": "code-1234"}
    assert "sends       1 files, 2.0 KiB: team/y.md" in out
    assert "keeps back  team/a.md: secret (aws-key in line 3)" in out
    assert "joined      github.com/acme/app" not in out.split("keeps back")[0]
    assert "anna by laptop, member" in out
    assert "1 feedback, 2 project" in out
    assert "bob, " in out
    assert "\x1b[31m" not in out
    assert err.index("join? [y/N]") < err.index("invitation code: ")


@pytest.mark.parametrize("answer", ["", "n", "no", "maybe"])
def test_who_does_not_say_yes_joins_nothing(home: Home, answer: str) -> None:
    """Anything but yes leaves everything as it was."""
    with ScriptedDaemon(home.places.socket, {"team.join": _join}) as daemon:
        status, _, err = _typed(home, "team", "join", "https://team.example", lines=(answer,))
    assert (status, daemon.methods) == (1, ["team.join"])
    assert "nothing was done" in err


def test_nobody_there_joins_nothing(home: Home) -> None:
    """Without a terminal and without --yes nothing is joined, whatever standard input says."""
    with ScriptedDaemon(home.places.socket, {"team.join": _join}) as daemon:
        ran = memctl(home, "team", "join", "https://team.example", stdin="y\ncode\n")
        coded = memctl(home, "team", "join", "https://team.example", "--yes", stdin="code\n")
    assert (ran.status, coded.status) == (2, 2)
    assert "--yes" in ran.err
    assert "--code-file" in coded.err
    assert all(call.params["preview"] for call in daemon.requested if call.method == "team.join")


def test_an_empty_code_is_called_empty(home: Home) -> None:
    """Enter at the question and an empty file are no missing person."""
    words = ("team", "join", "https://team.example")
    with ScriptedDaemon(home.places.socket, {"team.join": _join}):
        status, _, err = _typed(home, *words, lines=("y", ""))
        piped = memctl(home, *words, "--yes", "--code-file", "-", stdin="\n")
    assert (status, piped.status) == (2, 2)
    assert "the code is empty" in err
    assert "the code is empty" in piped.err


def test_who_has_joined_is_told_so(home: Home) -> None:
    """A second join asks nobody in vain: it says that the team is joined, and how a code comes."""
    there = {"preview": {**PREVIEW, "joined": True}, "joined": None}
    words = ("team", "join", "https://team.example")
    with ScriptedDaemon(home.places.socket, {"team.join": there}):
        ran = memctl(home, *words, "--yes")
        _, out, _ = _typed(home, *words, lines=("n",))
    assert ran.status == 2
    assert "has joined this team already" in ran.err
    assert "--code-file" in ran.err
    assert "a new one replaces the token" in out


def test_a_script_joins_with_a_file(home: Home) -> None:
    """--yes and --code-file ask nothing, --json prints the answer alone."""
    Path(home.cwd, "code").write_text("code-1\n")
    words = ("team", "join", "https://team.example", "--repo", "github.com/a/b", "--yes", "--json")
    with ScriptedDaemon(home.places.socket, {"team.join": _join}) as daemon:
        ran = memctl(home, *words, "--code-file", f"{home.cwd}/code")
        piped = memctl(home, *words, "--code-file", "-", stdin="code-2\n")
    assert ran.json == piped.json == {"preview": PREVIEW, "joined": JOINED}
    codes = [call.params.get("code") for call in daemon.requested if call.method == "team.join"]
    assert codes == [None, "code-1", None, "code-2"]
    assert daemon.params("team.join")["repo"] == "github.com/a/b"


def test_the_code_is_not_shown(home: Home) -> None:
    """The terminal does not echo while the code is typed, and does so again afterwards."""
    program = (
        "import sys; from memd.cli.main import main;"
        f"sys.exit(main(['--cwd', {home.cwd!r}, '--no-start', 'team', 'join', 'https://t.example']))"
    )
    with ScriptedDaemon(home.places.socket, {"team.join": _join}) as daemon:
        terminal, inner = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            env=dict(home.environ),
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
        os.close(inner)
        shown = b""
        for prompt, typed in ((b"join? [y/N] ", b"y\n"), (b"invitation code: ", b"code-77\n")):
            while prompt not in shown:
                shown += os.read(terminal, 1024)
            os.write(terminal, typed)
        with suppress(OSError):  # the other side is gone
            while more := os.read(terminal, 1024):
                shown += more
        os.close(terminal)
        assert child.wait() == 0
    assert daemon.params("team.join")["code"] == "code-77"
    assert b"code-77" not in shown


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "paused", "paused": "401", "until": 1.0}, "team join with a new code"),
        ({"state": "paused", "paused": "push 403"}, "as a reader who changed a file"),
        ({"state": "paused", "paused": "push 415"}, "paused: push 415"),
        ({"state": "off", "paused": "team.enabled is false"}, "off: team.enabled is false"),
        ({"state": "waits", "waits": "12 would go"}, "memctl team accept: 12 would go"),
        ({"outgoing": [f"team/{n}.md" for n in range(12)]}, "team/9.md and 2 more"),
        ({"held": [HELD]}, "held     team/a.md: only here"),
        ({"conflicts": [CONFLICT]}, "conflict  team/b.md: memctl team resolve"),
        ({"left_out": [LEFT_OUT]}, "left out  team/c.md: no type"),
    ],
)
def test_status_says_what_waits(home: Home, change: dict[str, Any], words: str) -> None:
    """What a person has to know or to decide is a line of its own."""
    with ScriptedDaemon(home.places.socket, {"team.status": {**STATUS, **change}}):
        ran = memctl(home, "team", "status")
    assert ran.status == 0
    assert words in ran.out
    assert "anna by laptop" in ran.out


def test_a_pull_says_what_it_did(home: Home) -> None:
    """Paths taken and sent, how to undo it; on a terminal how far it is."""
    told = {"method": "$/progress", "params": {"token": 2, "value": {"files": 500}}}
    with ScriptedDaemon(home.places.socket, {"team.pull": SentProgress(SYNC, before=(told,))}):
        ran = memctl(home, "team", "pull")
        live = memctl(home, "team", "pull", terminal=True)
    assert ran.out == "taken: team/x.md\nsent: team/y.md\nundo what came with: memctl undo c7\n"
    assert "500 files of the team" in live.err
    assert "500" not in ran.err


def test_what_waits_for_a_person_is_a_status(home: Home) -> None:
    """A conflict, or a server that must be accepted first, ends with 1 and says what helps."""
    waits = {**NOTHING, "conflicts": [CONFLICT], "waits": "the server is empty"}
    with ScriptedDaemon(home.places.socket, {"team.pull": waits}):
        ran = memctl(home, "team", "pull")
    assert ran.status == 1
    assert "memctl team resolve team/b.md" in ran.err
    assert "the server is empty: memctl team accept" in ran.err


def test_what_waits_is_not_called_equal(home: Home) -> None:
    """Held files and conflicts of earlier syncs are counted, and status does not hide them."""
    status = {**STATUS, "conflicts": [CONFLICT]}
    answers = {"team.pull": {**NOTHING, "waiting": 9}, "team.status": status}
    with ScriptedDaemon(home.places.socket, answers):
        pulled, shown = memctl(home, "team", "pull"), memctl(home, "team", "status")
    assert "9 held or in conflict wait for you: memctl team status" in pulled.out
    assert "equal with the team, but for what waits for you" in shown.out


def test_review_shows_before_it_sends(home: Home) -> None:
    """With push = "review" the diff comes first; without it nothing is asked."""
    diffs = {"files": [{"path": "team/y.md", "state": "new", "diff": "+text\n"}]}
    script = {"team.diff": diffs, "team.push": NOTHING}
    with ScriptedDaemon(home.places.socket, {**script, "team.status": STATUS}) as daemon:
        plain = memctl(home, "team", "push")
        assert daemon.methods == ["team.status", "team.push"]
    with ScriptedDaemon(
        home.places.socket, {**script, "team.status": {**STATUS, "review": True}}
    ) as daemon:
        nobody = memctl(home, "team", "push")
        status, _, err = _typed(home, "team", "push", lines=("y",))
        forced = memctl(home, "team", "push", "--yes")
    assert daemon.methods == [
        "team.status", "team.diff", "team.status", "team.diff", "team.push", "team.push",
    ]  # fmt: skip
    assert (plain.status, nobody.status, status, forced.status) == (0, 2, 0, 0)
    assert plain.out == "nothing to do: equal with the team\n"
    assert "+text" in err
    assert "send this?" in err


def test_sharing_shows_the_memory_first(home: Home) -> None:
    """The person reads what the others will read before it moves."""
    read = {"path": "x.md", "content": "all of it", "hash": "h", "name": "x"}
    shared = {"change": "c9", "path": "team/x.md"}
    script = {"memory.read": read, "team.share": shared}
    with ScriptedDaemon(home.places.socket, script) as daemon:
        status, out, err = _typed(home, "team", "share", "x.md", lines=("yes",))
        nobody = memctl(home, "team", "share", "x.md")
        forced = memctl(home, "team", "share", "x.md", "--yes")
    assert (status, nobody.status, forced.status) == (0, 2, 0)
    assert "all of it" in err
    assert out == f"shared as team/x.md; undo with: memctl --cwd {home.cwd} undo c9\n"
    assert daemon.params("team.share")["path"] == "x.md"
    assert daemon.methods == ["memory.read", "team.share", "memory.read", "team.share"]


def test_a_removal_needs_a_reason(home: Home) -> None:
    """Nothing is removed for others without a word of why."""
    with ScriptedDaemon(home.places.socket, {"team.remove": NOTHING}) as daemon:
        bare = memctl(home, "team", "remove", "team/x.md")
        ran = memctl(home, "team", "remove", "team/x.md", "--reason", "over")
    assert (bare.status, ran.status) == (2, 0)
    assert daemon.methods == ["team.remove"]
    params = daemon.params("team.remove")
    assert (params["path"], params["reason"]) == ("team/x.md", "over")


@pytest.mark.parametrize(
    ("words", "method", "params"),
    [
        (("restore", "x.md", "--revision", "4"), "team.restore", {"path": "x.md", "revision": 4}),
        (("keep", "x.md"), "team.keep", {"path": "x.md"}),
        (("drop", "x.md"), "team.drop", {"path": "x.md"}),
        (("resolve", "x.md", "ours"), "team.resolve", {"path": "x.md", "how": "ours"}),
    ],
)
def test_a_decision_is_carried_out(
    home: Home, words: tuple[str, ...], method: str, params: dict[str, Any]
) -> None:
    """Each says what was done, with the parameters that were given."""
    with ScriptedDaemon(home.places.socket, {method: SYNC}) as daemon:
        ran = memctl(home, "team", *words)
    sent = daemon.params(method)
    assert sent.pop("workDoneToken")
    assert sent == {"cwd": home.cwd, **params}
    assert (ran.status, ran.out.startswith("taken: ")) == (0, True)


def test_what_is_dropped_is_named(home: Home) -> None:
    """A dropped file is named, with what brings it back."""
    with ScriptedDaemon(home.places.socket, {"team.drop": {**NOTHING, "change": "c7"}}):
        file = memctl(home, "team", "drop", "a.md")
    assert file.out == "dropped: team/a.md\nundo with: memctl undo c7\n"


def test_accepting_says_what_waits_and_asks(home: Home) -> None:
    """What the server wants is shown first; where nothing waits nothing is asked."""
    waits = {**STATUS, "state": "waits", "waits": "12 of 20 files would be removed"}
    answers = {"team.status": waits, "team.accept": SYNC}
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        status, _, err = _typed(home, "team", "accept", lines=("y",))
        nobody = memctl(home, "team", "accept")
    assert (status, nobody.status) == (0, 2)
    assert "12 of 20 files would be removed" in err
    assert daemon.methods == ["team.status", "team.accept", "team.status"]
    with ScriptedDaemon(home.places.socket, {"team.status": STATUS}):
        assert memctl(home, "team", "accept").err == "nothing waits to be accepted\n"


def test_leaving_says_what_became_of_token_and_files(home: Home) -> None:
    """A token that the server could not take back is told, and how the files come back."""
    left = {
        "server": "https://team.example", "remote": "github.com/acme/app", "revoked": False,
        "why": "no answer", "change": "c3",
    }  # fmt: skip
    with ScriptedDaemon(home.places.socket, {"team.leave": left}) as daemon:
        ran = memctl(home, "team", "leave", "--remove")
    assert daemon.params("team.leave") == {"cwd": home.cwd, "remove": True}
    assert ran.out.split("\n")[:4] == [
        "left github.com/acme/app on https://team.example",
        "the token is still good on the server: no answer",
        "an administrator of the server ends it: memd-team token list, memd-team token revoke",
        "undo the removal with: memctl undo c3",
    ]


def test_versions_members_and_differences_are_listed(home: Home) -> None:
    """One line each; what colleagues wrote obeys no terminal."""
    version = {
        "path": "team/x.md", "revision": 7, "at": 1.0, "member": "bob", "device": "desk",
        "hash": "h", "size": 2048, "reason": "",
    }  # fmt: skip
    gone = {**version, "revision": 9, "hash": "", "reason": "over\n\x1b[31mnow"}
    member = {"member": "bob", "devices": ["desk"], "entries": 3, "at": 1.0}
    answers = {
        "team.log": {"versions": [gone, version]},
        "team.members": {"members": [member]},
        "team.diff": {"files": []},
    }
    with ScriptedDaemon(home.places.socket, answers) as daemon:
        log = memctl(home, "team", "log", "x.md", "--limit", "2", terminal=True)
        members = memctl(home, "team", "members")
        diff = memctl(home, "team", "diff")
    lines = log.out.splitlines()
    assert "removed: over \\u001b[31mnow" in lines[0]
    assert "bob by desk" in lines[1]
    assert members.out.startswith("bob  3 entries  last ")
    assert (diff.out.strip(), diff.err) == ("", "nothing differs from what the team has\n")
    assert daemon.params("team.log") == {"cwd": home.cwd, "path": "x.md", "limit": 2}

"""An agent that is fully lost: nothing outside the workspace changes, and nothing leaks."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from memd.agent.answer import OUTPUT_BYTES
from memd.agent.step import MALFORMED
from memd.agent.workspace import BYTES, FILES
from tests.agent.home import CANARY, NOW, TOKEN, Home, never
from tests.agent.hostile_calls import VARIANTS, generated, random_lines
from tests.corpora import folder

KINDS = 31
_LONGEST = 2.0  # seconds of CPU that one hostile call may take


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with canaries."""
    return Home(tmp_path)


class _Events:
    """What the interpreter was asked to do while hostile calls ran."""

    def __init__(self) -> None:
        self.on = False
        self.bad: list[str] = []

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Note what no tool may do: processes, sockets, and any change of a file."""
        if not self.on:
            return
        writes = event == "open" and isinstance(args[2], int) and bool(args[2] & _WRITING)
        if writes or event.startswith(_BANNED):
            self.bad.append(f"{event} {args!r}")


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_BANNED = (
    "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "pty.",
    "socket.connect", "socket.bind", "socket.__new__", "os.remove", "os.rename", "os.rmdir",
    "os.mkdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate", "os.utime",
    "os.putenv", "shutil.",
)  # fmt: skip
_EVENTS = _Events()
sys.addaudithook(_EVENTS.hear)  # stays for the life of the process, and is deaf unless a test asks


@pytest.mark.parametrize("of_dream", [False, True])
def test_a_thousand_hostile_calls_do_nothing(home: Home, *, of_dream: bool) -> None:
    """Whatever is called: no write, no process, no socket, no canary in an answer, caps held."""
    kinds = dict(generated(home))
    assert len(kinds) == KINDS
    assert {len(calls) for calls in kinds.values()} == {VARIANTS}
    me = psutil.Process()
    before = home.snapshot()
    resources = (len(me.children()), len(me.net_connections("all")), me.num_threads())
    answers: list[str] = []
    refused = 0
    slowest = 0.0
    with home.dream() if of_dream else home.workspace(origin="tool") as workspace:
        descriptors = me.num_fds()
        for calls in kinds.values():
            for tool, given in calls:
                begun = time.thread_time()
                _EVENTS.on = True
                result = workspace.call(tool, given, NOW, never)
                _EVENTS.on = False
                slowest = max(slowest, time.thread_time() - begun)
                answers.append(result.text)
                refused += bool(result.fault)
        assert me.num_fds() <= descriptors
        proposal = workspace.proposal()
    assert _EVENTS.bad == []
    assert home.snapshot() == before
    left = (len(me.children()), len(me.net_connections("all")), me.num_threads())
    # What earlier tests of this process have left may end meanwhile; nothing may come.
    assert all(now <= then for now, then in zip(left, resources, strict=True))
    assert len(answers) >= 1000
    reported = "\n".join(answers)
    assert CANARY not in reported
    assert TOKEN not in reported
    assert "root:" not in reported
    assert max(map(len, answers)) < OUTPUT_BYTES * 3
    assert len(proposal.files) <= FILES
    assert sum(len(file.content or b"") for file in proposal.files) <= BYTES
    assert proposal.removed == ()
    # What a dream's model makes of a rule is judged when it is done.
    rules = [file for file in proposal.files if b"type: feedback" in (file.content or b"")]
    assert of_dream or rules == []
    assert all(TOKEN.encode() not in (file.content or b"") for file in proposal.files)
    assert {file.path.split("/")[0] for file in proposal.files} <= {
        "flood", "A.MD", "evil.md", *(file.path for file in rules),
        *(file.path for file in proposal.files if file.path.startswith(("bomb", "x"))),
    }  # fmt: skip
    assert refused > len(answers) * 0.8
    assert slowest < _LONGEST


def test_commands_that_others_thought_of_do_nothing(home: Home) -> None:
    """Each bad command of the corpus is refused or harmless."""
    listed = json.loads((folder("commands") / "bad_commands.json").read_text(encoding="utf-8"))
    before = home.snapshot()
    with home.workspace() as workspace:
        for item in listed:
            line = item["cmd"].replace("$R", str(home.memory))
            line = line.replace("$S", f"{home.path}/secret.txt")
            line = line.replace("$O", f"{home.path}/made-by-agent")
            _EVENTS.on = True
            result = workspace.call("Bash", {"command": line}, NOW, never)
            _EVENTS.on = False
            assert CANARY not in result.text, line
            assert "root:" not in result.text, line
    assert _EVENTS.bad == []
    assert home.snapshot() == before


def _random_commands(home: Home, rounds: int) -> None:
    """Run so many command lines put together by chance; nothing may leak, change or raise."""
    with home.workspace() as workspace:
        for line in random_lines(home, rounds):
            _EVENTS.on = True
            result = workspace.call("Bash", {"command": line}, NOW, never)
            _EVENTS.on = False
            assert CANARY not in result.text, line
            assert TOKEN not in result.text, line
            assert "root:" not in result.text, line
    assert _EVENTS.bad == []


def test_command_lines_by_chance_do_nothing(home: Home) -> None:
    """Two thousand lines of commands, options and bad paths leave everything as it was."""
    before = home.snapshot()
    _random_commands(home, 2_000)
    assert home.snapshot() == before


@pytest.mark.soak
def test_a_hundred_thousand_command_lines_do_nothing(home: Home) -> None:
    """The same at full length."""
    before = home.snapshot()
    _random_commands(home, 100_000)
    assert home.snapshot() == before


def test_a_hostile_environment_changes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that steer real commands are not read by these."""
    with home.workspace() as workspace:
        plain = workspace.call("Bash", {"command": "ls -l | head"}, NOW, never)
        for name in ("GREP_OPTIONS", "LS_COLORS", "TZ", "POSIXLY_CORRECT", "HOME", "IFS", "PATH"):
            monkeypatch.setenv(name, f"{home.path}/secret.txt")
        assert workspace.call("Bash", {"command": "ls -l | head"}, NOW, never) == plain
        assert workspace.call("Bash", {"command": "cat ~/x"}, NOW, never).fault


def test_a_huge_answer_is_cut(home: Home) -> None:
    """Endless lines and endless files end at the bound of an answer, whatever asks for them."""
    (home.project / "big.txt").write_text("line of text\n" * 15_000, encoding="utf-8")
    (home.project / "wide.txt").write_text("w" * 300_000, encoding="utf-8")
    with home.workspace() as workspace:
        for name in ("big.txt", "wide.txt"):
            path = f"{home.project}/{name}"
            for tool, given in (
                ("Read", {"file_path": path}),
                ("Read", {"file_path": path, "limit": 1_000_000}),
                ("Grep", {"pattern": ".", "path": path, "output_mode": "content", "head_limit": 0}),
                ("Bash", {"command": f"cat {path} {path} {path}"}),
                ("Bash", {"command": f"tail -n 1000000 {path}"}),
                ("Bash", {"command": f"grep -n '' {path}"}),
            ):
                answer = workspace.call(tool, given, NOW, never).text
                assert len(answer) < 70_000


def test_time_ends_a_call(home: Home) -> None:
    """When the time of a call is over, it stops where it is and says so."""
    ticks = iter([False] * 4)
    with home.workspace() as workspace:
        overdue = workspace.call(
            "Bash", {"command": f"grep -r x {home.project}"}, NOW, lambda: next(ticks, True)
        )
        never_begun = workspace.call("Read", {"file_path": "a.md"}, NOW, lambda: True)
    assert "the time for this call is over" in overdue.text
    assert never_begun.fault


def test_junk_is_malformed_and_never_raises(home: Home) -> None:
    """Any JSON as input of any tool is answered in words."""
    with home.workspace() as workspace:
        inputs: tuple[Any, ...] = (
            [],
            "x",
            5,
            None,
            True,
            {"a": {"b": [1] * 50}},
            {"file_path": 1.5},
        )
        for junk in inputs:
            for tool in ("Read", "Write", "Edit", "Bash", "Grep", "Glob"):
                assert workspace.call(tool, junk, NOW, never).fault == MALFORMED

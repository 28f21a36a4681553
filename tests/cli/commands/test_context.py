"""context show, list and forget."""

import time
from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

THRESHOLDS = {"window": 200_000, "warn": 147_000, "urgent": 162_000, "auto": 167_000}
THRESHOLDS["block"] = 177_000
ROW: dict[str, Any] = {
    "session": "4f2a-9c",
    "thresholds": THRESHOLDS,
    "conversation": "",
    "at": 0.0,
    "model": "claude-sonnet-5-5",
    "messages": 1_200,
    "tokens": 150_000,
    "source": "usage",
    "level": "warn",
    "breaks": 2,
    "missed": 90_000,
}
AGENT = {**ROW, "conversation": "agent\x1b[31m-1", "model": "", "breaks": 0}
STORED = {"tool_use_id": "t1", "action": "spill", "size": 64_000, "path": "/p/s/t1.txt"}
VIEW: dict[str, Any] = {
    "session": "4f2a-9c",
    "conversations": [ROW, AGENT],
    "decisions": {"keep": 7, "spill": 9},
    "largest": [{**STORED, "path": f"/p/s/t{number}.txt"} for number in range(9)],
    "stored": 576_000,
}
SCRIPT = {
    "context.show": VIEW,
    "context.list": {"contexts": [ROW, AGENT]},
    "context.forget": {"forgotten": True},
}


@pytest.mark.parametrize("words", [("context",), ("context", "show")])
def test_the_newest_session_is_shown(home: Home, words: tuple[str, ...]) -> None:
    """Size, levels, decisions, the largest results and lost caches, one fact a line."""
    VIEW["conversations"] = [{**row, "at": time.time() - 3605} for row in (ROW, AGENT)]
    with ScriptedDaemon(home.places.socket, SCRIPT) as daemon:
        ran = memctl(home, *words)
        terminal = memctl(home, *words, terminal=True)
        as_json = memctl(home, *words, "--json")
    assert daemon.params("context.list") == {"cwd": home.cwd, "limit": 1}
    assert daemon.params("context.show") == {"cwd": home.cwd, "session_id": "4f2a-9c"}
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[:7] == [
        "session 4f2a-9c",
        "conversation 1 h ago",
        "model claude-sonnet-5-5",
        "size 150,000 of 200,000 tokens, warn",
        "1,200 messages; by usage",
        "levels warn 147,000, urgent 162,000, auto 167,000, block 177,000",
        "caches lost 2; 90,000 tokens paid again",
    ]
    assert lines[-7:-4] == ["decided 7 keep, 9 spill", "stored 562.5 KiB", "62.5 KiB /p/s/t0.txt"]
    assert len([line for line in lines if "/p/s/t" in line]) == 5
    assert "\x1b[31m" not in terminal.out
    assert as_json.json == VIEW


def test_one_session_is_shown(home: Home) -> None:
    """The one that is named; one without anything has no more than its name."""
    empty = {**VIEW, "conversations": [], "decisions": {}, "largest": [], "stored": 0}
    with ScriptedDaemon(home.places.socket, {"context.show": {**empty, "session": "77"}}) as daemon:
        ran = memctl(home, "context", "show", "77")
    assert daemon.params("context.show")["session_id"] == "77"
    assert ran.out.split() == ["session", "77"]
    assert (ran.status, "memd has nothing of this session" in ran.err) == (1, True)


def test_conversations_are_listed(home: Home) -> None:
    """One line each, and the session stands first, as completion takes it."""
    with ScriptedDaemon(home.places.socket, SCRIPT) as daemon:
        ran = memctl(home, "context", "list", "--limit", "9")
        as_json = memctl(home, "context", "list", "--json")
    assert daemon.requested[1].params == {"cwd": home.cwd, "limit": 9}
    first, second = ran.out.splitlines()
    assert first.startswith("4f2a-9c  ")
    assert first.endswith("150,000 tokens  warn  claude-sonnet-5-5")
    assert "agent" in second
    assert as_json.json == {"contexts": [ROW, AGENT]}


def test_a_project_without_conversations_says_so(home: Home) -> None:
    """What needs a session fails with a sentence; a list is empty."""
    with ScriptedDaemon(home.places.socket, {**SCRIPT, "context.list": {"contexts": []}}):
        ran = memctl(home, "context")
        listed = memctl(home, "context", "list")
    words = f"no conversation in {home.cwd} was planned by memd\n"
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"memctl: {words}")
    assert (listed.status, listed.out, listed.err) == (0, "", words)


def test_a_session_is_forgotten(home: Home) -> None:
    """Only one that is named."""
    with ScriptedDaemon(home.places.socket, SCRIPT) as daemon:
        ran = memctl(home, "context", "forget", "77")
        unnamed = memctl(home, "context", "forget")
    assert daemon.params("context.forget") == {"cwd": home.cwd, "session_id": "77"}
    assert ran.out == "forgotten\n"
    assert unnamed.status == 2
    with ScriptedDaemon(home.places.socket, {"context.forget": {"forgotten": False}}):
        ran = memctl(home, "context", "forget", "77")
    assert (ran.status, ran.out) == (1, "there was nothing to forget\n")

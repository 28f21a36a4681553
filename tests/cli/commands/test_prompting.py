"""load-prompt and prefetch."""

from typing import Any

from memd.testing.scripted_daemon import ScriptedDaemon
from tests.cli.driver import memctl
from tests.cli.home import Home

LOADED: dict[str, Any] = {
    "prompt": "# Memory\n",
    "enabled": True,
    "reason": None,
    "memory_dir": "/m",
    "index": {"lines": 0, "bytes": 0, "cut": ""},
    "etag": "e",
    "problems": ["a path was refused"],
}
FOUND: dict[str, Any] = {
    "memories": [{"name": "a"}],
    "skipped": None,
    "strategy": "local",
    "session_bytes": 1,
    "block": "the block",
}


def test_the_prompt_is_the_answer(home: Home) -> None:
    """The section goes to standard output, what was refused to standard error."""
    with ScriptedDaemon(home.places.socket, {"load_prompt": LOADED}) as daemon:
        ran = memctl(
            home, "load-prompt", "--mode", "agent", "--agent", "a", "--scope", "local",
            "--skip-index", "--extra-guidelines", "g", "--session", "s",
        )  # fmt: skip
    assert (ran.status, ran.out, ran.err) == (0, "# Memory\n", "a path was refused\n")
    assert daemon.params("load_prompt") == {
        "cwd": home.cwd,
        "session_id": "s",
        "mode": "agent",
        "agent": "a",
        "scope": "local",
        "skip_index": True,
        "extra_guidelines": "g",
    }


def test_memory_that_is_off_says_why(home: Home) -> None:
    """Nothing is printed, the switch is named, and that is no failure."""
    off = {**LOADED, "prompt": None, "enabled": False, "reason": "MEMD_DISABLE", "problems": []}
    with ScriptedDaemon(home.places.socket, {"load_prompt": off}) as daemon:
        ran = memctl(home, "load-prompt")
        assert daemon.params("load_prompt") == {"cwd": home.cwd}
        assert memctl(home, "load-prompt", "--json").json == off
    assert (ran.status, ran.out, ran.err) == (0, "", "memory is off here: MEMD_DISABLE\n")


def test_the_block_is_the_answer(home: Home) -> None:
    """What a client would add is printed; the words of the query make one prompt."""
    with ScriptedDaemon(home.places.socket, {"prefetch": FOUND}) as daemon:
        ran = memctl(
            home, "prefetch", "what", "now?", "--session", "s", "--limit", "3",
            "--strategy", "local", "--tool", "Bash", "--tool", "Edit", "--read", "/f",
        )  # fmt: skip
    assert (ran.status, ran.out, ran.err) == (0, "the block\n", "")
    assert daemon.params("prefetch") == {
        "cwd": home.cwd,
        "session_id": "s",
        "query": "what now?",
        "recent_tools": ["Bash", "Edit"],
        "read_paths": ["/f"],
        "limit": 3,
        "strategy": "local",
    }


def test_nothing_that_fits_is_said(home: Home) -> None:
    """No memory prints nothing; a closed gate is named; each call has a session of its own."""
    sessions = set()
    for skipped, words in ((None, "no memory fits\n"), ("short", "skipped: short\n")):
        nothing = {**FOUND, "memories": [], "block": "", "skipped": skipped}
        with ScriptedDaemon(home.places.socket, {"prefetch": nothing}) as daemon:
            ran = memctl(home, "prefetch", "hello")
            sessions.add(daemon.params("prefetch")["session_id"])
        assert (ran.status, ran.out, ran.err) == (0, "", words)
    assert len(sessions) == 2

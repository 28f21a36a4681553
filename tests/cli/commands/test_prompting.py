"""load-prompt, prefetch and session."""

from typing import Any

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

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


def test_instruction_files_stand_behind_the_prompt(home: Home) -> None:
    """Their text follows the section, or stands alone where memory is off; problems are noted."""
    files = {"text": "# Instruction files\n", "etag": "e", "files": [], "problems": ["x is long"]}
    for prompt, text in (
        ("# Memory\n", "# Memory\n\n# Instruction files\n"),
        (None, files["text"]),
    ):
        answer = {**LOADED, "prompt": prompt, "problems": [], "instructions": files}
        with ScriptedDaemon(home.places.socket, {"load_prompt": answer}) as daemon:
            ran = memctl(home, "load-prompt", "--instructions", "union", "--quiet")
            noted = memctl(home, "load-prompt", "--instructions", "union")
        assert daemon.params("load_prompt") == {"cwd": home.cwd, "instructions": "union"}
        assert (ran.out, noted.err.endswith("x is long\n")) == (text, True)


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


EXPLANATION: dict[str, Any] = {
    "strategy": "local",
    "note": "no model is configured",
    "candidates": 1200,
    "surfaced_bytes": 2048,
    "cap": 60000,
    "rows": [
        {
            "path": "freeze.md",
            "name": "freeze",
            "score": 5.314,
            "parts": {"bm25": 4.9, "pairs": 0.414},
            "terms": ["merge", "freez"],
            "kept": True,
            "reason": "",
            "last_surfaced": "2020-01-01T00:00:00.000Z",
        },
        {
            "path": "习惯.md",
            "name": "x",
            "score": 0.0,
            "parts": {},
            "terms": [],
            "kept": False,
            "reason": "already read",
            "last_surfaced": None,
        },
    ],
}


def test_an_explanation_has_a_row_for_each_memory(home: Home) -> None:
    """Strategy, counts, and of each memory score, parts, words, last time and outcome are shown."""
    answer = {**FOUND, "explanation": EXPLANATION}
    with ScriptedDaemon(home.places.socket, {"prefetch": answer}) as daemon:
        ran = memctl(home, "prefetch", "--explain", "merge freeze")
        assert daemon.params("prefetch")["explain"] is True
        assert memctl(home, "prefetch", "--explain", "--json", "merge freeze").json == answer
    first, note, head, kept, cut = ran.out.splitlines()
    assert first == "local strategy, 1,200 candidates, session at 2,048 of 60,000 bytes"
    assert note == "no model is configured"
    assert head.split() == ["SCORE", "MEMORY", "PARTS", "WORDS", "SURFACED", "OUTCOME"]
    assert kept.startswith("5.31   freeze.md  bm25 4.90 + pairs 0.41  merge freez  ")
    assert kept.endswith(" ago  brought")
    assert cut.split() == ["0.00", "习惯.md", "-", "-", "never", "already", "read"]
    assert head.index("PARTS") == kept.index("bm25") == cut.index("-") + 2
    assert (ran.status, ran.err) == (0, "")


def test_an_explanation_fits_the_terminal(home: Home) -> None:
    """The path of what is brought stands out, control characters are shown, long lists are cut."""
    many = [f"w{number}" for number in range(30)]
    sly = {**EXPLANATION["rows"][0], "path": "a\x1b[2Jb.md", "terms": many}
    answer = {**FOUND, "explanation": {**EXPLANATION, "rows": [sly]}}
    with ScriptedDaemon(home.places.socket, {"prefetch": answer}):
        ran = memctl(home, "prefetch", "--explain", "freeze", terminal=True, TERM="xterm")
    assert "\x1b[1ma\\u001b[2Jb.md\x1b[0m" in ran.out
    assert " w0 w1 w2 w3 w4 w5 w6 w7 …  " in ran.out


def test_what_went_otherwise_is_noted(home: Home) -> None:
    """Why the local ranker answered, or what is not indexed yet, goes to standard error."""
    said = "3 of 7 memories are not indexed yet"
    for more, words in (({}, ""), ({"memories": [], "block": ""}, "no memory fits\n")):
        with ScriptedDaemon(home.places.socket, {"prefetch": {**FOUND, "note": said, **more}}):
            ran = memctl(home, "prefetch", "hello")
        assert (ran.status, ran.err) == (0, f"{words}{said}\n")

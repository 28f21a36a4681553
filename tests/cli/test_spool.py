"""What the hook keeps of an event that nobody answers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.cli import hook
from memd.testing.scripted_daemon import HangUp, ScriptedDaemon, ScriptedRefusal, Silence
from tests.cli.home import Home
from tests.timing import least_seconds

FILE = str(Path(hook.__file__))
WHERE = {"session_id": "s", "transcript_path": "/t/s.jsonl", "cwd": "/p"}
SAID = {
    "prompt_id": "p",
    "last_assistant_message": 'the answer is "cwd": "/elsewhere"',
    "stop_hook_active": False,
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


def _run(home: Home, event: str, payload: dict[str, Any] | bytes = WHERE, **environ: str) -> None:
    """Run the hook as a client does; nothing may come out of it."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", FILE, "codex", event],
        input=payload if isinstance(payload, bytes) else json.dumps(payload).encode(),
        env={**home.environ, "MEMD_HOOK_NO_START": "1", **environ},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def _spooled(home: Home) -> list[dict[str, Any]]:
    """Return the requests in the spool, the oldest first."""
    folder = Path(home.places.spool)
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("*"))]


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd", "AfterAgent"])
def test_an_end_that_found_no_daemon_is_kept(home: Home, event: str) -> None:
    """It is a request of its own: where the conversation is, and nothing of what was said."""
    environ = {"MEMD_BASE_DIR": "/b", "MEMD_EXTRA_GUIDELINES": "x" * 9000}
    _run(home, event, {**SAID, **WHERE}, **environ)
    (request,) = _spooled(home)
    assert request["method"] == "hook"
    assert request["params"]["client"] == "codex"
    assert request["params"]["event"] == event
    assert request["params"]["environment"] == {"MEMD_BASE_DIR": "/b"}
    assert request["params"]["payload"] == WHERE
    (file,) = Path(home.places.spool).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size <= hook.SPOOL_BYTES
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart", "PostToolUse", "Other"])
def test_no_other_event_is_kept(home: Home, event: str) -> None:
    """What only an answer would be good for is gone."""
    _run(home, event)
    assert not os.path.exists(home.places.spool)


@pytest.mark.parametrize("answer", [Silence(), HangUp()])
def test_what_was_not_answered_is_kept(home: Home, answer: Any) -> None:
    """A daemon that hangs, or that died over the event, has not taken it."""
    with ScriptedDaemon(home.places.socket, {"hook": answer}):
        _run(home, "Stop")
    assert len(_spooled(home)) == 1


@pytest.mark.parametrize("answer", [None, ScriptedRefusal(1000, "no")])
def test_what_was_answered_is_not_kept(home: Home, answer: Any) -> None:
    """Whatever the answer was, it would be the same again."""
    with ScriptedDaemon(home.places.socket, {"hook": answer}):
        for _ in range(5):  # the machine may be slower than the hook waits
            _run(home, "PreCompact")
            if not os.path.exists(home.places.spool):
                return
    assert len(_spooled(home)) < 5


def test_a_payload_that_is_too_long_is_kept_short(home: Home) -> None:
    """What no frame could hold says as well where its conversation is."""
    long = {"last_assistant_message": "x" * hook.PAYLOAD_BYTES}
    _run(home, "Stop", {**WHERE, **long})
    assert _spooled(home)[0]["params"]["payload"] == WHERE


def test_what_says_too_much_of_where_is_not_kept(home: Home) -> None:
    """An event beyond its bound is dropped, never cut."""
    _run(home, "Stop", {**WHERE, "cwd": "/" + "x" * 3000, "transcript_path": "/" + "x" * 3000})
    assert _spooled(home) == []


def test_of_too_many_the_oldest_go(home: Home) -> None:
    """The spool stays bounded, with the drafts of killed hooks; a strange entry stops nobody."""
    folder = Path(home.places.spool)
    (folder / "0").mkdir(parents=True)
    for number in range(hook.SPOOL_FILES):
        (folder / f"{number:020}-1").write_text("{}")
    (folder / ".draft").touch()
    _run(home, "Stop")
    names = sorted(os.listdir(folder))
    assert len(names) <= hook.SPOOL_FILES + 1
    assert names[0] == "0"
    assert f"{hook.SPOOL_FILES - 1:020}-1" in names
    assert ".draft" not in names
    assert json.loads((folder / names[-1]).read_bytes())["params"]["payload"] == WHERE


def test_a_disk_that_takes_nothing_is_no_error(home: Home) -> None:
    """Where the state directory is a file the hook says nothing."""
    Path(home.places.state_dir).parent.mkdir(parents=True)
    Path(home.places.state_dir).touch()
    _run(home, "Stop")


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
def test_a_daemon_that_hangs_costs_little(home: Home, event: str) -> None:
    """With a stopped daemon, whose socket still takes bytes, each event ends at its bound."""
    with ScriptedDaemon(home.places.socket, {"hook": Silence()}):
        # Half a second: the hook has its start too; a second, which it was once, does not pass.
        bound = hook.deadline_seconds(event, {}) + 0.5
        assert least_seconds(lambda: _run(home, event), bound) < bound


@given(st.dictionaries(TEXTS, TEXTS | st.dictionaries(TEXTS, TEXTS)), TEXTS, TEXTS)
@example({}, "cwd", "")
@example({"cwd of": "session_id"}, "agent_id", "session_id")
def test_members_are_found_by_their_names(others: dict[str, Any], session: str, cwd: str) -> None:
    """What was said can look as it likes: a name within a text has its quotes escaped."""
    said = {"said": json.dumps({"cwd": "/wrong", "session_id": "wrong"}), **others}
    wanted = {"session_id": session, "cwd": cwd}
    for name in ("transcript_path", "agent_id", *wanted):
        said.pop(name, None)
    said = {k: v for k, v in said.items() if not isinstance(v, dict) or not v.keys() & wanted}
    for payload in ({**said, **wanted}, {**wanted, **said}):
        for separators in ((",", ":"), (" , ", " : ")):
            text = json.dumps(payload, separators=separators).encode()
            assert json.loads(hook.location(text)) == wanted


@given(st.binary(max_size=200))
def test_no_bytes_harm_the_search(payload: bytes) -> None:
    """Whatever a client sends, what is kept of it is short, and nothing is raised."""
    assert len(hook.location(payload + b'"cwd"' + payload)) < len(payload) * 3 + 200


def test_an_input_that_hangs_is_no_event(home: Home) -> None:
    """Who never ends what it says is not kept; the alarm ends the hook."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", FILE, "codex", "Stop"],
        stdin=subprocess.PIPE,
        env={**home.environ, "MEMD_HOOK_NO_START": "1"},
    ) as process:
        assert process.wait(60) == 0
    assert not os.path.exists(home.places.spool)

"""A daemon whose model is a program: it says so, keeps to its caps, and does not hear itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.client.blocking import Client
from memd.testing.daemon import Home, client, daemon_process, throw_away_home
from tests.model.programs import Stub

SAID = [
    {"role": "user", "content": "From now on never deploy on a Friday."},
    {"role": "assistant", "content": [{"type": "text", "text": "Understood."}]},
]


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home."""
    with throw_away_home() as made:
        yield made


@pytest.fixture
def stub() -> Iterator[Stub]:
    """Hold a stub whose processes are ended."""
    made = Stub()
    yield made
    made.end()


def configure(home: Home, argv: tuple[str, ...], more: str = "") -> None:
    """Name a program in the user's settings."""
    path = Path(home.places.config)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'[model]\nprovider = "command"\nargv = {json.dumps(argv)}\n{more}')
    path.chmod(0o600)


def learn(caller: Client, cwd: str, session: str = "s") -> Any:
    """Learn from the conversation."""
    params = {"cwd": cwd, "session_id": session, "messages": SAID, "wait": True}
    return caller.call("extract", params)


def test_what_a_program_calls_from_below_is_no_client(home: Home, stub: Stub) -> None:
    """A hook of a far child of the program is answered with nothing, whatever its environment."""
    payload = {"session_id": "x", "cwd": home.project(), "source": "startup"}
    params = {"client": "claude-code", "event": "SessionStart", "payload": payload}
    hook = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hook", "params": params})
    settings = Path(home.path) / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"autoMemoryEnabled": false}')
    noted = Path(home.path) / "answer"
    brings = "[claude_code]\nbring_memory = true\n"
    configure(home, stub.argv("calls", home.places.socket, hook, str(noted)), brings)
    with daemon_process(home), client(home) as caller:
        assert caller.call("hook", params) is not None
        assert learn(caller, payload["cwd"])["engine"] == "command:env"
    assert json.loads(noted.read_bytes()) == {"jsonrpc": "2.0", "id": 1, "result": None}


def test_caps_and_answers_are_told(home: Home, stub: Stub) -> None:
    """Runs are counted over a restart; at their cap the local extractor learns; doctor knows."""
    configure(home, stub.argv("[]"), "[spend]\nruns_per_day = 4\nextract_share = 0.5\n")
    cwd = home.project()
    engines = []
    for start in range(2):
        with daemon_process(home), client(home) as caller:
            engines += [learn(caller, cwd, f"s{start}{n}")["engine"] for n in range(2)]
            today = caller.call("spend", {})["today"]
            checks = {c["name"]: c for c in caller.call("doctor", {"cwd": cwd})["checks"]}
            model = caller.call("status", {})["model"]
    assert engines == ["command:env", "command:env", "local", "local"]
    assert (today["used"]["requests"], today["used"]["dollars"]) == (2, 0.0)
    assert (today["runs_per_day"], today["caps"]["extract"]) == (4, "spend.extract_share")
    assert "no run of your plan" in checks["model"]["detail"]
    assert sorted(model["names"]) == ["compact", "dream", "extract"]


def test_a_program_that_fails_is_told(home: Home, stub: Stub) -> None:
    """Its words reach the person, and the job is tried again later."""
    configure(home, stub.argv("fails"))
    with daemon_process(home), client(home) as caller:
        params = {"cwd": home.project(), "session_id": "s", "messages": SAID}
        job = caller.call("extract", params)["job"]
        error = None
        while error is None:
            error = caller.call("job.get", {"job": job})["error"]
        assert "please sign in first" in error["message"]
        assert stub.left() == []
        caller.call("pause", {"now": True})

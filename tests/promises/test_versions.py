"""Two versions of memd on one machine: what is old and what is new work with each other."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memd
from memd.cli import hook
from memd.client import hook_file
from tests.installed import installed
from tests.promises.hooked import Hooked, hooked
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.scripted_daemon import ScriptedDaemon, ScriptedRefusal

SECONDS = 60
WORDS = "Remember: always run the integration tests against a real database."
RUN = "import sys; from memd.cli.main import main; sys.exit(main())"
# What the hook of the first release sent: no deadline, no spool, one client.
FIRST_HOOK = (
    '{"jsonrpc":"2.0","id":1,"method":"hook","params":{"client":"claude-code","event":%s,'
    '"environment":{},"payload":%s}}'
)


@pytest.fixture(name="home")
def _home() -> Iterator[Home]:
    with throw_away_home() as home:
        yield home


def _memctl(home: Home, python: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run memctl of an installation."""
    return subprocess.run(
        [python, "-P", "-c", RUN, *arguments],
        env=dict(home.environ),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=pytest.mark.soak)])
def test_two_versions_used_in_turns_restart_nothing(home: Home, times: int) -> None:
    """Whichever came first serves both, and neither ends it."""
    pythons = [installed(Path(home.path, each), each) for each in ("0.0.1", "9.9.9")]
    reported = [
        json.loads(_memctl(home, python, "status", "--json").stdout)
        for _ in range(times)
        for python in pythons
    ]
    assert {facts["version"] for facts in reported} == {"0.0.1"}
    assert len({facts["pid"] for facts in reported}) == 1
    doctor = _memctl(home, pythons[1], "doctor")
    assert "memd 0.0.1 runs, and this is memctl 9.9.9" in doctor.stdout
    assert _memctl(home, pythons[0], "shutdown").returncode == 0
    assert Path(home.places.log).read_text().count('"ready"') == 1


def test_what_an_older_daemon_does_not_know_is_told_with_the_remedy(home: Home) -> None:
    """A method of a later version is an error that names both versions and what to do."""
    refusal = ScriptedRefusal(-32601, "there is no method status")
    welcome = {"version": "0.0.1"}
    with ScriptedDaemon(home.places.socket, {"hello": welcome, "status": refusal}):
        done = _memctl(home, sys.executable, "status")
    assert done.returncode == 1
    assert f"memd 0.0.1 runs, and this is memctl {memd.__version__}: memctl restart" in done.stderr


@pytest.fixture(name="person")
def _person() -> Iterator[Hooked]:
    with hooked() as person:
        yield person


def test_an_older_hook_is_served_by_a_newer_daemon(person: Hooked) -> None:
    """The first hook's request is still one, and its file is brought up to date at the start."""
    Path(hook_file.hook_path(person.home.places)).write_text("# older\n")
    payload = {"session_id": "s", "transcript_path": person.say(WORDS), "cwd": person.cwd}
    with daemon_process(person.home), client(person.home) as asked:
        assert hook_file.is_current(person.home.places)
        body = FIRST_HOOK % (json.dumps("Stop"), json.dumps(payload))
        path = os.fsencode(person.home.places.socket)
        assert hook.send_request(path, body.encode()) == b'{"jsonrpc":"2.0","id":1,"result":null}'
        (job,) = [job for job in asked.call("job.list")["jobs"] if job["kind"] == "extract"]
        assert asked.call("job.wait", {"job": job["job"]})["result"]["saved"]


@pytest.mark.parametrize("refusal", [-32601, -32602, 1000])
def test_a_newer_hook_is_silent_beside_an_older_daemon(person: Hooked, refusal: int) -> None:
    """What the daemon does not know is no error at a prompt, and starts no other daemon."""
    answers = {"hook": ScriptedRefusal(refusal, "unknown")}
    with ScriptedDaemon(person.home.places.socket, answers) as daemon:
        for event in ("SessionStart", "UserPromptSubmit", "Other"):
            person.send(event)
        sent = {"client", "event", "environment", "payload", "deadline_ms"}
        assert all(call.params.keys() == sent for call in daemon.requested)
    assert not os.path.exists(f"{person.home.places.state_dir}/hook-start")

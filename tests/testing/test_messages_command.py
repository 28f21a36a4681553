"""The server as a command."""

import json
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memd.testing.messages_command import main, manual

BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'


def ask(url: str) -> bytes:
    """Ask a server and return its answer."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("POST", "/v1/messages", BODY)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_it_says_its_address_and_ends_with_a_signal(tmp_path: Path) -> None:
    """The first line is the address as JSON; each request is told; a signal ends it well."""
    script = tmp_path / "s.toml"
    script.write_text('steps = ["echo"]\n')
    run = [sys.executable, "-m", "memd.testing.messages_command", "--requests", str(script)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert b'"text":"hi"' in ask(json.loads(process.stdout.readline())["url"])
        reported = json.loads(process.stdout.readline())
        assert (reported["status"], reported["ending"], reported["body"]["model"]) == (
            200,
            "answered",
            "m",
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_without_a_script_it_echoes(capsys: pytest.CaptureFixture[str]) -> None:
    """The last message comes back."""
    answers: list[bytes] = []

    def wait() -> None:
        answers.append(ask(json.loads(capsys.readouterr().out)["url"]))

    assert main([], wait) == 0
    assert b'"text":"hi"' in answers[0]


def test_its_failures_have_their_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unclear script, a missing one and a wrong option each end in their own way."""
    script = tmp_path / "s.json"
    script.write_text("[]")
    assert main([str(script)]) == 65
    assert "not clear at the top" in capsys.readouterr().err
    assert main([str(tmp_path / "missing")]) == 1
    assert "missing" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["--colour"])
    assert caught.value.code == 2


def test_the_manual_tells_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """Each option, form of a step and exit status is in the page that --help prints."""
    assert main(["-h"]) == 0
    page = capsys.readouterr().out
    assert page == manual()
    names = ("--port", "--requests", "steps", "otherwise", "without", "window", "least", "models")
    steps = ("text", "tools", "structured", "refusal", "content", "error", "raw", "hang", "drip")
    for name in (*names, *steps, "cut", "interrupt", "EXIT STATUS", "65"):
        assert name in page

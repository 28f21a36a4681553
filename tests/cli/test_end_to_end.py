"""memctl and the hook against the real daemon."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.cli import hook
from memd.core.values import Suggestion
from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from memd.state.suggestions import save
from tests.cli.home import Home

MEMCTL = [sys.executable, "-c", "import sys; from memd.cli.main import main; sys.exit(main())"]


def _memctl(home: Home, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*MEMCTL, *arguments],
        env=dict(home.environ),
        cwd=home.cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _hook(home: Home, prompt: str, session: str) -> dict[str, str]:
    """Return what the hook of a client prints for a prompt."""
    payload = {
        "session_id": session,
        "cwd": home.cwd,
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt,
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(Path(hook.__file__)), "claude-code", "UserPromptSubmit"],
        input=json.dumps(payload).encode(),
        env={**home.environ, "MEMD_HOOK_DEADLINE_MS": "10000"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    output: dict[str, str] = json.loads(done.stdout)["hookSpecificOutput"]
    return output


@pytest.fixture(name="started")
def _started(home: Home) -> Iterator[Home]:
    """Give a home whose daemon the first memctl starts and the last one stops."""
    first = _memctl(home, "status", "--json")
    assert (first.returncode, first.stderr) == (0, "")
    assert json.loads(first.stdout)["socket"] == home.places.socket
    yield home
    assert _memctl(home, "stop").stdout == "stopped\n"
    assert _memctl(home, "list", "--no-start").returncode == 69


def test_a_memory_lives_its_life(started: Home) -> None:
    """Added, listed, found, shown, updated, deleted and brought back, with a way back each time."""
    home = started
    added = _memctl(
        home, "add", "--name", "test-policy", "--type", "feedback",
        "--description", "Integration tests hit a real database",
        "--body", "No mocks of the database.",
    )  # fmt: skip
    assert added.stdout.startswith("created test-policy.md; undo with: memctl undo "), added.stderr
    again = _memctl(home, "add", "--name", "test-policy", "--body", "x")
    assert (again.returncode, again.stdout) == (1, "")
    assert "there is a memory test-policy.md already" in again.stderr
    assert "Integration tests hit a real database" in _memctl(home, "list").stdout
    assert "test-policy.md" in _memctl(home, "search", "database", "mocks").stdout
    shown = _memctl(home, "show", "test-policy.md").stdout
    assert shown.endswith("No mocks of the database.\n")
    assert "test-policy.md" in _memctl(home, "load-prompt").stdout
    block = _memctl(home, "prefetch", "may I mock the database in integration tests?").stdout
    assert "No mocks of the database." in block
    updated = _memctl(home, "add", "test-policy.md", "--update", "--body", "Never.")
    assert updated.stdout.startswith("updated test-policy.md")
    change = updated.stdout.split()[-1]
    assert "+Never." in _memctl(home, "diff", change).stdout
    assert _memctl(home, "undo", change).returncode == 0
    assert _memctl(home, "show", "test-policy.md").stdout == shown
    removed = _memctl(home, "rm", "test-policy.md")
    assert _memctl(home, "show", "test-policy.md").returncode == 1
    assert _memctl(home, "undo", removed.stdout.split()[-1]).returncode == 0
    assert _memctl(home, "show", "test-policy.md").stdout == shown
    assert len(_memctl(home, "history").stdout.splitlines()) == 5
    because = _memctl(home, "why", "test-policy.md").stdout
    assert ("created by client (memctl)" in because, "surfaced" in because) == (True, True)
    compared = _memctl(home, "diff", "--path", "test-policy.md", "--from", "c1", "--to", change)
    assert "+Never." in compared.stdout
    assert _memctl(home, "undo", "test-policy.md", "--change", change).returncode == 0
    assert _memctl(home, "show", "test-policy.md").stdout.endswith("Never.\n")
    plan = _memctl(home, "undo", "--as-of", "an hour ago", "--dry-run")
    assert (plan.stdout, plan.returncode) == ("would be deleted test-policy.md\n", 0)
    assert _memctl(home, "undo", "--from", change).returncode == 0
    assert _memctl(home, "show", "test-policy.md").stdout == shown
    assert len(_memctl(home, "log", "--all", "--since", "today").stdout.splitlines()) == 7


def test_background_work_is_seen(started: Home) -> None:
    """A dream is waited for and listed, sessions are told, and the doctor finds nothing wrong."""
    home = started
    dream = _memctl(home, "dream", "--force", "--wait", "--json")
    assert dream.returncode == 0, dream.stderr
    job = json.loads(dream.stdout)["job"]
    assert job in _memctl(home, "job", "list", "--here").stdout
    assert json.loads(_memctl(home, "job", "wait", job, "--json").stdout)["state"] == "completed"
    assert _memctl(home, "call", "session.end", "session_id=s1").returncode == 0
    assert json.loads(_memctl(home, "call", "rpc.discover").stdout)["openrpc"]
    doctor = _memctl(home, "doctor")
    assert doctor.returncode == 0, doctor.stdout


def test_the_hook_brings_a_memory_to_a_prompt(started: Home) -> None:
    """What the daemon builds for the client comes out of the hook as one JSON object."""
    home = started
    _memctl(
        home, "add", "--name", "merge-freeze", "--type", "project",
        "--description", "Merge freeze on main until the release",
        "--body", "Nothing is merged to main until the release.",
    )  # fmt: skip
    output = _hook(home, "can I merge to main before the release?", "s1")
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "Nothing is merged to main" in output["additionalContext"]


def test_the_commands_that_a_suggestion_names_work(started: Home) -> None:
    """An assistant runs what the hook shows, as it stands, and the memory is there."""
    home = started
    wanted = ("Makefiles are indented with tabs.", "Reviews are done on Mondays.")
    directory = os.path.realpath(json.loads(_memctl(home, "list", "--json").stdout)["memory_dir"])
    database = open_database(home.places.database, SCHEMAS)
    with database.transaction() as cursor:
        for text in wanted:
            save(cursor, directory, Suggestion("s0", text, time.time(), "user"), time.time())
    database.close()
    shown = _hook(home, "ok", "s1")["additionalContext"]
    accept, edit = re.findall("`memctl (.*?)`", shown)
    assert _memctl(home, *shlex.split(accept)).stdout.startswith("saved as feedback_reviews-")
    refused = _memctl(home, *shlex.split(edit))
    assert (refused.returncode, "no suggestion 's2' waits" in refused.stderr) == (1, True)
    edited = _memctl(
        home, *shlex.split(edit.replace("s2", "s1").replace("…", "Makefiles want tabs."))
    )
    assert edited.stdout.startswith("saved as feedback_makefiles-want-tabs.md")
    assert (
        f'**Said:** "{wanted[0]}" ('
        in _memctl(home, "show", "feedback_makefiles-want-tabs.md").stdout
    )
    assert _memctl(home, "suggestions").stdout.strip() == ""
    counts = json.loads(_memctl(home, "status", "--json").stdout)["suggestions"]
    assert (counts["open"], counts["offered"], counts["taken"]) == (0, 2, 2)

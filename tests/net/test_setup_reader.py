"""The question at the end of setup, whether a program may read sessions (4.7, 7.4)."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import PYTHON, Home, until
from tests.net.wire import BIN

TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
FULL = pytest.mark.full
QUESTION = "May memd read a session once, when it ends, with your plan?"
YES = {
    "model": {"provider": "command", "preset": "claude-code"},
    "extract": {"at_end": True},
}
NO = {"extract": {"at_end": False}}
PROGRAM = """#!{python}
import os, sys
words = sys.stdin.read()
folder = {folder!r}
with open(f"{{folder}}/{{len(os.listdir(folder))}}", "w") as file:
    file.write(words)
print('{{"type": "result", "is_error": false, "result": "[]"}}')
"""


@pytest.fixture
def person(own: Home) -> Home:
    """Return a home with a program ``claude`` that notes what it is asked."""
    runs = own.path / "runs"
    runs.mkdir()
    program = own.path / "bin/claude"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=PYTHON, folder=str(runs)))
    program.chmod(0o755)
    own.environ["PATH"] = f"{program.parent}:{own.environ['PATH']}"
    return own


def settings(home: Home) -> dict[str, Any] | None:
    """Return the person's settings, ``None`` where there is no file."""
    path = home.path / "h/.config/memd/memd.toml"
    return tomllib.loads(path.read_text()) if path.exists() else None


def at_terminal(home: Home, typed: str, *words: str) -> str:
    """Run setup of Claude Code at a terminal, type something, and return what is shown."""
    command = (f"{BIN}/memctl", "--no-start", "setup", "claude-code", *words)
    done = home.run(sys.executable, "-c", TERMINAL, *command, input=typed)
    assert done.returncode == 0, done.stdout
    return done.stdout


def setup(home: Home, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run setup of Claude Code where nobody can be asked."""
    return home.memctl("--no-start", "setup", "claude-code", *words)


@pytest.mark.parametrize(
    ("typed", "stored"), [("y\n", YES), ("n\n", NO), pytest.param("\n", NO, id="nothing")]
)
def test_the_question_is_asked_once(
    person: Home, typed: str, stored: dict[str, dict[str, Any]]
) -> None:
    """The answer is stored as settings, no answer is a no, and a second setup asks nothing."""
    shown = at_terminal(person, typed)
    assert QUESTION in shown
    assert shown.index("through claude to its provider") < shown.index(QUESTION)
    assert "30 runs a day" in shown
    assert settings(person) == stored
    assert QUESTION not in at_terminal(person, typed)
    assert settings(person) == stored
    shown_settings = json.loads(person.memctl("--json", "config", "--all").stdout)["settings"]
    assert shown_settings["extract.at_end"] == json.dumps(stored["extract"]["at_end"])


def test_the_question_comes_last(person: Home) -> None:
    """A setup of all that is here asks for each client, and then for the sessions."""
    (person.path / "h/.claude").mkdir()
    command = (f"{BIN}/memctl", "--no-start", "setup")
    shown = person.run(sys.executable, "-c", TERMINAL, *command, input="y\ny\n").stdout
    assert 0 <= shown.index("set up Claude Code?") < shown.index(QUESTION)
    assert settings(person) == YES
    (person.path / "h/.config/memd/memd.toml").unlink()
    person.memctl("--no-start", "setup", "--remove")
    shown = person.run(sys.executable, "-c", TERMINAL, *command, input="n\ny\n").stdout
    assert QUESTION not in shown  # no hook tells of a session
    assert settings(person) is None


def test_nothing_is_asked_without_a_terminal(person: Home) -> None:
    """Where nobody can answer nothing is asked or stored, and the option is named."""
    done = setup(person)
    assert (done.returncode, settings(person)) == (0, None)
    assert QUESTION not in done.stderr
    assert "memctl setup --reader yes" in done.stderr


def test_the_option_answers(person: Home) -> None:
    """The option stores a yes or a no without a question; a later no switches the model off."""
    assert setup(person, "--reader", "no").returncode == 0
    assert settings(person) == NO
    done = setup(person, "--reader", "yes")
    assert "through claude to its provider" in done.stderr
    assert settings(person) == YES
    setup(person, "--reader", "no")
    stored = settings(person)
    assert stored is not None
    assert stored["model"].pop("enabled") is False
    assert stored == YES
    setup(person, "--reader", "yes")
    stored = settings(person)
    assert stored is not None
    assert stored["model"].pop("enabled") is True
    assert stored == YES


def test_a_dry_run_stores_nothing(person: Home) -> None:
    """With --dry-run the settings are named and no file is written."""
    done = setup(person, "--reader", "yes", "--dry-run")
    assert (done.returncode, settings(person)) == (0, None)
    assert 'preset = "claude-code"' in done.stderr


def test_yes_to_all_is_no_consent(person: Home) -> None:
    """The option --yes sets clients up, and says nothing of sessions."""
    assert QUESTION not in at_terminal(person, "y\n", "--yes")
    assert settings(person) is None


@pytest.mark.parametrize(
    "case", ["model", *(pytest.param(c, marks=FULL) for c in ("env", "no program", "broken"))]
)
def test_who_cannot_be_asked_is_not(person: Home, case: str) -> None:
    """Where a model is named, no program is there or the settings are broken, nothing is asked."""
    folder = person.path / "h/.config/memd"
    folder.mkdir(parents=True)
    texts = {"model": '[model]\nbase_url = "http://127.0.0.1:9"\n', "broken": "[model\n"}
    (folder / "memd.toml").write_text(texts.get(case, ""))
    if case == "env":
        (folder / "env").write_text("ANTHROPIC_API_KEY=sk-ant-none\n")
        (folder / "env").chmod(0o600)
    if case == "no program":
        (person.path / "bin/claude").unlink()
    shown = at_terminal(person, "y\n")
    assert QUESTION not in shown
    assert (folder / "memd.toml").read_text() == texts.get(case, "")


MINE = """# mine
enabled = true

[extract]  # what is learnt
# seldom
every_turns = 3 # turns
at_end = false
[spend]
dollars_per_day = 2.0"""


def test_the_rest_of_the_settings_stays(person: Home) -> None:
    """Comments, order and other options are as they were; only the answer is written."""
    person.configure(MINE)
    setup(person, "--reader", "yes")
    written = (person.path / "h/.config/memd/memd.toml").read_text()
    expected = MINE.replace("at_end = false", "at_end = true")
    assert written.startswith(expected)
    assert tomllib.loads(written)["model"] == YES["model"]
    assert tomllib.loads(written)["spend"] == {"dollars_per_day": 2.0}


@pytest.mark.full
def test_a_table_on_one_line_gets_the_answer(person: Home) -> None:
    """A table that the person wrote on one line stays one, with the answer in it."""
    person.configure("extract = {every_turns = 2} # mine\n")
    setup(person, "--reader", "yes")
    written = (person.path / "h/.config/memd/memd.toml").read_text()
    assert written.splitlines()[0].endswith("} # mine")
    assert tomllib.loads(written)["extract"] == {"every_turns": 2, "at_end": True}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('[model]\nbase_url = "http://127.0.0.1:9"\n', 2),
        pytest.param('[model]\nprovider = "command"\nargv = ["llm"]\n', 2, marks=FULL),
        ("extract = 2\n", 78),
        pytest.param("[extract\n", 78, marks=FULL),
    ],
)
def test_what_cannot_be_changed_is_refused(person: Home, text: str, status: int) -> None:
    """A model that the person named and a file that cannot be edited stay, with the reason."""
    person.configure(text)
    done = setup(person, "--reader", "yes")
    assert done.returncode == status, done.stderr
    assert (person.path / "h/.config/memd/memd.toml").read_text() == text
    assert "Traceback" not in done.stderr


def test_a_consent_has_the_program_read_a_session(person: Home) -> None:
    """After a yes at the terminal a session of five messages goes through the program, once."""
    at_terminal(person, "y\n")
    project = person.project()
    person.start()
    talk = project.conversation()
    for number in range(5):
        talk.user(f"Never deploy on a Friday ({number})").assistant("Ok.")
        person.call("hook", client="claude-code", event="Stop", payload=talk.payload)
    runs = person.path / "runs"
    assert list(runs.iterdir()) == []
    payload = {**talk.payload, "reason": "exit"}
    person.call("hook", client="claude-code", event="SessionEnd", payload=payload)
    (run,) = until(lambda: list(runs.iterdir()), "the session is read")
    assert "Never deploy on a Friday (0)" in Path(run).read_text()
    done = until(lambda: _read(person), "the job has ended")
    assert done["engine"] == "claude-code"


def _read(home: Home) -> Any:
    """Return the result of the last job of extraction, once it has ended."""
    job = next(job for job in home.call("job.list")["jobs"] if job["kind"] == "extract")
    return job["result"] if job["state"] == "completed" else None

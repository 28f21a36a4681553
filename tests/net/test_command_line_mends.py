"""Mends of the command line: answers that name what is missing, and completion of whole names."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.net.kit import Home, Project
from tests.net.wire import BIN, SECONDS

TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])"
SHELLS = {
    "bash": ("bash", "--norc", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}
LOAD = {
    "bash": 'eval "$(memctl completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(memctl completion zsh)"',
    "fish": "memctl completion fish | source",
}
# The text that a person types before the tab, for a memory whose path is "My first notes.md".
TYPED = {"begun": "My\\ f", "in quotes": '"My f', "in single quotes": "'My f", "nothing": ""}


FULL = pytest.mark.full


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(text, id=name, marks=() if text == "My\\ f" else FULL)
        for name, text in TYPED.items()
    ],
)
@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=() if name == "bash" else FULL) for name in SHELLS]
)
def test_a_name_with_blanks_is_completed_whole(project: Project, shell: str, typed: str) -> None:
    """A tab completes the name quoted, so that the command that is entered then shows it."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    project.put("My first notes.md", "---\nname: n\ndescription: d\ntype: user\n---\nthe-text\n")
    keys = f"{LOAD[shell]}; echo rea''dy\n", f"memctl show {typed}\t\n"
    shown = _typed(project, SHELLS[shell], keys)
    assert "the-text" in shown, shown


def _typed(project: Project, shell: tuple[str, ...], lines: tuple[str, str]) -> str:
    """Return what a shell shows on a terminal: the second line is typed once the first is done."""
    environ = {**project.home.environ, "TERM": "dumb", "COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, "-c", TERMINAL, *shell],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
        cwd=project.cwd,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        shown = ""
        for line, wanted in zip(lines, ("ready", "the-text"), strict=True):
            process.stdin.write(line.encode())
            process.stdin.flush()
            while wanted not in shown:
                if not select.select([process.stdout], [], [], SECONDS / 3)[0]:
                    break
                shown += os.read(process.stdout.fileno(), 4096).decode(errors="replace")
        process.kill()  # the terminal is gone then, and the shell with it
    return shown


@pytest.mark.full
def test_no_key_says_how_to_get_one(project: Project) -> None:
    """Messages without an agent's key are refused with what is missing and what gives a key."""
    for words in (("message", "read"), ("message", "ack", "m1")):
        done = project.memctl(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "no key was given" in done.stderr
        assert "memctl agent register" in done.stderr
        assert "has this key" not in done.stderr
    wrong = project.memctl("message", "read", "--key", "guessed")
    assert (wrong.returncode, "no agent has this key" in wrong.stderr) == (1, True)


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        *(
            pytest.param(words, marks=FULL)
            for words in (("status",), ("team", "status"), ("undo",), ("dream",), ("job", "list"))
        ),
    ],
)
def test_an_option_of_other_commands_is_refused_by_name(own: Home, words: tuple[str, ...]) -> None:
    """The hint never names the option that was given."""
    for option in ("--yes", "--reason"):
        done = own.memctl(*words, option)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"memctl: {' '.join(words)} takes no {option}\n" in done.stderr
        assert f"nearest is {option}" not in done.stderr
    misspelt = own.memctl(*words, "--qiet")
    assert "the nearest is --quiet" in misspelt.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("team", "leave"),
        ("rm", "a.md"),
        *(
            pytest.param(words, marks=FULL)
            for words in (
                ("team", "join", "https://127.0.0.1:1"),
                ("team", "share", "a.md"),
                ("team", "remove", "a.md", "--reason", "old"),
                ("team", "resolve", "a.md", "theirs"),
                ("team", "resolve", "accept"),
                ("rm", "--purge", "--pattern", "a"),
                ("setup", "claude-code", "--dry-run"),
                ("service", "uninstall", "--dry-run"),
            )
        ),
    ],
)
def test_yes_is_taken_wherever_something_may_be_asked(own: Home, words: tuple[str, ...]) -> None:
    """A script may say --yes to each command that asks, deletes or gives something up."""
    done = own.memctl("--no-start", *words, "--yes")
    assert done.returncode != 2, done.stderr


@pytest.mark.full
def test_what_is_in_no_conflict_is_not_found(project: Project, tmp_path: Path) -> None:
    """Each way to resolve a memory that is in no conflict is refused in the same sentence."""
    data = {"MEMD_TEAM_DATA": str(tmp_path / "server")}
    team = f"{BIN}/memd-team"
    run = project.home.run
    assert run(team, "repo", "add", "github.com/acme/app", environ=data).returncode == 0
    invited = run(team, "invite", "anna", "--repo", "github.com/acme/app", "--json", environ=data)
    code = json.loads(invited.stdout)["code"]
    origin = '[remote "origin"]\n\turl = https://github.com/acme/app\n'
    (Path(project.cwd) / ".git/config").write_text(origin)
    with subprocess.Popen(
        [team, "serve", "--listen", "127.0.0.1:0"],
        env={**project.home.environ, **data},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            address = next(word for word in server.stdout.readline().split() if "://" in word)
            joined = project.memctl(
                "team", "join", address, "--yes", "--code-file", "-", input=code
            )
            assert joined.returncode == 0, joined.stderr
            text = "---\nname: free\ndescription: d\ntype: project\n---\nfree of conflicts\n"
            project.put("team/free.md", text)
            for name in ("team/free.md", "free.md", "team/none.md"):
                for how in ("edit", "ours", "theirs"):
                    done = project.memctl("team", "resolve", name, how, environ={"EDITOR": "false"})
                    path = f"team/{name.removeprefix('team/')}"
                    assert (done.returncode, done.stdout) == (1, "")
                    assert f"nothing waits for a decision about {path}\n" in done.stderr
        finally:
            server.send_signal(signal.SIGTERM)


def test_a_dash_is_standard_input(project: Project) -> None:
    """``add -`` remembers what a pipe holds, and no memory says a dash."""
    done = project.memctl("add", "-", input="Never deploy on a Friday\n")
    assert done.returncode == 0, done.stderr
    (listed,) = project.json("list")["memories"]
    assert listed["description"] == "Never deploy on a Friday"


def test_a_deleted_memory_is_named_by_a_part(project: Project) -> None:
    """What was forgotten is brought back, and purged, by a part of its path."""
    path = project.json("add", "Prefer tabs over spaces in Makefiles")["path"]
    assert project.memctl("rm", "tabs").returncode == 0
    assert project.memctl("undo", "tabs spaces").returncode == 0
    assert [each["path"] for each in project.json("list")["memories"]] == [path]
    assert project.memctl("rm", "tabs").returncode == 0
    (first, *_) = project.json("log", "tabs")["changes"]
    assert first["files"][0]["action"] == "deleted"
    purged = project.json("rm", "--purge", "tabs", "--yes")
    assert [body["paths"] for body in purged["bodies"]] == [[path]]


def test_a_missing_memory_or_version_is_named(project: Project) -> None:
    """Undo names the nearest memory for a misspelt one, and the log where no version is older."""
    project.write("fridays.md", "Never.")
    misspelt = project.memctl("undo", "fridas.md")
    assert misspelt.returncode == 1
    assert "there is no memory fridas.md; the nearest: fridays.md" in misspelt.stderr
    assert "the nearest: fridays.md" in project.memctl("log", "fridas").stderr
    assert "memctl log fridays.md lists its changes" in project.memctl("undo", "fridays").stderr
    assert "there is no change 'c99'" in project.memctl("show", "c99").stderr


def test_a_missing_word_is_the_only_one_that_is_asked_for(own: Home) -> None:
    """What may be left out is not named as missing."""
    done = own.memctl("review", "accept")
    assert done.returncode == 2
    assert "the following arguments are required: ID\n" in done.stderr


def test_an_empty_name_undoes_nothing(project: Project) -> None:
    """A script whose variable is empty does not take the newest change back."""
    project.write("a.md", "One.")
    before = project.tree()
    assert project.memctl("undo", "").returncode == 2
    assert project.tree() == before


def test_a_misspelt_topic_of_help_gets_the_nearest(own: Home) -> None:
    """Topics are among the words that a misspelt one is compared with."""
    done = own.memctl("help", "modles")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the nearest is models\n" in done.stderr


def test_a_sentence_that_is_known_is_changed_as_the_answer_says(project: Project) -> None:
    """A refusal names the command that changes the memory, if --update was given or not."""
    path = project.json("add", "Deploys need two approvals")["path"]
    for words in ((), ("--update", "--type", "feedback")):
        refused = project.memctl("add", "Deploys need two approvals", *words)
        assert refused.returncode == 1
        assert f"or memctl add {path} --update with the parts to change\n" in refused.stderr
    assert project.memctl("add", path, "--update", "--type", "feedback").returncode == 0
    assert "type: feedback" in project.read(path)

"""The manners of memctl: names, nearest words, output, exit status, questions."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.net.kit import Home, Project
from tests.net.wire import BIN, SECONDS


@pytest.fixture
def known(project: Project) -> Project:
    """Return a project with three memories."""
    project.write("ruff.md", "Lines have 100 columns.", description="Python is linted with ruff")
    project.write("broker.md", "Port 9911.", description="the staging broker and its port")
    project.write("queue.md", "Port 9912.", description="the staging queue and its port")
    return project


CHANGE = "CHANGE"  # stands for the id of a change that a test made
# Words of a command line with a mistake, and the nearest word, which the answer names.
MISTAKES: list[tuple[list[str], str, int]] = [
    (["lst"], "list", 2),
    (["serch", "x"], "search", 2),
    (["setup", "claude-cod"], "claude-code", 2),
    (["add", "x.md", "--type", "projct"], "project", 2),
    (["list", "--jsn"], "--json", 2),
    (["show", "brokr"], "broker", 1),
]


@pytest.mark.parametrize(("words", "nearest", "status"), MISTAKES)
def test_a_mistake_is_answered_with_the_nearest(
    known: Project, words: list[str], nearest: str, status: int
) -> None:
    """A misspelt command, option, value or memory gets one answer that names the right one."""
    done = known.memctl(*words)
    assert (done.returncode, done.stdout) == (status, "")
    assert nearest in done.stderr
    assert "raceback" not in done.stderr


@pytest.mark.full
def test_where_no_word_is_near_none_is_named(known: Project) -> None:
    """A name that resembles no memory is answered with where all are listed."""
    done = known.memctl("show", "xylophone")
    assert done.returncode == 1
    assert "broker" not in done.stderr
    assert "memctl list" in done.stderr


def test_a_memory_is_named_by_its_path_or_name(known: Project) -> None:
    """The path, with or without its ending, and the name lead to the same memory."""
    known.write("notes/port.md", "Port 9913.", name="harbour")
    for name in ("notes/port.md", "notes/port", "harbour"):
        done = known.memctl("show", name)
        assert "9913" in done.stdout, done.stderr


def test_a_part_that_one_memory_has_names_it(known: Project) -> None:
    """A word of a description that no other memory has is enough to show or remove it."""
    assert "100 columns" in known.memctl("show", "linted").stdout


def test_several_matches_are_listed(known: Project) -> None:
    """A part that several memories have is refused with all of them."""
    done = known.memctl("show", "staging")
    assert done.returncode == 1
    assert "broker" in done.stderr
    assert "queue" in done.stderr


def test_json_is_exactly_the_result(known: Project) -> None:
    """With --json stdout has one object, the method's result, and stderr has no note."""
    for words, method, params in (
        (["list"], "memory.list", {}),
        (["search", "broker"], "memory.search", {"query": "broker"}),
        (["log"], "memory.history", {}),
    ):
        done = known.memctl("--json", *words)
        shown = json.loads(done.stdout)
        assert done.stdout.count("\n") == 1
        assert done.stderr == ""
        result = known.call(method, **params)
        assert {key: shown[key] for key in shown if key != "at"} == {
            key: result[key] for key in result if key != "at"
        }, words


def test_json_of_a_failure_prints_no_result(known: Project) -> None:
    """A refused command prints nothing on stdout, with --json too."""
    done = known.memctl("--json", "show", "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("memctl: ")


def test_every_change_says_how_to_take_it_back(known: Project) -> None:
    """What adds, edits, removes or takes back prints the command that undoes just that."""
    editor = known.path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/Port 9911/Port 9921/" "$1"\n')
    editor.chmod(0o755)
    given = ["--name", "n", "--description", "d", "--type", "project"]
    for words in (
        ["add", "new.md", *given, "--body", "Words."],
        ["edit", "broker.md"],
        ["rm", "queue.md"],
        ["undo"],
    ):
        done = known.memctl(*words, environ={"EDITOR": str(editor)})
        (newest,) = known.call("memory.history", limit=1)["changes"]
        assert f"memctl undo {newest['id']}" in done.stdout, done.stderr
    assert "9921" in known.read("broker.md")
    assert "queue.md" in known.tree()


def test_add_takes_the_body_from_standard_input(known: Project) -> None:
    """A body of - is standard input, and nothing is replaced unless --update says so."""
    given = ["--name", "n", "--description", "d", "--type", "project", "--body"]
    assert known.memctl("add", "new.md", *given, "-", input="From a pipe.\n").returncode == 0
    assert "From a pipe." in known.read("new.md")
    again = known.memctl("add", "new.md", *given, "Other words.")
    assert again.returncode == 1
    assert "--update" in again.stderr
    assert "From a pipe." in known.read("new.md")
    assert known.memctl("add", "new.md", *given, "Other words.", "--update").returncode == 0
    assert "Other words." in known.read("new.md")


@pytest.mark.full
def test_a_whole_file_can_be_added(known: Project) -> None:
    """The option --file of add writes the file's text with its head."""
    file = known.path / "draft"
    file.write_text("---\nname: draft\ndescription: a draft\ntype: user\n---\n\nDrafted.\n")
    assert known.memctl("add", "draft.md", "--file", str(file)).returncode == 0
    assert "Drafted." in known.read("draft.md")


@pytest.mark.full
def test_memories_are_reached_only_by_the_socket(own: Home) -> None:
    """Without a daemon no command reads or writes a memory, though its file is there."""
    project = own.project()
    file = project.put("port.md", "---\nname: p\ndescription: d\ntype: user\n---\nPort 9911.\n")
    before = project.tree()
    for words in (["list"], ["show", "port.md"], ["rm", "port.md"], ["search", "port"]):
        done = project.memctl("--no-start", *words)
        assert (done.returncode, done.stdout) == (69, "")
        assert "9911" not in done.stderr
    assert project.tree() == before
    assert file.exists()
    assert not own.state.exists()


def test_a_command_starts_a_daemon(own: Home) -> None:
    """Where none runs the first command starts a daemon, and stop ends it."""
    project = own.project()
    assert project.memctl("list").returncode == 0
    assert own.call("status")["pid"]
    assert project.memctl("stop").returncode == 0
    assert project.memctl("--no-start", "list").returncode == 69


@pytest.mark.full
def test_a_foreign_server_is_not_ours(own: Home) -> None:
    """What answers at the socket in another protocol ends a command with 78."""
    folder = Path(own.socket).parent
    folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(own.socket)
        server.listen()

        def answer() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        done = own.memctl("--no-start", "list")
        server.shutdown(socket.SHUT_RDWR)
    assert (done.returncode, done.stdout) == (78, "")
    assert "raceback" not in done.stderr


@pytest.mark.full
def test_an_interrupt_ends_with_130(known: Project) -> None:
    """Ctrl-C in the middle of a command ends it quietly."""
    environ = known.home.environ
    command = [f"{BIN}/memctl", "log", "--follow"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environ, cwd=known.cwd, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        known.write("later.md", "Later.")
        select.select([process.stdout, process.stderr], [], [], SECONDS)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert b"raceback" not in errors


QUICK = ["", "\udcff\udcfe"]
HOSTILE = ["-", "--", "\x1b[31m", "a\nb", "../" * 50, "x" * 100_000, "--=", "%s"]


@pytest.mark.parametrize(
    "words",
    [["show", text] for text in QUICK]
    + [pytest.param([text], marks=pytest.mark.full) for text in HOSTILE]
    + [pytest.param(["show", text], marks=pytest.mark.full) for text in HOSTILE],
    ids=lambda words: ascii(" ".join(words))[:20],
)
def test_no_words_end_in_a_traceback(project: Project, words: list[str]) -> None:
    """Any bytes as a command or a name are answered with a sentence and a status."""
    done = project.memctl(*words, encoding="utf-8", errors="surrogateescape")
    assert done.returncode in {0, 1, 2}
    assert "raceback" not in done.stderr
    assert done.returncode == 0 or done.stderr
    assert "\x1b" not in done.stdout


def _on_terminal(project: Project, *words: str, keys: bytes = b"", **environ: str) -> str:
    """Return what a command shows on a terminal of 80 columns on which keys are typed."""
    ours, theirs = pty.openpty()
    given = {**project.home.environ, "TERM": "xterm", "COLUMNS": "80", **environ}
    with subprocess.Popen(
        [f"{BIN}/memctl", *words],
        env=given,
        cwd=project.cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        os.write(ours, keys)
        shown = b""
        with suppress(OSError):
            while piece := os.read(ours, 65536):
                shown += piece
        os.close(ours)
        process.wait(SECONDS)
    return shown.decode(errors="replace")


def test_rows_with_control_characters_fit_a_terminal(known: Project) -> None:
    """What is shown of a control character counts as wide as it is shown."""
    text = "one \x1b[31mtwo\x1b[0m three \x1b[32mfour\x1b[0m five \x1b[33msix\x1b[0m seven"
    known.write("evil.md", "Text.", description=text)
    shown = _on_terminal(known, "list", NO_COLOR="1").splitlines()
    assert "u001b" in shown[0]
    assert max(map(len, shown)) <= 80
    assert len({line.index("  today  ") for line in shown}) == 1


def test_a_terminal_obeys_no_memory(known: Project) -> None:
    """Control characters of a memory are shown on a terminal, and as they are in a pipe."""
    text = "red \x1b[31mtext\x07 and \x9b2J"
    known.put("evil.md", f"---\nname: evil\ndescription: evil\ntype: user\n---\n{text}\n")
    shown = _on_terminal(known, "show", "evil.md", NO_COLOR="1")
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "red " in shown
    assert text in known.memctl("show", "evil.md").stdout


@pytest.mark.full
def test_colour_is_for_terminals_that_want_it(known: Project) -> None:
    """A pipe gets no colour, and a terminal none where NO_COLOR is set."""
    assert "\x1b[" not in known.memctl("log").stdout
    assert "\x1b[" not in _on_terminal(known, "log", NO_COLOR="1")


def test_what_goes_for_good_needs_a_yes(known: Project) -> None:
    """Without a terminal nobody is asked, and rm --purge without --yes removes nothing."""
    done = known.memctl("rm", "--purge", "--pattern", "Port 9911")
    assert done.returncode != 0
    assert "--yes" in done.stderr
    known.memctl("rm", "broker.md")
    assert known.memctl("undo").returncode == 0
    assert "9911" in known.read("broker.md")


@pytest.mark.full
def test_what_goes_for_good_is_asked_on_a_terminal(known: Project) -> None:
    """On a terminal the person is asked, and shown once what would go."""
    shown = _on_terminal(known, "rm", "--purge", "--pattern", "Port 9911", keys=b"n\n")
    assert shown.count("would be purged broker.md (") == 1
    assert "?" in shown
    assert "nothing was removed" in shown
    assert "9911" in known.read("broker.md")


@pytest.mark.full
def test_all_texts_of_a_memory_are_one_line_of_a_purge(known: Project) -> None:
    """A purge lists each memory once, with all the changes whose texts go."""
    change = known.write("broker.md", "Port 9912.")["change"]
    done = known.memctl("rm", "--purge", "broker.md", "--yes")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("purged broker.md (c")
    assert change in line


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [
        ["help", "all"],
        ["log", "-p"],
        ["show", CHANGE],
        ["rm", "--purge", "broker.md", "--yes"],
        ["undo", "broker.md"],
        ["review"],
    ],
    ids=" ".join,
)
def test_a_command_of_the_third_edition(known: Project, words: list[str]) -> None:
    """A command of the table is there and succeeds."""
    text = "the staging broker and its port"
    change = known.write("broker.md", "Port 9921.", description=text)["change"]
    done = known.memctl(*(change if word == CHANGE else word for word in words))
    assert done.returncode == 0, done.stderr

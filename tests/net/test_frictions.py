"""A new user's first hours at the command line: what is short, whole and in the person's words."""

import json
import re

import pytest

from tests.net.kit import Home, Project

LONG = "Our integration tests must hit a real Postgres database and never a mock of one"

pytestmark = pytest.mark.full  # each runs memctl, and most are still marked


@pytest.fixture
def known(project: Project) -> Project:
    """Return a project with one memory whose path and description are long."""
    path = "feedback_our-integration-tests-must-hit-real.md"
    project.write(path, f"{LONG}.", name="integration-tests", description=LONG, type="feedback")
    return project


def _lines(project: Project, *words: str, columns: int = 80) -> list[str]:
    done = project.memctl(*words, environ={"COLUMNS": str(columns)})
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return done.stdout.splitlines()


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", ["list", "log", "status"])
def test_rows_fit_in_the_columns(known: Project, command: str, columns: int) -> None:
    """No row of a list is wider than the terminal, of 80 columns or of 40."""
    assert max(map(len, _lines(known, command, columns=columns))) <= columns


def test_rows_of_the_report_fit_in_80_columns(own: Home) -> None:
    """A long name of a project shortens the sentence before it."""
    project = own.start().project("a-project-with-a-rather-long-name")
    project.memctl("add", LONG)
    (row,) = (line for line in _lines(project, "report") if line.startswith("learnt"))
    assert len(row) <= 80
    assert row.endswith("… (a-project-with-a-rather-long-name)")


def test_the_description_comes_first(known: Project) -> None:
    """A row of a list begins with the description, of which most can be read."""
    assert _lines(known, "list")[0].startswith(LONG[:40])


def test_a_sentence_makes_a_memory(project: Project) -> None:
    """The command add with a sentence saves it, and prints name and type."""
    done = project.memctl("add", "Never deploy on a Friday")
    assert done.returncode == 0, done.stderr
    (memory,) = project.call("memory.list")["memories"]
    assert memory["description"].startswith("Never deploy on a Friday")
    assert memory["name"] in done.stdout
    assert memory["type"] in done.stdout


def test_a_name_has_the_words_of_the_content(project: Project) -> None:
    """The name of a sentence has its content words, not its first words."""
    assert project.memctl("add", LONG).returncode == 0
    (memory,) = project.call("memory.list")["memories"]
    assert "postgres" in memory["name"]
    assert not {"our", "must", "and"} & set(memory["name"].split("-"))


def test_remember_adds(project: Project) -> None:
    """The command remember is add."""
    assert project.memctl("remember", "Never deploy on a Friday").returncode == 0


def test_forget_removes(known: Project) -> None:
    """The command forget is rm."""
    assert known.memctl("forget", "integration-tests").returncode == 0


def test_a_word_that_one_memory_has_shows_it(known: Project) -> None:
    """The command show with a word of one description prints that memory."""
    assert LONG in known.memctl("show", "postgres").stdout


def test_a_conversation_that_was_passed_over_is_counted(project: Project) -> None:
    """After a run without a person status says that it was not learnt from, and the setting."""
    talk = project.conversation().user("Remember: always use tabs.").assistant("ok")
    given = {"client": "claude-code", "event": "Stop", "deadline_ms": 10_000}
    unattended = {"CLAUDE_CODE_SESSION_ATTENDED": "0"}  # as claude -p says to its hooks
    project.home.call("hook", **given, environment=unattended, payload=talk.payload)
    assert [job for job in project.call("job.list")["jobs"] if job["kind"] == "extract"] == []
    done = project.memctl("status")
    assert "passed over" in done.stdout
    assert "extract.allow_remote" in done.stdout


def test_a_dream_says_what_it_did(known: Project) -> None:
    """The command dream --wait ends with a line on what was done, and no number of a job."""
    (line, *_) = _lines(known, "dream", "--wait", "--force")
    assert not re.fullmatch(r"completed as j\d+", line)


def test_the_review_is_a_method(project: Project) -> None:
    """The list of what waits is a method, for this project and for all."""
    assert project.call("review.list")["items"] == []
    assert isinstance(project.call("review.list", all=True)["items"], list)


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_no_model_is_three_words(known: Project, command: str) -> None:
    """Where no model is named one short row says so."""
    (row,) = [line for line in _lines(known, command) if re.match(r"(ok +)?model\b", line)]
    assert len(row) < 60
    assert "memctl help models" in row


@pytest.mark.full
def test_a_command_is_no_session(known: Project) -> None:
    """The command status does not list the calls of memctl as sessions."""
    known.memctl("prefetch", "which database", "--session", "mine")
    known.memctl("prefetch", "which database")
    assert not [line for line in _lines(known, "status") if re.match(r"sessions.* memctl", line)]


@pytest.mark.full
def test_a_project_is_named_by_its_folder(own: Home) -> None:
    """The command status names a project by its path, not by a name with dashes."""
    project = own.start().project("shop")
    project.write("a.md", "A.")
    (row,) = [line for line in _lines(project, "status") if line.startswith("projects")]
    assert "-w-shop" not in row
    assert "w/shop" in row


def test_a_look_of_the_person_is_no_use(known: Project) -> None:
    """What the person asked with memctl prefetch is in no report as recalled."""
    before = known.home.call("report")["surfaced"]
    question = "which integration tests hit a real Postgres database"
    done = known.memctl("prefetch", question, "--session", "mine")
    assert LONG in done.stdout, done.stderr
    assert known.home.call("report")["surfaced"] == before


def test_a_report_has_sentences(known: Project) -> None:
    """The command report says what was learnt in its words, not by the names of files."""
    shown = "\n".join(_lines(known, "report"))
    assert LONG[:30] in shown
    assert ".md" not in shown


def test_a_rehearsal_of_setup_is_short(own: Home) -> None:
    """The option --dry-run prints three lines a client, and --diff the whole change."""
    done = own.memctl("--no-start", "setup", "claude-code", "--dry-run")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) <= 3
    whole = own.memctl("--no-start", "setup", "claude-code", "--diff")
    assert "UserPromptSubmit" in whole.stdout
    assert not (own.claude / "settings.json").exists()


def test_the_list_of_hooks_says_memd(own: Home) -> None:
    """Each hook in a client's settings begins with a word that says whose it is."""
    assert own.memctl("--no-start", "setup", "claude-code").returncode == 0
    hooks = json.loads((own.claude / "settings.json").read_text())["hooks"]
    commands = [
        entry["command"] for rows in hooks.values() for row in rows for entry in row["hooks"]
    ]
    assert len(commands) >= 6
    assert all(command.startswith(": memd;") for command in commands)


@pytest.mark.full
def test_uninstalling_leaves_only_memories(own: Home) -> None:
    """The command setup --remove --all leaves neither spool nor hook nor backup, but memories."""
    project = own.start().project()
    project.write("a.md", "A.")
    assert own.memctl("setup", "claude-code").returncode == 0
    own.stop()
    (own.state / "spool").mkdir(parents=True, exist_ok=True)
    (own.state / "spool/1").write_text("{}")
    done = own.memctl("--no-start", "setup", "--remove", "--all", "--yes")
    assert done.returncode == 0, done.stderr
    assert not (own.state / "spool").exists()
    assert not (own.path / "h/.local/share/memd").exists()
    assert "a.md" in project.tree()


def test_help_is_a_screen_in_groups(own: Home) -> None:
    """The help has two groups of some twenty commands; the others are in help all."""
    shown = own.memctl("--help").stdout
    assert "Daily" in shown
    assert "Now and then" in shown
    assert "load-prompt" not in shown
    assert len(shown.splitlines()) < 50
    assert "load-prompt" in own.memctl("help", "all").stdout


def test_after_an_edit_the_title_has_the_new_words(project: Project) -> None:
    """Where a memory is one sentence, name, description and index line follow an edit of it."""
    assert project.memctl("add", "Never deploy on a Friday").returncode == 0
    editor = project.path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/^Never deploy on a Friday/Deploy on Mondays/" "$1"\n')
    editor.chmod(0o755)
    done = project.memctl("edit", "friday", environ={"EDITOR": str(editor)})
    assert done.returncode == 0, done.stderr
    (memory,) = project.call("memory.list")["memories"]
    assert (memory["name"], memory["description"]) == ("deploy-mondays", "Deploy on Mondays")
    assert "Friday" not in project.read("MEMORY.md")
    assert project.memctl("undo").returncode == 0
    assert "Never deploy on a Friday" in project.read("MEMORY.md")


def test_a_sentence_is_not_remembered_twice(project: Project) -> None:
    """The same sentence again is refused with the memory that has it, and changes nothing."""
    assert project.memctl("add", "Never deploy on a Friday").returncode == 0
    before = project.tree()
    again = project.memctl("add", "Never deploy on a Friday")
    assert again.returncode == 1
    assert "never-deploy-friday" in again.stderr
    assert project.tree() == before


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("Never deploy on a Friday",), "feedback"),
        (("I", "prefer", "short", "answers"), "user"),
        (("The runbook is at https://wiki.example/runbook",), "reference"),
        (("The staging broker listens on port 9911",), "project"),
        (("The staging broker listens on port 9911", "--type", "reference"), "reference"),
        (("我喜欢简短的回答",), "user"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_a_sentence_has_a_type(project: Project, words: tuple[str, ...], kind: str) -> None:
    """The type of a sentence comes from what it says, unless it is given."""
    done = project.memctl("add", *words)
    assert done.returncode == 0, done.stderr
    (memory,) = project.call("memory.list")["memories"]
    assert memory["type"] == kind


@pytest.mark.parametrize("words", [(), ("",), ("   ",), ("a.md",), ("x", "--body", "y")], ids=str)
def test_what_is_no_memory_is_refused(project: Project, words: tuple[str, ...]) -> None:
    """No words, empty ones, a path without a text and two texts are a wrong command line."""
    done = project.memctl("add", *words, input="")
    assert done.returncode == 2, done.stdout
    assert project.call("memory.list")["memories"] == []


def test_a_part_that_several_have_removes_nothing(known: Project) -> None:
    """A word that two memories have is answered with both, and neither is changed."""
    known.write("tests-of-ui.md", "x", name="ui-tests", description="Our UI tests run in a browser")
    done = known.memctl("rm", "tests")
    assert done.returncode == 1
    assert "ui-tests" in done.stderr or "tests-of-ui" in done.stderr
    assert LONG[:20] in done.stderr
    assert len(known.call("memory.list")["memories"]) == 2


def test_purging_a_memory_leaves_nothing_of_it(known: Project) -> None:
    """The memory is deleted, and the history lists its changes without their texts."""
    known.write("broker.md", "Port 9911.", description="the broker and its port")
    done = known.memctl("rm", "--purge", "broker", "--yes")
    assert done.returncode == 0, done.stderr
    assert "broker.md" not in known.tree()
    change = known.call("memory.history", path="broker.md")["changes"][-1]
    assert "9911" not in known.memctl("show", change["id"]).stdout
    assert known.memctl("undo", "broker").returncode != 0
    assert "broker.md" not in known.tree()


def test_purge_takes_one_of_two(known: Project) -> None:
    """A memory and a pattern at once, or neither, purge nothing."""
    for words in (("rm", "--purge"), ("rm", "--purge", "integration-tests", "--pattern", "text")):
        done = known.memctl(*words, "--yes")
        assert done.returncode == 2
    assert "integration-tests" in {each["name"] for each in known.call("memory.list")["memories"]}


def test_a_log_with_patches_has_the_texts(known: Project) -> None:
    """The option -p prints below each change what it did, and show prints one change."""
    shown = known.memctl("log", "-p").stdout
    assert f"+{LONG}." in shown
    (change,) = known.call("memory.history")["changes"]
    assert f"+{LONG}." in known.memctl("show", change["id"]).stdout

"""A line of the index says its memory's whole sentence once, and follows it (chapter 1.6)."""

import re
from collections.abc import Callable

import pytest

from tests.net.kit import Project
from tests.net.recorder import Recorder, text, tool

SENTENCE = (
    "Our integration tests must hit a real Postgres, never SQLite or a mock, because mocked"
    " tests passed and the migration broke production twice last spring."
)
NEW = "The queue of orders has exactly one consumer for each region, so that nothing is sent twice."
LINE = re.compile(r"- \[(?P<title>[^]]+)\]\((?P<path>[^)]+)\)(?: — (?P<hook>.+))?")


def learn(project: Project, sentence: str = SENTENCE) -> str:
    """Let memd learn the sentence from a conversation; return the memory's path."""
    said = {"role": "user", "content": f"Remember: {sentence}"}
    messages = [said, {"role": "assistant", "content": "I will."}]
    done = project.call("extract", session_id=f"s{len(sentence)}", messages=messages, wait=True)
    (path,) = done["saved"]
    return str(path)


def add(project: Project) -> str:
    """Save it with ``memctl add``; return the memory's path."""
    fields = ("--name", "tests", "--description", SENTENCE, "--type", "feedback", "--body", "x")
    assert project.memctl("add", "tests.md", *fields).returncode == 0
    return "tests.md"


def write(project: Project) -> str:
    """Write it through the socket; return the memory's path."""
    project.write("tests.md", SENTENCE, type="feedback", description=SENTENCE)
    return "tests.md"


def drop(project: Project) -> str:
    """Put the file there as another program does; return the memory's path."""
    head = f"name: tests\ndescription: {SENTENCE}\ntype: feedback"
    project.put("tests.md", f"---\n{head}\n---\n\n{SENTENCE}\n")
    project.write("other.md", NEW)
    return "tests.md"


def line_of(project: Project, path: str) -> tuple[str, str]:
    """Return title and hook of the one line of a memory."""
    lines = [LINE.fullmatch(line) for line in project.read().splitlines()]
    (found,) = [match for match in lines if match and match["path"] == path]
    return found["title"], found["hook"] or ""


@pytest.mark.parametrize("writer", [learn, add, write, drop])
def test_a_line_says_the_whole_sentence_once(
    project: Project, writer: Callable[[Project], str]
) -> None:
    """The title is short and no beginning of the hook, which is the whole sentence."""
    title, hook = line_of(project, writer(project))
    assert hook == SENTENCE
    assert len(title) <= 60
    assert "…" not in title
    assert not SENTENCE.casefold().startswith(title.casefold())


def test_a_short_sentence_is_said_once(project: Project) -> None:
    """Where the sentence fits into the title there is no hook."""
    learn(project, "Never deploy on a Friday.")
    assert project.read().count("Friday") == 1


@pytest.mark.parametrize("writer", [learn, add, write, drop])
def test_a_line_follows_its_memory(project: Project, writer: Callable[[Project], str]) -> None:
    """After an update the line says what now holds, and undo brings the old line back."""
    path = writer(project)
    before = project.read()
    project.call("memory.write", path=path, description=NEW, name="order-queue", body=f"{NEW}\n")
    assert line_of(project, path) == ("order-queue", NEW)
    assert project.memctl("undo").returncode == 0
    assert project.read() == before


def test_the_tool_of_the_messages_api_lets_it_follow_too(project: Project) -> None:
    """An edit by ``memory.tool`` is an edit like any other."""
    path = write(project)
    command = {"command": "str_replace", "path": f"/memories/{path}"}
    words = {"old_str": f"description: {SENTENCE}", "new_str": f"description: {NEW}"}
    done = project.call("memory.tool", command={**command, **words})
    assert not done["is_error"]
    assert line_of(project, path)[1] == NEW


def test_a_line_by_hand_stays(project: Project) -> None:
    """What a person wrote in the index stays through an edit of the memory."""
    write(project)
    project.put("MEMORY.md", "# Mine\n\n- [Tests](tests.md) — ask Ada before you mock\n")
    project.call("memory.write", path="tests.md", description=NEW, body=f"{NEW}\n")
    assert project.read() == "# Mine\n\n- [Tests](tests.md) — ask Ada before you mock\n"


def test_a_line_of_an_earlier_version_follows(project: Project) -> None:
    """A line that was cut is memd's own: it stays until its memory changes, then it is whole."""
    path = learn(project)
    old = f"- [{SENTENCE[:49]}…]({path}) — {SENTENCE[:43]}…\n"
    index = project.put("MEMORY.md", old, days_old=3)
    mtime = index.stat().st_mtime_ns
    project.call("load_prompt")
    project.call("dream", force=True, wait=True)
    assert (project.read(), index.stat().st_mtime_ns) == (old, mtime)
    project.call("memory.write", path=path, description=NEW, name="order-queue", body=f"{NEW}\n")
    assert line_of(project, path) == ("order-queue", NEW)


GHOST = "- [Ghost](ghost.md) — a file that never was\n"
KEPT = (
    "# Mine\n\n- [Site](https://example.org/a.md)\n- [Logs](logs/)\n- [Notes](../notes.txt)\n"
    "- [Linked](linked.md) — a link of mine\n"
)


@pytest.fixture
def haunted(project: Project) -> Project:
    """Return a project whose index has lines to nothing among lines that stay."""
    project.write("port.md", "The broker listens on port 9911.")
    (project.memory / "linked.md").symlink_to("/etc/hostname")
    project.put("MEMORY.md", f"{KEPT}{GHOST}* [Other](area/other.md)\n{project.read()}")
    return project


def index_check(project: Project) -> dict[str, str]:
    """Return what doctor says about the index."""
    checks = project.call("doctor")["checks"]
    return next(check for check in checks if check["name"] == "index")


def test_doctor_names_lines_that_lead_nowhere(haunted: Project) -> None:
    """The check names the directory and each line, and no line that leads somewhere."""
    check = index_check(haunted)
    assert check["state"] == "warning"
    for words in ("ghost.md", "area/other.md", str(haunted.memory), "memctl doctor --fix"):
        assert words in check["detail"] + check["remedy"]
    for words in ("linked.md", "example.org", "notes.txt", "port.md"):
        assert words not in check["detail"]
    assert GHOST in haunted.read()


def test_a_fix_takes_them_out(haunted: Project) -> None:
    """Only these lines go, for good, by one change that undo takes back."""
    before = haunted.read()
    done = haunted.memctl("doctor", "--fix")
    assert "undo: memctl undo c" in done.stderr
    after = haunted.read()
    assert after == before.replace(GHOST, "").replace("* [Other](area/other.md)\n", "")
    assert index_check(haunted)["state"] == "ok"
    haunted.write("more.md", "The queue has one consumer.")
    assert "ghost" not in haunted.read()
    assert haunted.memctl("undo").returncode == 0
    assert haunted.memctl("undo").returncode == 0
    assert haunted.read() == before


def test_a_second_fix_changes_nothing(haunted: Project) -> None:
    """Where no line leads nowhere no file is written."""
    haunted.memctl("doctor", "--fix")
    mtime = (haunted.memory / "MEMORY.md").stat().st_mtime_ns
    assert "undo" not in haunted.memctl("doctor", "--fix").stderr
    assert (haunted.memory / "MEMORY.md").stat().st_mtime_ns == mtime


def test_a_dream_takes_them_out(haunted: Project) -> None:
    """The fixed pass removes them; what a person takes back it leaves."""
    before = haunted.read()
    haunted.call("dream", force=True, wait=True)
    assert "ghost" not in haunted.read()
    assert KEPT in haunted.read()
    assert haunted.memctl("undo").returncode == 0
    assert haunted.read() == before
    haunted.call("dream", force=True, wait=True)
    assert haunted.read() == before


def test_a_change_of_a_memory_takes_no_line_of_a_person(haunted: Project) -> None:
    """Without a fix or a dream a person's line stays, wherever it leads."""
    haunted.write("more.md", "The queue has one consumer.")
    assert GHOST in haunted.read()


def test_what_a_model_removes_stays_removed(haunted: Project, model: Recorder) -> None:
    """A dream's model that takes such a line out is not reverted, and nothing waits for it."""
    edit = {"file_path": str(haunted.memory / "MEMORY.md"), "old_string": GHOST, "new_string": ""}
    read = tool("Read", file_path=edit["file_path"])
    answers = [[read], [tool("Edit", **edit)]]
    model.script = lambda _: answers.pop(0) if answers else [text("Done.")]
    done = haunted.call("dream", force=True, wait=True)
    assert (done["status"], answers) == ("completed", [])
    assert "ghost" not in haunted.read()
    assert KEPT in haunted.read()
    assert haunted.call("dream.status")["proposals"] == 0

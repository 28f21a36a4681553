"""The file with a session's notes: where it lies, its form, and whose it is."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import Home, Project
from tests.net.notes_talk import TITLES, Session, form
from tests.net.wire import RpcError

BASE = "# Session Title\n_of the client_\nThe client's own words.\n"


@pytest.fixture(name="session")
def _session(project: Project) -> Session:
    return Session(project).user("Build the importer for ledgers.").reply("I begin.")


def written(session: Session) -> str:
    """Return the notes once they are written."""
    assert session.gate(force=True) is None
    return session.file.read_text()


def test_the_file_is_the_persons_own(session: Session) -> None:
    """Notes lie below the project's transcripts, mode 0600 in a directory of mode 0700."""
    assert session.update(force=True)["path"] == str(session.file)
    assert session.file.stat().st_mode & 0o777 == 0o600
    assert session.file.parent.stat().st_mode & 0o777 == 0o700


def test_ten_sections_stand_in_order(session: Session) -> None:
    """The file has ten titles in order, each with one line in italics below it."""
    written(session)
    lines = form(session.file)
    assert tuple(line.removeprefix("# ") for line in lines[::2]) == TITLES
    assert all(re.fullmatch("_.+_", line) for line in lines[1::2])


def test_the_last_line_is_for_no_reader(session: Session) -> None:
    """The last line says up to where the notes go, and no reader is shown it."""
    last = written(session).rstrip().splitlines()[-1]
    assert re.fullmatch(r"<!-- memd notes \d .*-->", last)
    for word in ("session=s1", "covers=m1", "tokens=", "engine=local", "at=20"):
        assert word in last
    found = session.read()
    assert "memd notes" not in found["content"]
    assert (found["covers"], found["engine"], found["empty"]) == ("m1", "local", False)
    assert [section["title"] for section in found["sections"]] == list(TITLES)
    assert "<!--" not in session.project.memctl("notes", "show", "s1").stdout


def test_the_last_line_has_a_hash(session: Session) -> None:
    """The last line is of version 2 and has a hash of the text above it."""
    last = written(session).rstrip().splitlines()[-1]
    assert last.startswith("<!-- memd notes 2 session=s1 ")
    assert re.search(r" hash=\w+ ", last)


@pytest.mark.full
def test_no_other_state_is_needed(own: Home) -> None:
    """After a restart without the state file growth counts from the last line."""
    session = Session(own.start().project()).user("Build it.").reply(tokens=12_000)
    assert session.gate() is None
    own.stop()
    for path in own.state.glob("state.db*"):
        path.unlink()
    own.start()
    assert session.user("Go on.").reply(tokens=14_000).gate() == "growth"
    assert session.user("Go on.").reply(tokens=18_000).gate() is None


@pytest.mark.full
def test_a_reader_gets_bounded_sections(project: Project) -> None:
    """Of long notes a reader gets at most 2,000 tokens a section and 12,000 in all."""
    session = Session(project)
    for number in range(90):
        session.user(f"Request {number}: " + f"please change module {number} " * 9)
        for tool, name in (("Read", "file_path"), ("Bash", "command")):
            words = f"/p/dir{number}/a_file_with_a_long_name_{number}.py " * 4
            given: dict[str, Any] = {name: words}
            session.ran(tool, f"error {number} " + "y" * 200, is_error=True, **given)
        session.reply("ok " * 60)
    assert session.gate(force=True) is None
    found = session.read()
    assert max(section["tokens"] for section in found["sections"]) <= 2_000
    assert found["tokens"] <= 12_000


@pytest.mark.full
def test_a_long_section_of_a_person_is_cut_for_readers(session: Session) -> None:
    """A section over its size is cut for a reader and whole in the file."""
    text = written(session)
    long = "".join(f"A long line with number {number}.\n" for number in range(2_000))
    session.file.write_text(text.replace("\n\n# Files", f"\n{long}\n# Files", 1))
    section = next(s for s in session.read()["sections"] if s["title"] == "Task specification")
    assert section["cut"] is True
    assert 4_000 < len(session.section("Task specification")) <= 2_100 * 4
    assert long in session.file.read_text()


def test_few_characters_may_be_asked_for(session: Session) -> None:
    """A reader may ask for fewer characters and gets no more."""
    written(session)
    few = session.project.call("notes.read", session_id="s1", max_chars=500)["content"]
    assert 0 < len(few) <= 500


@pytest.mark.parametrize("place", ["{}/session-memory/summary.md", ".claude/session-memory/{}.md"])
def test_a_clients_file_is_read_and_never_written(session: Session, place: str) -> None:
    """A file without memd's last line is read, and neither written nor deleted."""
    path = session.project.folder / place.format("s1")
    path.parent.mkdir(parents=True)
    path.write_text(BASE)
    assert session.gate(force=True) == "foreign"
    assert "The client's own words." in session.read()["content"]
    with pytest.raises(RpcError, match="client's own"):
        session.project.call("notes.delete", session_id="s1")
    assert path.read_text() == BASE
    assert not [p for p in session.project.folder.rglob("*.md") if p != path]


def test_words_below_the_last_line_are_a_persons(session: Session) -> None:
    """A text that somebody added at the end of the file makes it theirs."""
    text = written(session) + "\nMy own line.\n"
    session.file.write_text(text)
    assert session.user("Go on.").reply().gate(force=True) == "foreign"
    assert session.file.read_text() == text


def test_a_text_that_a_person_changed_is_theirs(session: Session) -> None:
    """Notes that a person changed are read and never written again."""
    text = written(session).replace("Build the importer", "Build it by Friday", 1)
    session.file.write_text(text)
    assert session.user("Go on.").reply().gate(force=True) == "foreign"
    assert session.file.read_text() == text
    assert "by Friday" in session.read()["content"]


def test_a_persons_line_is_not_lost(session: Session) -> None:
    """A line that a person wrote into the notes is there after further updates."""
    text = written(session).replace("\n\n# Files", "\n\nMind the ledger of 1998.\n\n# Files", 1)
    session.file.write_text(text)
    session.user("Go on.").reply().update(force=True)
    assert "Mind the ledger of 1998." in session.file.read_text()


def test_notes_are_no_memories(home: Home, project: Project) -> None:
    """No index, search, prefetch, prompt, other session or other project gets a session's notes."""
    assert Session(project).user("The quetzal ledger.").reply().gate(force=True) is None
    call = project.call
    answers = [
        call("memory.list"),
        call("memory.search", query="quetzal"),
        call("load_prompt", session_id="s2"),
        call("prefetch", session_id="s2", query="quetzal ledger", deadline_ms=10_000),
        home.project().call("notes.list"),
        project.tree(),
    ]
    assert "quetzal" not in str(answers).replace("'query': 'quetzal", "")
    log = home.log.read_text() + "".join(f.read_text() for f in home.state.rglob("*.log"))
    assert "quetzal" not in log
    with pytest.raises(RpcError):
        home.project().call("notes.read", session_id="s1")


@pytest.mark.parametrize("name", ["../s1", "a/b", ".", "", "a" * 129, "a b", "s1\n", "é"])
def test_a_session_id_is_a_plain_name(session: Session, name: str) -> None:
    """An id that could lead elsewhere is refused by each method, and no file comes into being."""
    session.name = name
    with pytest.raises(RpcError) as caught:
        session.update(force=True)
    assert caught.value.kind == "invalid_params"
    for method in ("notes.read", "notes.delete"):
        with pytest.raises(RpcError) as caught:
            session.project.call(method, session_id=name)
        assert caught.value.kind == "invalid_params"
    assert not list(session.project.folder.rglob("summary.md"))


@pytest.mark.parametrize("kind", ["directory link", "file link", "second name", "pipe"])
def test_no_link_is_followed(session: Session, tmp_path: Path, kind: str) -> None:
    """A link, a second name or a pipe in the place of notes is neither written nor shown."""
    outside = tmp_path / "summary.md"
    outside.write_text("secret-elsewhere")
    folder = session.file.parent
    (folder.parent if kind == "directory link" else folder).mkdir(parents=True)
    if kind == "directory link":
        folder.symlink_to(tmp_path)
    elif kind == "file link":
        session.file.symlink_to(outside)
    elif kind == "second name":
        other = session.project.folder / "elsewhere.md"
        other.write_text("secret-elsewhere")
        os.link(other, session.file)
    else:
        os.mkfifo(session.file)
    with pytest.raises(RpcError):
        session.update(force=True)
    with pytest.raises(RpcError, match="refused"):
        session.read()
    assert outside.read_text() == "secret-elsewhere"
    assert os.listdir(tmp_path) == ["summary.md"]


@pytest.mark.parametrize("kind", ["elsewhere", "link", "relative", "absent"])
def test_a_transcript_lies_in_its_place(project: Project, tmp_path: Path, kind: str) -> None:
    """A transcript that is no plain file of the person's is refused, and no notes come of it."""
    talk = project.conversation("s1").user("Build it.").assistant("Done.")
    link = project.folder / "link.jsonl"
    link.symlink_to(talk.path)
    place = {
        "elsewhere": "/etc/passwd",
        "link": str(link),
        "relative": "s1.jsonl",
        "absent": str(tmp_path / "none.jsonl"),
    }[kind]
    given = {"transcript_path": place, "force": True, "wait": True}
    with pytest.raises(RpcError, match="transcript"):
        project.call("notes.update", session_id="s1", **given)
    assert not list(project.folder.rglob("summary.md"))


@pytest.mark.full
def test_notes_are_listed_and_deleted(session: Session) -> None:
    """Notes are listed newest first with title and path; deleted ones leave no folder."""
    other = Session(session.project, "s2").user("Write the manual.").reply()
    written(session)
    other.update(force=True)
    os.utime(session.file, (1_700_000_000, 1_700_000_000))
    listed = session.project.call("notes.list")["notes"]
    assert [(n["session"], n["title"]) for n in listed] == [
        ("s2", "Write the manual."),
        ("s1", "Build the importer for ledgers."),
    ]
    assert listed[1]["path"] == str(session.file)
    assert len(session.project.call("notes.list", limit=1)["notes"]) == 1
    assert session.project.call("notes.delete", session_id="s1")["deleted"] is True
    assert session.project.call("notes.delete", session_id="s1")["deleted"] is False
    assert not session.file.parent.parent.exists()
    with pytest.raises(RpcError) as caught:
        session.read()
    assert caught.value.kind == "not_found"


@pytest.mark.full
def test_memctl_shows_and_removes_notes(session: Session) -> None:
    """The command shows a section, the path, the list and JSON, and removes all at once."""
    written(session)
    run = session.project.memctl
    assert "Build the importer" in run("notes").stdout
    assert run("notes", "show", "s1", "--section", "task").stdout.count("#") == 1
    assert run("notes", "path").stdout.strip() == str(session.file)
    assert session.project.json("notes", "show", "s1")["covers"] == "m1"
    assert run("notes", "rm", "--all").returncode == 0
    assert not session.file.exists()


@pytest.mark.full
def test_edit_opens_the_file(session: Session, tmp_path: Path) -> None:
    """The command opens the notes in the person's editor."""
    written(session)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "\\nMine.\\n" >> "$1"\n')
    editor.chmod(0o755)
    environ = {"EDITOR": str(editor), "VISUAL": ""}
    assert session.project.memctl("notes", "edit", "s1", environ=environ).returncode == 0
    assert "Mine." in session.file.read_text()

"""Notes by a model: it edits one file, within its bounds, and harms nothing."""

import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.net.kit import Home, Project, differs, until
from tests.net.notes_talk import Session, form
from tests.net.recorder import Recorder, text, tool

KEY = "ghp_" + "0aZ9Kq3LmN8pQr5StUv2WxYz7AbCdEf1GhIj"
TEMPLATE = "# Current State\n_the state_\n\n# Learnings\n_the rules_\n\n# Worklog\n_the steps_\n"
GUIDES = {"Current State": "_the state_", "Learnings": "_the rules_", "Worklog": "_the steps_"}


@pytest.fixture(name="templates")
def _templates(home: Home) -> Iterator[Home]:
    """Give a person a template of three sections, for as long as a test runs."""
    folder = home.claude / "session-memory/config"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "template.md").write_text(TEMPLATE)
    yield home
    for path in folder.iterdir():
        path.unlink()


@pytest.fixture(name="session")
def _session(templates: Home, model: Recorder, project: Project) -> Session:
    """Return a session whose notes a model has once written."""
    assert templates is project.home
    session = Session(project).user("Build the importer.").reply("I begin.")
    model.play([put(session, "Current State", "- as it was")])
    assert session.update(force=True)["engine"] not in (None, "local")
    model.requests.clear()
    model.raw.clear()
    session.user("Go on with it.").reply("I go on.")
    return session


def put(session: Session, title: str, words: str) -> dict[str, Any]:
    """Return the call with which a model puts a line first into a section."""
    old = f"# {title}\n{GUIDES[title]}\n"
    return tool("Edit", file_path=str(session.file), old_string=old, new_string=f"{old}{words}\n")


def test_edits_that_apply_end_the_run(session: Session, model: Recorder) -> None:
    """A model that edits well is asked once; the notes say what it wrote, and who wrote it."""
    model.script = lambda _: [put(session, "Worklog", "- began"), put(session, "Learnings", "- x")]
    result = session.update(force=True)
    assert (result["status"], result["turns"], len(model.requests)) == ("completed", 1, 1)
    assert result["sections"] == ["Learnings", "Worklog"]
    assert result["usage"]["output"] > 0
    assert session.section("Worklog").strip() == "- began"
    assert "as it was" in session.section("Current State")
    last = session.file.read_text().rstrip().splitlines()[-1]
    assert " engine=model " in last
    assert f" covers={session.messages[-1]['id']} " in last


@pytest.mark.full
def test_a_model_sees_what_is_new(session: Session, model: Recorder) -> None:
    """Without a client's prefix a model is shown the notes and the new messages only."""
    model.script = lambda _: [put(session, "Worklog", "- went on")]
    session.update(force=True)
    asked = json.dumps(model.requests[0]["messages"])
    assert "Go on with it." in asked
    assert "as it was" in asked
    assert "Build the importer." not in asked


@pytest.mark.full
def test_what_is_shown_has_a_bound(session: Session, model: Recorder) -> None:
    """However much is new, a request has some 20,000 tokens and ends with the newest messages."""
    for number in range(200):
        session.user(f"Question {number}: " + "why is it so slow? " * 60).reply("answer " * 150)
    model.script = lambda _: [put(session, "Worklog", "- went on")]
    session.update(force=True)
    assert len(model.raw[0]) <= 20_000 * 4.5
    assert "Question 199:" in json.dumps(model.requests[0])


def test_a_clients_prefix_is_repeated(session: Session, model: Recorder) -> None:
    """With a client's own request its system, tools and messages go out as they are, plus one."""
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("Bash", "Edit")]
    block = {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}
    messages = [*session.messages, {"role": "user", "content": [block]}]
    sent = [{"role": m["role"], "content": m["content"]} for m in messages]
    cache = {"model": "claude-opus-5-5", "system": "You code.", "tools": tools, "messages": sent}
    model.script = lambda _: [put(session, "Worklog", "- went on")]
    session.update(force=True, cache=cache)
    (asked,) = model.requests
    assert {name: asked[name] for name in ("model", "system", "tools")} == {
        name: cache[name] for name in ("model", "system", "tools")
    }
    assert asked["messages"][:-1] == sent
    assert session.section("Worklog").strip() == "- went on"


def test_only_edits_of_the_notes_do_anything(session: Session, model: Recorder) -> None:
    """Other tools, and edits of other files, are refused at run time and change nothing."""
    other = session.project.path / "README.md"
    other.write_text("root\n")
    path = str(session.file)
    refused = [
        tool("Write", file_path=path, content="x"),
        tool("Write", file_path=str(session.project.memory / "x.md"), content="x"),
        tool("Bash", command=f"rm {path}"),
        tool("Edit", file_path=str(other), old_string="root", new_string="x"),
        tool("Edit", file_path=f"{path}/../../../x.md", old_string="", new_string="x"),
    ]
    model.play(refused, [put(session, "Worklog", "- went on")])
    result = session.update(force=True)
    assert (result["status"], result["refused"]) == ("completed", len(refused))
    assert other.read_text() == "root\n"
    assert session.project.tree() == {}
    assert sorted(p.name for p in session.file.parent.iterdir()) == ["summary.md"]
    assert "as it was" in session.section("Current State")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Current State\n_the state_", "# Aim\n_the state_"),
        ("# Current State\n_the state_\n", "# Current State\n"),
        ("_the state_", "_the State_"),
        ("# Current State\n_the state_\n- as it was\n\n", ""),
        ("# Learnings\n_the rules_", "# Learnings\n_the rules_\n# Worklog\n_the steps_\nmore"),
    ],
)
def test_titles_and_italic_lines_stay(
    session: Session, model: Recorder, old: str, new: str
) -> None:
    """A model that changes a title or an italic line changes nothing of the form."""
    before = form(session.file)
    change = tool("Edit", file_path=str(session.file), old_string=old, new_string=new)
    model.script = lambda _: [put(session, "Worklog", "- went on"), change]
    session.update(force=True)
    assert form(session.file) == before
    assert "- as it was" in session.section("Current State")
    assert "- went on" in session.section("Worklog")


def test_a_credential_does_not_get_in(session: Session, model: Recorder) -> None:
    """A line with a credential is replaced by the name of the rule that found it."""
    model.script = lambda _: [put(session, "Learnings", f"- the key is {KEY}\n- mind the gap")]
    session.update(force=True)
    words = session.file.read_text()
    assert KEY[4:24] not in words
    assert "[removed: " in words
    assert "- mind the gap" in words


@pytest.mark.full
def test_a_bound_is_an_end(session: Session, model: Recorder) -> None:
    """After four turns a run ends: valid edits stay, the cursor moves, nothing is repeated."""
    steps = iter(range(100))
    model.script = lambda _: [
        put(session, "Worklog", f"- step {next(steps)}"),
        tool("Bash", command="ls"),
    ]
    session.update(force=True)
    assert len(model.requests) == 4
    assert [f"- step {n}" in session.section("Worklog") for n in range(4)] == [True] * 4
    assert session.read()["covers"] == session.messages[-1]["id"]


@pytest.mark.full
def test_a_run_has_four_turns(session: Session, model: Recorder) -> None:
    """A model that never ends is given up, and what was in the notes stays."""
    model.script = lambda _: [tool("Bash", command="ls")]
    session.update(force=True)
    assert 4 <= len(model.requests) <= 12
    assert "as it was" in session.section("Current State")
    assert form(session.file)[::2] == ["# Current State", "# Learnings", "# Worklog"]


def test_updates_of_a_session_do_not_overlap(session: Session, model: Recorder) -> None:
    """While a model is at work no other run of the session begins; the newest one waiting runs."""
    model.gate = threading.Event()
    model.script = lambda _: [put(session, "Worklog", f"- run {len(model.requests)}")]
    first = session.update(force=True, wait=False)
    until(lambda: model.requests, "the model is asked")
    jobs = [first["job"]]
    for number in range(4):
        session.user(f"Question {number}.").reply()
        later = session.update(force=True, wait=False)
        assert later["status"] in ("accepted", "coalesced")
        jobs.append(later["job"])
    session.project.home.call("status")
    assert len(model.requests) == 1
    model.gate.set()
    session.project.home.call("job.wait", job=jobs[-1])
    assert len(model.requests) == 2
    assert session.read()["covers"] == session.messages[-1]["id"]
    assert "Question 3." in json.dumps(model.requests[-1])


def test_a_person_may_write_meanwhile(session: Session, model: Recorder) -> None:
    """What a person saves while a model is at work is not written over."""
    model.gate = threading.Event()
    model.script = lambda _: [put(session, "Current State", "- by the model")]
    job = session.update(force=True, wait=False)["job"]
    until(lambda: model.requests, "the model is asked")
    mine = session.file.read_text().replace("- as it was", "- as I want it")
    session.file.write_text(mine)
    model.gate.set()
    session.project.home.call("job.wait", job=job)
    assert "- as I want it" in session.file.read_text()
    assert "- by the model" not in session.section("Current State")


def test_the_local_writer_leaves_a_models_notes(session: Session) -> None:
    """Notes that a model wrote are not taken over by the local writer."""
    session.project.home.configure("[notes]\nuse_model = false\n")
    before = session.file.read_bytes()
    session.ran("Bash", "12 passed", command="pytest -q").reply().update(force=True)
    assert session.file.read_bytes() == before


@pytest.mark.full
def test_a_model_takes_local_notes_over(
    home: Home, templates: Home, model: Recorder, project: Project
) -> None:
    """Where a model is configured later, it goes on with notes of the local writer."""
    assert templates is home
    home.configure("")
    session = Session(project).user("Build the importer.").reply()
    assert session.update(force=True)["engine"] == "local"
    home.configure(model.settings())
    model.script = lambda _: [put(session, "Learnings", "- by the model")]
    session.user("Go on.").reply().update(force=True)
    assert " engine=model " in session.file.read_text()


@pytest.mark.full
def test_a_model_is_not_asked_where_it_is_switched_off(session: Session, model: Recorder) -> None:
    """With notes.use_model off no model is asked."""
    settings = model.settings() + "[notes]\nuse_model = false\n"
    session.project.home.configure(settings)
    other = Session(session.project, "s2").user("Build it.").reply()
    assert other.update(force=True)["engine"] == "local"
    assert model.requests == []


def test_a_spent_day_stops_only_the_model(session: Session, model: Recorder) -> None:
    """Where the day's money is spent the local writer writes, and the gate is named."""
    session.project.home.configure(
        model.settings().replace("dollars_per_day = 500.0", "dollars_per_day = 0.0")
    )
    other = Session(session.project, "s2").user("Build it.").reply()
    result = other.update(force=True)
    assert (result["engine"], result["gate"], model.requests) == ("local", "cap", [])
    assert other.file.exists()


def test_own_prompt_and_template(session: Session, model: Recorder) -> None:
    """Names in the person's prompt are put in once; what is put in or unknown stays as it is."""
    prompt = session.project.home.claude / "session-memory/config/prompt.md"
    prompt.write_text("MINE {{notesPath}} <{{currentNotes}}> {{unknown}} $1 \\1 [{{sizes}}]\n")
    model.script = lambda _: [put(session, "Learnings", "- mind {{notesPath}} and {{sizes}}")]
    session.update(force=True)
    session.user("Once more.").reply().update(force=True)
    words = json.dumps(model.requests[-1]["messages"][-1])
    assert f"MINE {session.file} <" in words
    assert "- mind {{notesPath}} and {{sizes}}" in words
    assert "{{unknown}} $1 \\\\\\\\1 [" in words or "{{unknown}} $1 \\\\1 [" in words


@pytest.mark.full
def test_a_damaged_template_is_named(session: Session) -> None:
    """In the place of a template that cannot be used stands the built-in one; doctor says so."""
    path = session.project.home.claude / "session-memory/config/template.md"
    session.project.home.configure("")
    for number, content in enumerate((b"no heading\n", b"# A\n_a_\n# A\n_a_\n", b"\xff# A\n_a_\n")):
        path.write_bytes(content)
        other = Session(session.project, f"t{number}").user("Build it.").reply()
        other.update(force=True)
        assert len(form(other.file)) == 20
        assert "template.md" in json.dumps(session.project.call("doctor"))


@pytest.mark.full
def test_a_changed_template_is_for_the_next_session(session: Session, model: Recorder) -> None:
    """Notes that were begun keep their sections; a new session has those of the new template."""
    path = session.project.home.claude / "session-memory/config/template.md"
    path.write_text("# Goal\n_the goal_\n")
    model.script = lambda _: [put(session, "Learnings", "- went on")]
    session.update(force=True)
    assert form(session.file)[::2] == ["# Current State", "# Learnings", "# Worklog"]
    session.project.home.configure("")
    other = Session(session.project, "s2").user("Build it.").reply()
    other.update(force=True)
    assert form(other.file) == ["# Goal", "_the goal_"]


@pytest.mark.full
def test_a_repository_supplies_nothing(project: Project) -> None:
    """Template, prompt and settings in a checkout change nothing about notes."""
    for folder in (".claude/session-memory/config", "session-memory/config", ".memd"):
        place = project.path / folder
        place.mkdir(parents=True)
        for name in ("template.md", "prompt.md"):
            (place / name).write_text("# Obey\n_the repository_\n")
        (place / "memd.toml").write_text("[notes]\nenabled = false\n")
    (project.path / ".claude/settings.json").write_text('{"notes": {"enabled": false}}')
    session = Session(project).user("Build it.").reply()
    session.update(force=True)
    assert len(form(session.file)) == 20
    assert "repository" not in session.file.read_text()


@pytest.mark.full
@pytest.mark.parametrize(
    "status",
    [
        pytest.param(400, marks=differs("11.2", "a model that refuses is named as a cap")),
        429,
        500,
    ],
)
def test_a_failed_run_leaves_notes_and_cursor(own: Home, status: int) -> None:
    """A model that fails leaves a model's notes as they were; after three runs it is left alone."""
    model = Recorder()
    try:
        own.configure(model.settings())
        session = Session(own.start().project()).user("Build it.").reply()
        folder = own.claude / "session-memory/config"
        folder.mkdir(parents=True)
        (folder / "template.md").write_text(TEMPLATE)
        model.play([put(session, "Current State", "- as it was")])
        session.update(force=True)
        before = session.file.read_bytes()
        model.script = lambda _: status
        session.user("Go on.").reply().update(force=True)
        assert session.file.read_bytes() == before
        for _ in range(4):
            session.update(force=True)
        asked = len(model.requests)
        assert session.update(force=True)["gate"] == "breaker"
        assert len(model.requests) == asked
        assert "- as it was" in session.section("Current State")
    finally:
        model.close()


@pytest.mark.full
@pytest.mark.parametrize("moment", range(8))
def test_a_killed_update_leaves_old_or_new_notes(own: Home, moment: int) -> None:
    """After a kill -9 at any moment the notes are old or new, each with its own cursor."""
    session = Session(own.start().project()).user("Request 0.").reply()
    session.update(force=True)
    told = {session.messages[-1]["id"]: "Request 0."}
    for number in range(1, 4):
        session.user(f"Request {number}.").reply("word " * 2_000)
        told[session.messages[-1]["id"]] = f"Request {number}."
        caller = own.connect()
        given = {"session_id": "s1", "messages": session.messages, "force": True, "wait": True}
        caller.ask("notes.update", cwd=session.project.cwd, **given)
        threading.Event().wait(moment * 0.002)
        own.stop(signal.SIGKILL)
        own.start()
        found = session.read()
        assert f"last request: `{told[found['covers']]}`" in found["content"]
    session.update(force=True)
    assert session.read()["covers"] == session.messages[-1]["id"]
    assert [p.name for p in session.file.parent.iterdir()] == ["summary.md"]


@pytest.mark.full
def test_a_model_that_says_nothing_harms_nothing(session: Session, model: Recorder) -> None:
    """A model that only answers with a text leaves what was in the notes."""
    model.script = lambda _: [text("Nothing to note.")]
    session.update(force=True)
    assert "- as it was" in session.section("Current State")

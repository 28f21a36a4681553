"""When notes are written: the gates of an update, in their order."""

from pathlib import Path

import pytest

from tests.net.kit import Home, Project
from tests.net.notes_talk import Session


@pytest.fixture(name="session")
def _session(project: Project) -> Session:
    return Session(project).user("Build the importer.").reply(tokens=10_000)


@pytest.mark.parametrize(("tokens", "gate"), [(9_999, "young"), (10_000, None)])
def test_notes_begin_at_ten_thousand_tokens(
    project: Project, tokens: int, gate: str | None
) -> None:
    """The first notes are written once the context has 10,000 tokens."""
    session = Session(project).user("Build the importer.").reply(tokens=tokens)
    assert session.gate() == gate
    assert session.file.exists() == (gate is None)


@pytest.mark.parametrize(("tokens", "gate"), [(14_999, "growth"), (15_000, None)])
def test_notes_go_on_after_five_thousand_tokens(
    session: Session, tokens: int, gate: str | None
) -> None:
    """At a break notes are written again once the context has grown by 5,000 tokens."""
    assert session.gate() is None
    assert session.user("Go on.").reply(tokens=tokens).gate() == gate


def test_three_calls_are_a_moment_too(session: Session) -> None:
    """In the middle of a turn notes wait for three calls since the last update."""
    assert session.gate() is None
    session.user("Go on.").ran("Bash", tokens=16_000, command="ls")
    assert session.gate() == "mid_turn"
    assert session.ran("Bash", tokens=16_000, command="ls").gate() == "mid_turn"
    assert session.ran("Bash", tokens=16_000, command="ls").gate() is None


def test_calls_do_not_stand_for_growth(session: Session) -> None:
    """However many tools were called, without growth by 5,000 tokens nothing is written."""
    assert session.gate() is None
    session.user("Go on.")
    for number in range(30):
        session.ran("Bash", tokens=12_000 + number, command=f"make part{number}")
    assert session.gate() == "growth"


def test_a_skipped_update_moves_nothing(session: Session) -> None:
    """Growth counts from the last update that succeeded, over updates that were skipped."""
    assert session.gate() is None
    for tokens, gate in ((12_000, "growth"), (14_500, "growth"), (15_200, None)):
        assert session.user("Go on.").reply(tokens=tokens).gate() == gate


def test_growth_counts_from_a_smaller_context(project: Project) -> None:
    """After a compaction growth counts from the new size."""
    talk = project.conversation().user("Build the importer.")

    def gate(tokens: int) -> str | None:
        usage = {"input_tokens": tokens, "output_tokens": 0}
        message = {"role": "assistant", "content": "Done.", "usage": usage, "id": f"r{tokens}"}
        talk.assistant("Done.", message=message)
        given = {"transcript_path": str(talk.path), "wait": True}
        answer = project.call("notes.update", session_id=talk.session, **given)
        found: str | None = answer.get("gate")
        return found

    assert gate(90_000) is None
    talk.user("It was about an importer.", isCompactSummary=True)
    gate(20_000)
    assert gate(24_000) == "growth"
    assert gate(26_000) is None


def test_force_skips_three_gates(session: Session) -> None:
    """Force writes although the conversation is young, has not grown, and is in mid turn."""
    young = Session(session.project, "young").user("Hello there.").reply()
    assert young.gate() == "young"
    assert young.gate(force=True) is None
    assert young.ran("Bash", command="ls").gate(force=True) is None


def test_a_switch_is_read_at_each_use(home: Home, session: Session) -> None:
    """While notes.enabled is false nothing is written, even by force."""
    home.configure("[notes]\nenabled = false\n")
    assert session.gate(force=True) == "off"
    assert not session.file.exists()
    home.configure("")
    assert session.gate() is None


def test_a_project_that_is_off_gets_no_notes(home: Home, session: Session) -> None:
    """For a caller whose memory is off nothing is written, and nothing is brought."""
    assert session.gate() is None
    before = session.file.read_bytes()
    given = {"cwd": session.project.cwd, "session_id": "s1", "messages": session.messages}
    with home.connect(environ={"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}) as caller:
        result = caller.call("notes.update", wait=True, force=True, **given)
        assert result["gate"] == "off"
    transcript = str(session.project.folder / "s1.jsonl")
    payload = {"session_id": "s1", "cwd": session.project.cwd, "transcript_path": transcript}
    environ = {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}
    for event in ("SessionStart", "PreCompact", "Stop"):
        given = {**payload, "hook_event_name": event, "source": "compact", "trigger": "auto"}
        assert "importer" not in home.hook(event, given, environ=environ)
    assert session.file.read_bytes() == before


@pytest.mark.parametrize("name", ["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"])
def test_a_client_that_never_compacts_needs_no_notes(
    home: Home, session: Session, name: str
) -> None:
    """Claude Code with automatic compaction off gets no notes, even by force."""
    given = {"cwd": session.project.cwd, "session_id": "s1", "messages": session.messages}
    with home.connect(name="claude-code", environ={name: "1"}) as caller:
        result = caller.call("notes.update", force=True, wait=True, **given)
    assert (result["gate"], session.file.exists()) == ("no_autocompact", False)


def test_a_subagent_gets_no_notes(project: Project) -> None:
    """The transcript of a sub-agent is no session with notes, even by force."""
    talk = project.conversation("s1").user("Look around.", isSidechain=True)
    talk.assistant("Done.", isSidechain=True)
    nested = project.folder / "s1/subagents/agent-1.jsonl"
    nested.parent.mkdir(parents=True)
    talk.path.rename(nested)
    given = {"transcript_path": str(nested), "force": True, "wait": True}
    assert project.call("notes.update", session_id="s1", **given)["gate"] == "subagent"
    assert not (project.folder / "s1/session-memory").exists()


def test_the_first_gate_is_named(home: Home, session: Session) -> None:
    """Of several closed gates the first is named: off, then the client's file, then young."""
    other = Session(session.project, "s2").user("Hello there.").reply()
    other.file.parent.mkdir(parents=True)
    other.file.write_text("# Session Title\n_of the client_\n")
    assert other.gate() == "foreign"
    home.configure("[notes]\nenabled = false\n")
    assert other.gate() == "off"


@pytest.mark.full
def test_a_paused_daemon_writes_no_notes(own: Home) -> None:
    """While memd is paused an update ends at that gate, and after resume it is written."""
    session = Session(own.start().project()).user("Build it.").reply(tokens=12_000)
    own.call("pause")
    assert session.gate() == "paused"
    assert not session.file.exists()
    own.call("resume")
    assert session.gate() is None


def test_without_wait_a_job_is_named(session: Session) -> None:
    """An update that is not waited for is accepted with its job, which can be waited for."""
    result = session.update(wait=False)
    assert result["status"] == "accepted"
    session.project.home.call("job.wait", job=result["job"])
    assert session.read()["covers"] == "m1"


def test_a_transcript_may_be_named(project: Project) -> None:
    """Notes of a transcript end at its last message and quote the person."""
    talk = project.conversation().user("Build the importer for ledgers.").assistant("Done.")
    given = {"transcript_path": str(talk.path), "force": True, "wait": True}
    result = project.call("notes.update", session_id=talk.session, **given)
    assert Path(result["path"]) == project.folder / talk.session / "session-memory/summary.md"
    assert result["covers"] in talk.path.read_text().splitlines()[-1]
    assert "Build the importer" in Path(result["path"]).read_text()

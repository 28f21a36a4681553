"""Which turns are extracted: inputs, gates, the cursor, one job at a time, and kills."""

import json
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.net.extract_talk import extract, memory, messages
from tests.net.kit import Conversation, Home, Project, until
from tests.net.recorder import Blocks, Recorder, text, tool
from tests.net.wire import RpcError

WISH = "Remember: the broker of the shop listens on port 9911."
RULE = "Remember: install packages with pnpm, never with npm."
DONE = ("done", "completed")


def heard(project: Project, path: object, session: str = "s1", **more: Any) -> dict[str, Any]:
    """Extract from a transcript and wait for the result."""
    return extract(project, session=session, transcript_path=str(path), **more)


def codex(project: Project, name: str, source: str = "cli") -> Path:
    """Write a rollout of Codex."""
    path = project.home.path / f"h/.codex/sessions/2026/11/28/rollout-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    given = {"id": name, "cwd": project.cwd, "source": source or {"subagent": "review"}}
    content = [{"type": "output_text", "text": "Ok."}]
    lines = [
        {"type": "session_meta", "payload": given},
        {"type": "event_msg", "payload": {"type": "user_message", "message": WISH}},
        {
            "type": "response_item",
            "payload": {"type": "message", "role": "assistant", "content": content},
        },
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_transcript_of_claude_code_is_read(project: Project) -> None:
    """A request in a transcript is saved, and the memory names session and transcript."""
    talk = project.conversation("s1").user("Hello.").assistant("Hi.").user(WISH).assistant("Ok.")
    (path,) = heard(project, talk.path)["saved"]
    first = project.call("memory.why", path=path)["first"]
    assert (first["session"], first["transcript"]) == ("s1", str(talk.path))
    assert "originSessionId: s1" in project.read(path)


def test_a_transcript_of_codex_is_read(project: Project) -> None:
    """A rollout is a transcript too, but for that of a sub-agent."""
    assert len(heard(project, codex(project, "a"))["saved"]) == 1
    other = project.home.project()
    assert heard(other, codex(other, "b", source=""))["status"] == "skipped"
    assert other.tree() == {}


def test_unknown_and_torn_lines_are_passed_over(project: Project) -> None:
    """Meta messages, unknown kinds, huge lines and a torn last line cost nothing."""
    talk = project.conversation("s1").user("x" * 3_000_000)
    talk.user(f"{RULE} (a caveat of the program)", isMeta=True)
    with talk.path.open("a") as file:
        file.write('{"type": "kind-of-tomorrow", "message": 5}\n[1]\n\x00\nno json\n')
    talk.user(WISH).assistant("Ok.")
    with talk.path.open("a") as file:
        file.write('{"type": "user", "message": {"role": "user", "content": "Remem')
    answer = heard(project, talk.path)
    assert len(answer["saved"]) == 1
    assert "pnpm" not in str(project.tree())


def test_a_format_without_text_is_named(project: Project) -> None:
    """A transcript of a known kind that yields no text at all says so."""
    path = project.folder / "s1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"type": "user", "uuid": "u", "message": {"role": "user", "said": "moved"}}
    path.write_text(f"{json.dumps(line)}\n" * 50)
    answer = heard(project, path)
    assert answer["problem"] or answer["reason"] not in (None, "nothing_new")


@pytest.mark.parametrize("path", ["/etc/passwd", "nowhere.jsonl", "{home}/.ssh/id_rsa"])
def test_another_file_is_no_transcript(project: Project, path: str) -> None:
    """A path that is no transcript of the person is an error, and its text is in no answer."""
    secret = project.home.path / "h/.ssh/id_rsa"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("PRIVATE-WORDS\n")
    with pytest.raises(RpcError) as failed:
        heard(project, path.format(home=project.home.path / "h"))
    assert "PRIVATE" not in str(failed.value)


def test_only_what_is_new_is_considered(project: Project) -> None:
    """A second request without news does nothing, even if the memory was deleted meanwhile."""
    talk = project.conversation("s1").user(WISH).assistant("Ok.")
    (path,) = heard(project, talk.path)["saved"]
    project.call("memory.delete", path=path)
    again = heard(project, talk.path)
    assert (again["status"], again.get("reason")) == ("skipped", "nothing_new")
    talk.user(RULE).assistant("Ok.")
    heard(project, talk.path)
    assert "9911" not in str(project.tree())


def test_compacted_messages_are_considered(project: Project) -> None:
    """Messages that a client sends after its compaction are looked at as what is there."""
    extract(project, "Hello.", "How are you?", WISH)
    assert len(extract(project, "Remember: the queue is called zebra-cron.")["saved"]) == 1


def test_a_transcript_written_anew_is_considered(project: Project) -> None:
    """A cursor whose message is gone from the transcript falls back to what is there."""
    talk = project.conversation("s2").user("Hello.").assistant("Hi.")
    heard(project, talk.path, "s2")
    talk.path.unlink()
    talk.user("Remember: the nightly window is at two o'clock.").assistant("Ok.")
    assert len(heard(project, talk.path, "s2")["saved"]) == 1


def test_turns_of_sub_agents_are_not_extracted(project: Project) -> None:
    """Neither a sub-agent's lines in a transcript nor its own transcript leave anything."""
    talk = project.conversation("s1").user("Hello.").assistant("Hi.")
    talk.user(WISH, isSidechain=True).assistant("Ok.", isSidechain=True)
    heard(project, talk.path)
    agent = project.folder / "s1/subagents/agent-1.jsonl"
    agent.parent.mkdir(parents=True)
    lines = talk.path.read_text().replace("Hello.", WISH).splitlines(keepends=True)
    agent.write_text("".join(line.replace("{", '{"isSidechain": true, ', 1) for line in lines))
    assert heard(project, agent, "s2")["status"] == "skipped"
    assert project.tree() == {}


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "Write": ("Write", {"file_path": "{memory}/x.md", "content": "y"}),
    "Edit": ("Edit", {"file_path": "{memory}/x.md", "old_string": "a", "new_string": "b"}),
    "MultiEdit": ("MultiEdit", {"file_path": "{memory}/x.md", "edits": []}),
    "dots": ("Write", {"file_path": "{memory}/../memory/x.md", "content": "y"}),
    "link": ("Write", {"file_path": "{link}/x.md", "content": "y"}),
    "memory tool": ("memory", {"command": "create", "path": "/memories/x.md", "file_text": "y"}),
    "mcp": ("mcp__memd__save", {"name": "x", "body": "y"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_wrote_memory_is_done(project: Project, way: str) -> None:
    """Whichever way the assistant wrote memory itself, the range counts as considered."""
    project.put("y.md", memory("y", "Some fact."))
    link = project.home.path / f"h/{project.path.name}-link"
    link.symlink_to(project.memory)
    name, given = WAYS[way]
    places = {"{memory}": str(project.memory), "{link}": str(link)}
    for mark, place in places.items():
        given = json.loads(json.dumps(given).replace(mark, place))
    talk = project.conversation("s1").user(WISH)
    talk.assistant([{"type": "tool_use", "id": "t1", "name": name, "input": given}])
    talk.user([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]).assistant("Saved.")
    answer = heard(project, talk.path)
    assert (answer["status"], answer["reason"]) == ("skipped", "already_written")
    talk.user("Remember: the queue is called zebra-cron.").assistant("Ok.")
    heard(project, talk.path)
    assert "9911" not in str(project.tree())
    assert "zebra-cron" in str(project.tree())


def test_each_third_turn_is_extracted(project: Project) -> None:
    """With every_turns = 3 two of six eligible turns run, and nothing is lost."""
    project.home.configure("[extract]\nevery_turns = 3\n")
    talk, ran = project.conversation("s1"), []
    for number in range(6):
        talk.user(f"Remember: the port of service {number} is 99{number}1.").assistant("Ok.")
        answer = heard(project, talk.path)
        ran.append(answer["status"] != "skipped")
    assert ran == [False, False, True, False, False, True]
    assert len(project.tree()) == 7


REMOTE = {"CLAUDE_CODE_REMOTE": "1", "CLAUDE_CODE_REMOTE_MEMORY_DIR": "/tmp"}


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        ("[extract]\nenabled = false\n", {}),
        ("enabled = false\n", {}),
        ("", {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}),
        ("", {"CLAUDE_CODE_REMOTE": "1"}),
        ("", {"CLAUDE_CODE_REMOTE": "1", "CLAUDE_CODE_REMOTE_MEMORY_DIR": "{home}/there"}),
    ],
)
def test_a_closed_gate_is_named(project: Project, settings: str, environ: dict[str, str]) -> None:
    """With memory or extraction off, or for a remote client, nothing is read and the gate named."""
    project.home.configure(settings)
    given = {key: value.format(home=project.home.path) for key, value in environ.items()}
    with project.home.connect(environ=given) as client:
        said = {"messages": messages(WISH), "session_id": "s1", "wait": True}
        answer = client.call("extract", cwd=project.cwd, **said)
        assert (answer["status"], bool(answer["reason"])) == ("skipped", True)
    assert project.tree() == {}


def test_a_remote_client_may_be_allowed(project: Project) -> None:
    """With allow_remote a remote client with a place for its memories is listened to."""
    project.home.configure("[extract]\nallow_remote = true\n")
    there = str(project.home.path / "h/there")
    environ = {"CLAUDE_CODE_REMOTE": "1", "CLAUDE_CODE_REMOTE_MEMORY_DIR": there}
    with project.home.connect(environ=environ) as client:
        said = {"messages": messages(WISH), "session_id": "s1", "wait": True}
        assert len(client.call("extract", cwd=project.cwd, **said)["saved"]) == 1


def test_a_conversation_with_outside_text_can_be_left_out(project: Project) -> None:
    """With skip_outside a conversation in which the web was read is not extracted."""
    project.home.configure("[extract]\nskip_outside = true\n")
    talk = project.conversation("s1").user("Have a look.")
    talk.assistant([{"type": "tool_use", "id": "t", "name": "WebFetch", "input": {"url": "x"}}])
    talk.user([{"type": "tool_result", "tool_use_id": "t", "content": "page"}])
    talk.user(WISH).assistant("Ok.")
    assert heard(project, talk.path)["status"] == "skipped"
    assert project.tree() == {}


def saves(request: dict[str, Any]) -> Blocks:
    """Save the newest wish that a request has, as a model does."""
    said = json.dumps(request["messages"])
    marks = [words.split()[0] for words in said.split("never touch area ")[1:]]
    if "tool_result" in said or not marks:
        return [text("Done.")]
    wish = f"Please never touch area {marks[-1]} of the shop"
    file = memory(f"area-{marks[-1]}", f"Never touch area {marks[-1]}.", "feedback", wish)
    return [tool("Write", file_path=f"area_{marks[-1]}.md", content=file)]


def wish(talk: Conversation, mark: str) -> Conversation:
    """Add a wish with a mark of its own to a conversation."""
    return talk.user(f"Please never touch area {mark} of the shop").assistant("Ok.")


def test_one_run_at_a_time_and_the_newest_of_each_session(
    project: Project, model: Recorder
) -> None:
    """Runs of a directory do not overlap, and each session's newest request is considered."""
    model.gate = threading.Event()
    overlaps: list[int] = []
    asking: list[int] = []

    def script(request: dict[str, Any]) -> Blocks:
        overlaps.append(len(asking))
        asking.append(1)
        model.gate.wait(0.01) if model.gate else None
        asking.pop()
        return saves(request)

    model.script = script
    talks = {name: project.conversation(f"{project.path.name}-{name}") for name in "abc"}
    jobs = []
    for number in range(6):
        talk = wish(talks["abc"[number % 3]], f"{number}x")
        given = {"session_id": talk.session, "transcript_path": str(talk.path)}
        answer = project.call("extract", **given)
        assert answer["status"] in ("accepted", "coalesced")
        jobs.append(answer["job"])
    model.gate.set()
    for job in jobs:
        assert project.home.call("job.wait", job=job)["state"] in ("completed", "superseded")
    assert max(overlaps) == 0
    assert {f"area_{number}x.md" for number in (3, 4, 5)} <= set(project.tree())


@pytest.mark.full
def test_an_accepted_request_survives_a_kill(own: Home) -> None:
    """After kill -9 at several moments each wish is in one memory, considered once."""
    model = Recorder()
    model.script = saves
    own.configure(model.settings("[dream]\nauto = false\n"))
    project = own.start().project()
    talk, files = project.conversation("s1"), set()
    for number in range(4):
        model.gate = threading.Event()
        asked = len(model.requests)
        wish(talk, f"{number}x")
        project.call("extract", session_id="s1", transcript_path=str(talk.path))
        if number:
            until(partial(more, model, asked), "the model is asked")
        if number == 2:
            model.gate.set()
        own.stop(signal.SIGKILL)
        model.gate.set()
        own.start()
        files.add(f"area_{number}x.md")
        until(lambda: files <= set(project.tree()), "the wish is a memory")
        until(lambda: not running(own), "the job has ended")
    assert set(project.tree()) == {"MEMORY.md", *files}
    asked = len(model.requests)
    assert heard(project, talk.path)["status"] == "skipped"
    assert len(model.requests) == asked
    model.close()


def more(model: Recorder, asked: int) -> bool:
    """Tell whether a model has been asked more often."""
    return len(model.requests) > asked


def running(home: Home) -> list[Any]:
    """Return the jobs that have not ended."""
    return [job for job in home.call("job.list")["jobs"] if job["ended"] is None]


@pytest.mark.full
def test_a_running_extraction_is_drained(own: Home) -> None:
    """A daemon that is asked to end waits for the extraction that runs."""
    model = Recorder()
    model.script, model.gate = saves, threading.Event()
    own.configure(model.settings())
    project = own.start().project()
    talk = wish(project.conversation("s1"), "7x")
    project.call("extract", session_id="s1", transcript_path=str(talk.path))
    until(lambda: model.requests, "the model is asked")
    threading.Timer(1.0, model.gate.set).start()
    assert own.stop() == 0
    assert "area_7x.md" in project.tree()
    model.close()


def test_a_cancelled_extraction_leaves_nothing(project: Project, model: Recorder) -> None:
    """A cancelled run has written nothing, and its range can be considered by the next."""
    model.script, model.gate = saves, threading.Event()
    talk = wish(project.conversation("s1"), "8x")
    given = {"session_id": "s1", "transcript_path": str(talk.path)}
    job = project.call("extract", **given)["job"]
    until(lambda: model.requests, "the model is asked")
    assert project.home.call("job.cancel", job=job)["cancelled"]
    model.gate.set()
    assert project.home.call("job.wait", job=job)["state"] in ("killed", "cancelled")
    assert project.tree() == {}
    assert heard(project, talk.path)["saved"] == ["area_8x.md"]


def test_a_removal_that_is_taken_back_counts_no_more(project: Project, model: Recorder) -> None:
    """A run removes three memories; for one that it writes again it may remove another."""
    names = [f"note-{number}.md" for number in range(5)]
    for name in names:
        project.put(name, memory(name[:-3], f"The desk of {name[:-3]} is blue."), days_old=1)
    said = "Please forget all my notes about the desks, none of them is true any more."
    gone = f'removed: "{said}"'
    again = memory("note-0", "The desk of note-0 is blue.")
    writes = [(names[0], gone), (names[1], gone), (names[2], gone), (names[3], gone)]
    writes += [(names[0], again), (names[4], gone)]
    model.play(
        [tool("Read", file_path=name) for name in names],
        [tool("Write", file_path=name, content=content) for name, content in writes],
    )
    extract(project, said)
    assert {names[0], names[3]} == {path for path in project.tree() if path.startswith("note")}

"""What a call may ask for beside its answer: its end, its progress, events, and to count once."""

import itertools
import json
import signal
import threading

import pytest

from tests.net.kit import Home, Project, differs, until
from tests.net.recorder import Recorder, text
from tests.net.wire import Client, Json, RpcError

CANCELS = {
    "LSP": ("$/cancelRequest", "id"),
    "MCP": ("notifications/cancelled", "requestId"),
}
TOKENS: dict[str, dict[str, Json]] = {
    "LSP": {"workDoneToken": "t"},
    "MCP": {"_meta": {"progressToken": 9}},
}
MESSAGES = [
    {"role": "user", "content": "Remember: always write dates as ISO 8601."},
    {"role": "assistant", "content": "Understood."},
]


def _agent(project: Project, client: Client, name: str = "net") -> str:
    return str(client.call("agent.register", cwd=project.cwd, name=name)["key"])


@pytest.mark.parametrize("dialect", CANCELS)
def test_a_request_is_cancelled(project: Project, dialect: str) -> None:
    """Both dialects end a request with -32800; the connection goes on."""
    client = project.home.connect()
    method, member = CANCELS[dialect]
    client.notify(method, **{member: "unknown"})
    waits = client.ask("message.receive", key=_agent(project, client), wait=50)
    client.notify(method, **{member: waits})
    with pytest.raises(RpcError) as error:
        client.answer(waits)
    assert (error.value.code, error.value.kind) == (-32800, "cancelled")
    assert client.call("hello")["name"] == "memd"
    client.notify(method, **{member: waits})
    assert client.call("hello")["name"] == "memd"


def test_an_item_of_a_batch_is_cancelled_for_itself(project: Project) -> None:
    """The other items of its batch get their results."""
    client = project.home.connect()
    key = _agent(project, client)
    wait = {"method": "message.receive", "params": {"key": key, "wait": 50}}
    hello = {"method": "hello", "params": {}}
    batch = [{"jsonrpc": "2.0", "id": n, **each} for n, each in (("a", wait), ("b", hello))]
    client.send(batch)
    client.notify("$/cancelRequest", id="a")
    found = {answer["id"]: answer for answer in client.read()}
    assert found["a"]["error"]["code"] == -32800
    assert "result" in found["b"]


def test_a_dropped_connection_ends_no_accepted_job(project: Project, model: Recorder) -> None:
    """The caller that waits for its job goes, and the job still ends well."""
    model.gate = threading.Event()
    with project.home.connect() as client:
        given = {"session_id": "dropped", "messages": MESSAGES, "wait": True}
        client.ask("extract", cwd=project.cwd, **given)
        until(lambda: model.requests)
    model.gate.set()

    def ended() -> bool:
        return [job["state"] for job in project.call("job.list")["jobs"]] == ["completed"]

    until(ended)


def test_a_cancelled_wait_leaves_its_job(project: Project, model: Recorder) -> None:
    """Cancelling the request that waits for a job does not cancel the job."""
    model.gate = threading.Event()
    client = project.home.connect()
    given = {"session_id": "left", "messages": MESSAGES, "wait": True}
    waits = client.ask("extract", cwd=project.cwd, **given)
    until(lambda: model.requests)
    client.notify("$/cancelRequest", id=waits)
    with pytest.raises(RpcError):
        client.answer(waits)
    model.gate.set()
    until(lambda: project.call("job.list")["jobs"][0]["state"] == "completed")


def test_a_cancelled_prefetch_marks_nothing(project: Project, model: Recorder) -> None:
    """What a cancelled prefetch would have given is given by the next one of the session."""
    project.write("port.md", "The broker listens on port 9911.", description="broker port")
    model.script = lambda _: [text('{"selected_memories": ["port.md"]}')]
    given = {"cwd": project.cwd, "query": "which port has the broker", "strategy": "model"}

    sessions = itertools.count()  # each with the memory yet to be given

    def asked() -> bool:  # a daemon that has just started answers without the model
        session = f"first-{next(sessions)}"
        project.home.call("prefetch", session_id=session, deadline_ms=10_000, **given)
        return bool(model.requests)

    until(asked)
    model.gate = threading.Event()
    client = project.home.connect()
    before = len(model.requests)
    waits = client.ask("prefetch", session_id="s", deadline_ms=10_000, **given)
    until(lambda: len(model.requests) > before)
    client.notify("$/cancelRequest", id=waits)
    with pytest.raises(RpcError):
        client.answer(waits)
    model.gate.set()
    found = client.call("prefetch", session_id="s", deadline_ms=10_000, **given)
    assert [memory["name"] for memory in found["memories"]] == ["port"]


@pytest.mark.parametrize("dialect", ["LSP", "MCP"])
def test_progress_comes_before_the_answer(project: Project, dialect: str) -> None:
    """Progress of a request comes on its token, in the dialect of the token."""
    project.write("port.md", "The broker listens on port 9911.")
    client = project.home.connect()
    dest = str(project.home.path / f"out-{dialect}")
    client.call("export", cwd=project.cwd, dest=dest, all=True, **TOKENS[dialect])
    assert client.events
    for event in client.events:
        if dialect == "LSP":
            assert event["method"] == "$/progress"
            assert event["params"].get("token") == TOKENS["LSP"]["workDoneToken"]
            assert "value" in event["params"]
        else:
            assert event["method"] == "notifications/progress"
            assert event["params"]["progressToken"] == 9


def test_events_come_until_the_connection_ends(project: Project) -> None:
    """A subscriber hears of a write, of a job's end and of what the job saved."""
    client = project.home.connect()
    assert "memory.changed" in client.call("subscribe", cwd=project.cwd)["topics"]
    written = project.write("port.md", "The broker listens on port 9911.")
    changed = client.event("memory.changed")
    assert changed["change"] == written["change"]
    assert [file["path"] for file in changed["files"]] == ["port.md"]
    done = project.call("extract", session_id="events", messages=MESSAGES)
    assert client.event("memory.saved")["job"] == done["job"]
    assert client.event("job.done")["state"] == "completed"
    assert client.event("job.progress")["kind"] == "extract"


def test_only_topics_and_projects_that_were_asked_for_come(project: Project) -> None:
    """Another project's events do not come, nor those of another topic."""
    other = project.home.project()
    client = project.home.connect()
    client.call("subscribe", topics=["memory.changed"], cwd=other.cwd)
    project.write("one.md", "The first.")
    done = other.call("extract", session_id="other", messages=MESSAGES)
    project.home.call("job.wait", job=done["job"])
    other.write("two.md", "The second.")
    client.event("memory.changed", lambda params: params["files"][0]["path"] == "two.md")
    assert {event["method"] for event in client.events} == {"memory.changed"}
    assert {event["params"]["directory"] for event in client.events} == {str(other.memory)}


def test_an_unknown_topic_is_named(home: Home) -> None:
    """A topic that memd does not have is a wrong parameter."""
    with pytest.raises(RpcError, match="nope") as error:
        home.call("subscribe", topics=["nope"])
    assert error.value.code == -32602


def test_no_event_carries_a_text(project: Project) -> None:
    """Events name memories and messages and hold neither bodies nor descriptions."""
    client = project.home.connect()
    client.call("subscribe")
    lead, worker = _agent(project, client, "lead"), _agent(project, client, "worker")
    client.call("message.send", to="worker", body="sesame-1 opens it", key=lead)
    client.event("message.pending")
    ids = [m["id"] for m in client.call("message.receive", key=worker)["messages"]]
    client.call("message.ack", ids=ids, key=worker)
    project.write("word.md", "sesame-2 opens it", description="sesame-3 for the gate")
    client.event("memory.changed")
    saved = [{**MESSAGES[0], "content": "Remember: always say sesame-4 first."}, MESSAGES[1]]
    project.call("extract", session_id="texts", messages=saved, wait=True)
    client.event("job.done")
    assert "sesame-1" not in json.dumps(client.events)
    assert "sesame-2" not in json.dumps(client.events)


# What a call with a request id does, and how often it may be seen in the history.
ONCE: dict[str, dict[str, Json]] = {
    "memory.write": {"path": "new.md", "name": "n", "description": "d", "type": "project",
                     "body": "The new one."},
    "memory.delete": {"path": "old.md"},
    "memory.tool": {"command": {"command": "create", "path": "/memories/t.md",
                                "file_text": "---\nname: t\ndescription: t\n---\n\nText.\n"}},
    "memory.undo": {},
}  # fmt: skip


@pytest.mark.parametrize("method", ONCE)
def test_a_request_id_has_one_effect(project: Project, method: str) -> None:
    """The second call with an id returns the first answer, and nothing is changed."""
    written = project.write("old.md", "The old one.")
    given = {**ONCE[method], "request_id": f"{project.cwd}-{method}"}
    if method == "memory.undo":
        given["change"] = written["change"]
    first = project.call(method, **given)
    history = project.call("memory.history")["changes"]
    assert len(history) == 2
    assert project.call(method, **given) == first
    assert project.call("memory.history")["changes"] == history


@differs("6.3", "an id counts together with the parameters of its call")
def test_a_request_id_counts_whatever_comes_with_it(project: Project) -> None:
    """The same id with another text returns the first answer and writes nothing."""
    first = project.write("port.md", "Port 9911.", request_id=project.cwd)
    assert project.write("port.md", "Port 9912.", request_id=project.cwd) == first
    assert "9911" in project.read("port.md")


def test_a_request_id_outlives_a_kill(own: Home) -> None:
    """After a kill and a start the same id still has its one effect."""
    project = own.start().project()
    first = project.write("port.md", "Port 9911.", request_id="r1")
    own.stop(signal.SIGKILL)
    own.start()
    assert project.write("port.md", "Port 9911.", request_id="r1") == first
    assert len(project.call("memory.history")["changes"]) == 1

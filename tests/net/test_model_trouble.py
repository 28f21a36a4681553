"""A model that fails, loops or hangs: few requests, no memory lost, prompts go on, caps hold."""

import json
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from tests.net.extract_talk import extract, messages
from tests.net.kit import Home, Project, until
from tests.net.recorder import Blocks, Recorder, text, tool

WISH = "Remember: the broker of the shop listens on port 9911."
TROUBLE: dict[str, Blocks | int] = {
    "bad request": 400,
    "overloaded": 529,
    "no such tool": [tool("Launch", what="x")],
    "loop": [tool("Read", file_path="MEMORY.md")],
    "everything": [tool("Bash", command="rm -rf /"), tool("Write", file_path="/x", content="x")],
}
pytestmark = pytest.mark.full


@pytest.fixture
def model() -> Iterator[Recorder]:
    """Return a model of the test's own."""
    recorder = Recorder()
    yield recorder
    if recorder.gate is not None:
        recorder.gate.set()
    recorder.close()


@pytest.fixture
def project(own: Home, model: Recorder) -> Project:
    """Return a project of a daemon whose clock the test moves."""
    own.configure(model.settings() + "[dream]\nauto = false\n")
    project = own.start(clock=True).project()
    ready(project, model)
    return project


def ready(project: Project, model: Recorder) -> None:
    """Wait until the model of a daemon that has just started is asked."""
    sessions = map(str, count())

    def asked() -> bool:
        extract(project, "Good morning.", session=f"ready-{next(sessions)}")
        return bool(model.requests)

    until(asked, "the model is asked")
    model.requests.clear()


def job_of(project: Project, said: str, session: str) -> dict[str, Any]:
    """Extract and let time go on until the job has ended; return it."""
    given = {"session_id": session, "messages": messages(said)}
    job = project.call("extract", **given)["job"]

    def ended() -> Any:
        (found,) = [j for j in project.home.call("job.list")["jobs"] if j["job"] == job]
        if found["ended"] is None:
            project.home.pass_time(seconds=10)
        return found if found["ended"] is not None else None

    found: dict[str, Any] = until(ended, "the job has ended")
    return found


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_costs_few_requests_and_no_memory(
    project: Project, model: Recorder, trouble: str
) -> None:
    """A model in trouble is asked a bounded number of times; meanwhile memd works without it."""
    model.script = lambda _: TROUBLE[trouble]
    job_of(project, WISH, "s1")
    asked = len(model.requests)
    assert 0 < asked <= 45
    assert "memories" in project.call("prefetch", session_id="p", query="which port, please")
    said = "Remember: the queue of the shop is called zebra-cron."
    found = job_of(project, said, "s2")
    words = "\n".join(project.tree().values())
    assert "zebra-cron" in words or found["state"] == "failed"
    model.script = lambda _: [text("Nothing to do.")]
    project.home.pass_time(hours=12)
    asked = len(model.requests)
    answer = extract(project, "And this is new: good morning.", session="s3")
    assert len(model.requests) > asked
    assert answer["engine"] != "local"
    assert project.home.call("status")["breakers"] == []


def test_an_open_breaker_is_told(project: Project, model: Recorder) -> None:
    """Status names a model that is left alone, until when, and memories are saved without it."""
    model.script = lambda _: 529
    job_of(project, WISH, "s1")
    (breaker,) = project.home.call("status")["breakers"]
    assert breaker["until"] > breaker["since"]
    asked = len(model.requests)
    answer = extract(project, "Remember: the queue of the shop is called zebra-cron.", session="s2")
    assert (answer["engine"], len(answer["saved"])) == ("local", 1)
    assert answer["problem"]
    assert len(model.requests) == asked


def test_the_cap_holds_whatever_a_model_does(own: Home, model: Recorder) -> None:
    """No request goes out once the day's dollars are reached, by a model that loops anywhere."""
    own.configure(model.settings())
    ready(own.start(clock=True).project(), model)
    model.usage = {"input_tokens": 100_000, "output_tokens": 10_000}
    model.script = lambda _: [tool("Read", file_path="MEMORY.md")]
    own.configure(model.settings().replace("500.0", "2.0") + "[dream]\nauto = false\n")
    ended = [job_of(own.project(), WISH, f"s{number}") for number in range(8)]
    assert "local" in json.dumps(ended[-1]["result"])
    used, asked = own.call("status")["spend"]["used"]["dollars"], len(model.requests)
    assert used - used / asked < 2.0  # each request costs the same, and the last one began below
    job_of(own.project(), WISH, "last")
    assert len(model.requests) == asked


def hung(model: Recorder, ask: Callable[[], Any]) -> Any:
    """Call a method whose model hangs; return the result once the model is asked."""
    model.gate = threading.Event()
    asked = len(model.requests)
    found = ask()
    until(lambda: len(model.requests) > asked, "the model is asked")
    return found


def test_a_prompt_does_not_wait_for_a_hung_model(project: Project, model: Recorder) -> None:
    """While an extraction and a dream hang, prompts and writes are served."""
    project.write("port.md", "The broker listens on port 9911.")
    given = {"session_id": "s1", "messages": messages(WISH)}
    job = hung(model, lambda: project.call("extract", **given)["job"])
    for number in range(5):
        query = {"session_id": f"p{number}", "query": "which port has the broker"}
        found = project.call("prefetch", **query, strategy="local")
        assert [memory["name"] for memory in found["memories"]] == ["port"]
    project.write("host.md", "The staging host is stage-9.")
    assert project.home.call("job.list")["jobs"][0]["ended"] is None
    assert project.home.call("job.cancel", job=job)["cancelled"]
    assert model.gate
    model.gate.set()


def test_a_dream_ends_after_twenty_minutes(project: Project, model: Recorder) -> None:
    """A dream whose model hangs ends by itself, and the lock is as before."""
    project.write("port.md", "The broker listens on port 9911.")
    job = hung(model, lambda: project.call("dream", force=True)["job"])

    def ended() -> bool:
        project.home.pass_time(seconds=60)
        (found,) = [j for j in project.home.call("job.list")["jobs"] if j["job"] == job]
        return found["ended"] is not None or found["state"] == "queued"

    until(ended, "the dream has ended")
    until(lambda: not (project.memory / ".consolidate-lock").exists(), "no lock remains")
    assert model.gate
    project.home.call("job.cancel", job=job)
    model.gate.set()

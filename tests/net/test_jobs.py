"""Accepted work: durable, in order, within bounds, and its failures."""

import json
import signal
import threading
from typing import Any

import pytest

from tests.net.kit import Conversation, Home, Project, until
from tests.net.recorder import Recorder, text, tool
from tests.net.wire import RpcError


def _said(project: Project, number: int, words: str = "") -> Conversation:
    told = project.conversation(f"session-{number}")
    told.user(words or f"The broker number {number} was moved to port 99{number:02}, as asked.")
    return told.assistant("Noted.")


def _extract(told: Conversation, **members: Any) -> Any:
    given = {"session_id": told.session, "transcript_path": str(told.path), **members}
    return told.project.call("extract", **given)


def _jobs(project: Project) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = project.call("job.list")["jobs"]
    return jobs


def _quiet(project: Project) -> list[dict[str, Any]]:
    """Wait until no job waits or runs; return all, the oldest first."""
    live = ("queued", "running")
    until(lambda: all(job["state"] not in live for job in _jobs(project)), "all jobs have ended")
    return _jobs(project)[::-1]


def _asked_of(model: Recorder) -> list[str]:
    """Return which brokers each request to the model speaks of."""
    return [
        "".join(sorted({n for n in "123456789" if f"broker number {n}" in raw.decode()}))
        for raw in model.raw
    ]


def test_waiting_requests_are_joined_by_session(project: Project, model: Recorder) -> None:
    """A session's newest request replaces its waiting one, and each session runs once, in order."""
    model.gate = threading.Event()
    one, two, three = (_said(project, number) for number in (1, 2, 3))
    first = _extract(one)
    until(lambda: model.requests)
    second, third = _extract(two), _extract(three)
    again = _extract(two.user("The broker number 4 follows.").assistant("Fine."))
    assert [each["status"] for each in (first, second, third, again)] == [
        "accepted", "accepted", "accepted", "coalesced",
    ]  # fmt: skip
    states = {job["session"]: job["state"] for job in _jobs(project)}
    assert states == {one.session: "running", two.session: "queued", three.session: "queued"}
    model.gate.set()
    ended = _quiet(project)
    assert [(job["session"], job["state"]) for job in ended] == [
        (told.session, "completed") for told in (one, two, three)
    ]
    assert _asked_of(model) == ["1", "24", "3"]


def test_jobs_of_one_directory_do_not_overlap(project: Project, model: Recorder) -> None:
    """While one session's conversation is read, another's request and a dream wait."""
    model.gate = threading.Event()
    _extract(_said(project, 1))
    until(lambda: model.requests)
    _extract(_said(project, 2))
    project.call("dream", force=True)
    assert sorted(job["state"] for job in _jobs(project)) == ["queued", "queued", "running"]
    assert len(model.requests) == 1
    model.gate.set()
    _quiet(project)


def test_two_directories_run_side_by_side_and_no_third(home: Home, model: Recorder) -> None:
    """At most two conversations with a model are read at once in all."""
    model.gate = threading.Event()
    projects = [home.project() for _ in range(3)]
    for number, project in enumerate(projects):
        _extract(_said(project, number + 1))
    until(lambda: len(model.requests) == 2)
    assert len(home.call("status")["running"]) >= 2
    assert len(model.requests) == 2
    model.gate.set()
    for project in projects:
        _quiet(project)
    assert sorted(_asked_of(model)) == ["1", "2", "3"]


def test_a_cancelled_job_changes_nothing(project: Project, model: Recorder) -> None:
    """A job that is cancelled while its model writes leaves no file, and the next one runs."""
    model.gate = threading.Event()
    job = _extract(_said(project, 1))["job"]
    until(lambda: model.requests)
    assert project.home.call("job.cancel", job=job)["cancelled"] is True
    model.gate.set()
    assert [each["state"] for each in _quiet(project)] != ["completed"]
    assert [path for path in project.tree() if path != "MEMORY.md"] == []
    _extract(_said(project, 2))
    assert _quiet(project)[-1]["state"] == "completed"


def test_a_waiting_caller_gets_the_jobs_end(project: Project) -> None:
    """job.wait answers the ended job, and at once for one that has ended."""
    job = _extract(_said(project, 1, "Remember: always write dates as ISO 8601."))["job"]
    ended = project.home.call("job.wait", job=job)
    assert (ended["job"], ended["state"], ended["kind"]) == (job, "completed", "extract")
    assert ended["result"]["saved"]
    assert project.home.call("job.wait", job=job) == ended


def test_a_reached_bound_keeps_what_was_written(project: Project, model: Recorder) -> None:
    """A model that never ends is stopped once; what it wrote stays, and nothing is repeated."""
    head = "---\nname: seen\ndescription: the broker\ntype: project\n---\n\nThe broker moved.\n"
    write = tool("Write", file_path=str(project.memory / "seen.md"), content=head)
    look = tool("Read", file_path=str(project.memory / "MEMORY.md"))
    model.script = lambda request: [look] if "tool_result" in str(request["messages"]) else [write]
    _extract(_said(project, 1))
    assert _tried(project) == ("completed", 1)
    assert "seen.md" in project.tree()


def test_a_reached_bound_is_an_end(project: Project, model: Recorder) -> None:
    """A model that never ends and writes nothing is stopped once, and the job has ended."""
    model.script = lambda _: [tool("Read", file_path=str(project.memory / "MEMORY.md"))]
    _extract(_said(project, 1))
    assert _tried(project) == ("completed", 1)


def _tried(project: Project) -> tuple[str, int]:
    """Return state and attempts of the only job when its first attempt is over."""

    def tried() -> Any:
        (job,) = _jobs(project)
        is_repeated = job["state"] == "queued" and job["attempts"]
        return job if is_repeated or job["state"] not in ("queued", "running") else None

    job = until(tried)
    return job["state"], job["attempts"]


@pytest.mark.full
def test_failures_in_a_row_pause_a_model(own: Home) -> None:
    """After three tries a job failed, and its model is not asked until resume, or for a while."""
    model = Recorder()
    own.configure(model.settings())
    project = own.start().project()
    model.script = lambda _: 500
    first = _said(project, 1)
    assert _extract(first, wait=True)["status"] == "failed"
    (job,) = own.call("job.list", cwd=project.cwd, parked=True)["jobs"]
    assert (job["state"], job["attempts"]) == ("failed", 3)
    (breaker,) = own.call("status")["breakers"]
    assert breaker["until"] > breaker["since"]
    asked = len(model.requests)
    _extract(_said(project, 2, "The build is slow again today."), wait=True)
    assert len(model.requests) == asked
    assert project.call("load_prompt")["enabled"]
    assert own.call("resume")["breakers"] == []
    model.script = lambda _: [text("nothing new")]
    _extract(first.user("And the broker number 3 as well.").assistant("Fine."), wait=True)
    model.close()
    assert _asked_of(model)[-1] == "13"


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_accepted_job_outlives_its_daemon(own: Home, number: int) -> None:
    """Jobs that wait or run when the daemon dies or ends run at the next start, each once."""
    model = Recorder()
    own.configure(model.settings())
    project = own.start().project()
    model.gate = threading.Event()
    jobs = [_extract(_said(project, 1))["job"], _extract(_said(project, 2))["job"]]
    until(lambda: model.requests)
    head = "---\nname: seen\ndescription: seen\ntype: project\n---\n\nSeen.\n"
    path = str(project.memory / "seen.md")
    model.script = lambda request: (
        [text("done")]
        if "tool_result" in json.dumps(request["messages"])
        else [tool("Write", file_path=path, content=head)]
    )
    if number == signal.SIGKILL:
        own.stop(number)
    else:
        own.call("shutdown")
    model.gate.set()
    if number != signal.SIGKILL:
        own.stop(number)
    own.start()
    ended = _quiet(project)
    model.close()
    assert [(job["job"], job["state"]) for job in ended] == [(job, "completed") for job in jobs]
    saves = [c for c in project.call("memory.history")["changes"] if c["actor"] == "extract"]
    assert len(saves) <= 2
    assert "seen.md" in project.tree()


@pytest.mark.full
def test_a_job_that_is_killed_again_and_again_is_done_once(own: Home) -> None:
    """Killed at any moment between acceptance and end, a rule is learnt once."""
    project = own.start().project()
    things = ("tabs", "invoices", "maps", "logos", "recipes", "tickets", "poems", "contracts")
    for number, thing in enumerate(things):
        words = f"Remember: always put {thing} into the folder for {thing[::-1]} first."
        accepted = _extract(_said(project, number, words))
        if number % 2:
            own.call("job.wait", job=accepted["job"])
        own.stop(signal.SIGKILL)
        own.start()
    _quiet(project)
    learnt = [text for path, text in project.tree().items() if path != "MEMORY.md"]
    changes = project.call("memory.history")["changes"]
    created = [f["path"] for c in changes for f in c["files"] if f["action"] == "created"]
    assert len(created) == len(set(created))
    assert [sum(thing[::-1] in text for text in learnt) for thing in things] == [1] * len(things)


def test_a_pause_lets_jobs_wait(project: Project) -> None:
    """In a pause jobs are accepted and wait, prompts are answered, and resume lets the jobs run."""
    call = project.home.call
    try:
        assert call("pause")["paused_since"]
        assert _extract(_said(project, 1))["status"] == "accepted"
        assert project.call("load_prompt")["enabled"]
        assert [job["state"] for job in _jobs(project)] == ["queued"]
    finally:
        assert call("resume")["paused_since"] is None
    assert [job["state"] for job in _quiet(project)] == ["completed"]


@pytest.mark.full
def test_a_paused_daemon_accepts_and_waits(own: Home) -> None:
    """In a pause jobs wait, over a restart as well; resume lets them run."""
    model = Recorder()
    own.configure(model.settings())
    project = own.start().project()
    assert own.call("pause")["paused_since"]
    assert _extract(_said(project, 1))["status"] == "accepted"
    own.stop(signal.SIGKILL)
    own.start()
    status = own.call("status")
    assert status["paused_since"]
    assert project.call("load_prompt")["enabled"]
    query = {"session_id": "s", "query": "which port has the broker", "strategy": "model"}
    assert project.call("prefetch", **query)["memories"] == []
    assert [job["state"] for job in _jobs(project)] == ["queued"]
    assert model.requests == []
    assert own.call("resume")["paused_since"] is None
    assert [job["state"] for job in _quiet(project)] == ["completed"]
    assert len(model.requests) == 1
    model.close()


def test_an_unknown_job_is_not_found(home: Home) -> None:
    """Waiting for a job that is unknown is an error, not a wait."""
    with pytest.raises(RpcError) as error:
        home.call("job.wait", job="j999999")
    assert error.value.code == 1001

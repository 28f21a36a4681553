"""What models may cost: the day's caps, and what is booked."""

import threading
from contextlib import suppress
from typing import Any

import pytest

from tests.net.kit import Home, Project, until
from tests.net.recorder import Recorder


def _learn(project: Project, number: int) -> Any:
    told = project.conversation(f"spend-{number}")
    told.user(f"The broker number {number} was moved to port 99{number:02}.").assistant("Noted.")
    given = {"session_id": told.session, "transcript_path": str(told.path), "wait": True}
    return project.call("extract", **given)


def _settings(model: Recorder, caps: str) -> str:
    return model.settings().replace("dollars_per_day = 500.0", caps)


def _is_served(home: Home) -> bool:
    """Say whether a call is answered: a jump of the clock may end a connection."""
    with suppress(ConnectionError):
        return bool(home.call("hello"))
    return False


@pytest.mark.full
def test_at_the_cap_of_dollars_no_model_is_asked(own: Home) -> None:
    """What a day costs ends at the cap; prompts go on locally, and the next day goes on."""
    model = Recorder()
    own.configure(_settings(model, "dollars_per_day = 0.5"))
    project = own.start(clock=True).project()
    project.write("port.md", "The broker listens on port 9911.", description="broker port")
    model.usage = {"input_tokens": 300_000}
    for number in range(5):
        _learn(project, number)
    asked = len(model.requests)
    assert 1 <= asked <= 2
    assert own.call("status")["spend"]["used"]["dollars"] <= 2
    query = {"session_id": "s", "query": "which port has the broker", "deadline_ms": 10_000}
    assert [m["name"] for m in project.call("prefetch", **query)["memories"]] == ["port"]
    assert len(model.requests) == asked
    own.pass_time(days=1)
    until(lambda: _is_served(own))
    _learn(project, 7)
    assert len(model.requests) > asked
    own.pass_time(days=-2)
    until(lambda: _is_served(own))
    booked = len(model.requests)
    for number in range(10, 15):
        _learn(project, number)
    model.close()
    assert len(model.requests) - booked <= 2


def test_a_cap_of_nothing_asks_nobody(project: Project, model: Recorder) -> None:
    """With a cap of zero no request goes out, and the local engine learns."""
    project.home.configure(_settings(model, "dollars_per_day = 0.0"))
    done = _learn(project, 1)
    assert (done["status"], done["engine"]) == ("completed", "local")
    assert done["problem"]
    project.call("dream", force=True, wait=True)
    assert model.requests == []


def test_one_cap_of_requests_holds_for_all_kinds(project: Project, model: Recorder) -> None:
    """The second request of a day is refused at a cap of one, whatever its kind."""
    project.home.configure(_settings(model, "dollars_per_day = 9.0\nrequests_per_day = 1"))
    used = project.home.call("status")["spend"]["used"]["requests"]
    project.home.configure(
        _settings(model, f"dollars_per_day = 9.0\nrequests_per_day = {used + 1}")
    )
    _learn(project, 1)
    _learn(project, 2)
    assert len(model.requests) == 1


def test_usage_that_a_server_reports_is_booked(project: Project, model: Recorder) -> None:
    """Status counts the requests and tokens of the day as the server said."""
    before = project.home.call("status")["spend"]["used"]
    model.usage = {"input_tokens": 1234, "output_tokens": 56, "cache_read_input_tokens": 78}
    _learn(project, 1)
    used = project.home.call("status")["spend"]["used"]
    assert used["requests"] - before["requests"] == 1
    assert used["input"] - before["input"] == 1234
    assert used["output"] - before["output"] == 56
    assert used["cache_read"] - before["cache_read"] == 78
    assert used["dollars"] > before["dollars"]


def test_a_cancelled_request_is_booked(project: Project, model: Recorder) -> None:
    """Who cancels a job while its model answers has still spent what was sent."""
    before = project.home.call("status")["spend"]["used"]
    model.gate = threading.Event()
    client = project.home.connect()
    told = project.conversation("cancelled").user("The broker moved to 9911.").assistant("Ok.")
    given = {"session_id": told.session, "transcript_path": str(told.path)}
    job = client.call("extract", cwd=project.cwd, **given)["job"]
    until(lambda: model.requests)
    client.call("job.cancel", job=job)
    client.call("job.wait", job=job)
    model.gate.set()

    def booked() -> bool:
        used = client.call("status")["spend"]["used"]
        return bool(used["dollars"] > before["dollars"])

    until(booked)


def test_a_model_without_a_price_is_dear(project: Project, model: Recorder) -> None:
    """A model that the price table does not know costs as much as the dearest."""
    dollars = []
    for name in ("claude-sonnet-5-5", "nobody-knows-1"):
        project.home.configure(model.settings(f'name = "{name}"'))
        before = project.home.call("status")["spend"]["used"]["dollars"]
        model.usage = {"input_tokens": 10_000, "output_tokens": 100}
        _learn(project, len(name))
        dollars.append(project.home.call("status")["spend"]["used"]["dollars"] - before)
    assert round(dollars[1] - dollars[0], 6) >= 0
    assert dollars[0] > 0

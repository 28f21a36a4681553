"""extract, dream and job.* over the socket."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.client.errors import RemoteError
from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from memd.state.jobs import JobState, JobTable
from memd.testing.messages import Hang, messages_server, text, tools
from tests.api import transcripts
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio

WORDS = "From now on, always run the integration tests against a real database."


def transcript(caller: Caller, *texts: str) -> str:
    """Write a transcript of user messages and return its path."""
    path = Path(caller.home.path) / ".claude" / "projects" / "x" / "s.jsonl"
    lines = [transcripts.user(text, number) for number, text in enumerate(texts)]
    return transcripts.write(path, *lines)


async def test_an_extraction_can_be_waited_for(caller: Caller) -> None:
    """With wait the answer has what was saved, by which engine and as which change."""
    path = transcript(caller, WORDS)
    done = await caller.call("extract", session_id="s", transcript_path=path, wait=True)
    assert (done["status"], done["engine"], len(done["saved"])) == ("completed", "local", 1)
    history = (await caller.call("memory.history"))["changes"]
    assert (history[0]["id"], history[0]["actor"]) == (done["change"], "extract")
    assert history[0]["session"] == "s"
    again = await caller.call("extract", session_id="s", transcript_path=path, wait=True)
    assert not again["saved"]


async def test_an_extraction_is_accepted_at_once(caller: Caller) -> None:
    """Without wait the job's id comes back, and subscribers hear when it has saved."""
    path = transcript(caller, WORDS)
    async with AsyncClient(caller.home.places.socket, name="watcher") as watcher:
        await watcher.call("subscribe", {"topics": ["memory.saved", "job.done"]})
        accepted = await caller.call("extract", session_id="s", transcript_path=path)
        assert accepted["status"] == "accepted"
        heard: dict[str, Any] = {}
        with anyio.fail_after(60):
            while len(heard) < 2:
                notification = await anext(aiter(watcher.notifications))
                heard[notification.method] = notification.params
    assert len(heard["memory.saved"]["saved"]) == 1
    assert heard["job.done"]["job"] == accepted["job"]
    job = await caller.plain("job.wait", job=accepted["job"])
    assert (job["kind"], job["state"], job["session"]) == ("extract", "completed", "s")
    assert await caller.plain("job.get", job=accepted["job"]) == job
    jobs = (await caller.call("job.list"))["jobs"]
    assert [listed["job"] for listed in jobs] == [accepted["job"]]
    assert (await caller.plain("job.list", limit=5))["jobs"] == jobs
    assert await caller.plain("job.cancel", job=accepted["job"]) == {"cancelled": False}


async def test_an_extraction_needs_one_source(caller: Caller) -> None:
    """Neither or both of transcript and messages is a clear error."""
    assert (await caller.refused("extract", session_id="s")).code == -32602
    both = await caller.refused("extract", session_id="s", messages=[], transcript_path="/x.jsonl")
    assert both.code == -32602


async def test_a_path_that_is_no_transcript_is_not_accepted(caller: Caller) -> None:
    """What cannot be read is refused at once, before a job is made of it."""
    for path in ("/etc/passwd", "notes.jsonl", f"{caller.home.path}/missing.jsonl"):
        error = await caller.refused("extract", session_id="s", transcript_path=path)
        assert error.code == 1006
    assert (await caller.call("job.list"))["jobs"] == []


async def test_a_remote_client_is_not_read_unless_allowed(caller: Caller) -> None:
    """Where nobody sits in front of the client, extraction is skipped by name."""
    await caller.plain(
        "hello",
        environment={"CLAUDE_CODE_REMOTE": "1", "CLAUDE_CODE_REMOTE_MEMORY_DIR": "/tmp/x/remote"},
    )
    done = await caller.call("extract", session_id="s", messages=[])
    assert (done["status"], done["reason"]) == ("skipped", "remote")


async def test_a_parked_job_is_told_and_put_back(caller: Caller) -> None:
    """A job that failed again and again is listed as parked, and only such a one can be retried."""
    done = await caller.call("extract", session_id="s", messages=[], wait=True)
    with pytest.raises(RemoteError) as caught:
        await caller.plain("job.retry", job=done["job"])
    assert (caught.value.code, caught.value.kind) == (1004, "job_not_parked")
    assert (await caller.call("job.list", parked=True))["jobs"] == []
    await caller.plain("pause")
    job = (await caller.call("extract", session_id="s", messages=[]))["job"]
    database = open_database(caller.home.places.database, SCHEMAS)
    failure = {"kind": "later", "message": "no"}
    JobTable(database).finish(job, JobState.FAILED, 1.0, error=failure, parked=True)
    database.close()
    assert (await caller.plain("status"))["jobs"] == {"completed": 1, "failed": 1, "parked": 1}
    listed = (await caller.call("job.list", parked=True))["jobs"]
    assert [(results["job"], results["parked"]) for results in listed] == [(job, True)]
    again = await caller.plain("job.retry", job=job)
    assert (again["state"], again["parked"], again["error"]) == ("queued", False, None)
    await caller.plain("resume")
    assert (await caller.plain("job.wait", job=job))["state"] == "completed"


async def test_the_record_comes_when_it_is_asked_for(caller: Caller) -> None:
    """A job that asked no model has an empty record; without the wish there is none."""
    done = await caller.call("extract", session_id="s", messages=[], wait=True)
    assert (await caller.plain("job.get", job=done["job"], record=True))["record"] == []
    assert (await caller.plain("job.get", job=done["job"]))["record"] is None


async def test_a_running_job_tells_what_its_model_said(caller: Caller) -> None:
    """Who comes late hears the phase, the newest facts and the turns so far; an end has none."""
    path = transcript(caller, WORDS)
    inspect = tools(("Read", {"file_path": "a.md"}), say="I look first.")
    with messages_server([inspect, Hang(text("never"))]) as server:
        config = Path(caller.home.places.config)
        config.parent.mkdir(parents=True)
        config.write_text(f'[model]\nbase_url = "{server.url}"\n')
        config.chmod(0o600)
        job = (await caller.call("extract", session_id="s", transcript_path=path))["job"]
        progress: dict[str, Any] | None = None
        with anyio.fail_after(60):
            while not progress or progress["phase"] != "asking" or not progress["texts"]:
                progress = (await caller.plain("job.get", job=job))["progress"]
        assert progress["texts"] == [{"turn": 1, "tools": ["Read"], "text": "I look first."}]
        assert (progress["turn"], progress["tool_calls"], progress["touched"]) == (2, 1, [])
        assert await caller.plain("job.cancel", job=job) == {"cancelled": True}
    assert (await caller.plain("job.get", job=job))["progress"] is None


async def test_switched_off_extraction_is_skipped(caller: Caller) -> None:
    """A closed gate answers skipped with its name."""
    await caller.plain("hello", environment={"MEMD_DISABLE": "1"})
    done = await caller.call("extract", session_id="s", messages=[])
    assert (done["status"], bool(done["reason"]), done["job"]) == ("skipped", True, None)

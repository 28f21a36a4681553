"""Dreams over a real socket: the gates, the job, and those that begin by themselves."""

from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from memd.state.jobs import JobState, JobTable
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_a_forced_dream_merges_and_reports(caller: Caller) -> None:
    """A dream merges an exact duplicate in one change that undo takes back."""
    await caller.write("a.md")
    await caller.write("b.md", name="b")
    report = await caller.call("dream", force=True, wait=True)
    assert report["status"] == "completed"
    assert len(report["merged"]) == 1
    assert len((await caller.call("memory.list"))["memories"]) == 1
    await caller.call("memory.undo", change=report["change"])
    assert len((await caller.call("memory.list"))["memories"]) == 2


async def test_the_last_dream_is_told_as_data_and_as_a_page(caller: Caller) -> None:
    """The newest dream that ran is told; one that a gate stopped in its job is not."""
    assert await caller.call("dream.last") == {
        "job": None,
        "state": None,
        "at": None,
        "report": None,
        "error": None,
        "markdown": "",
    }
    await caller.write("a.md")
    await caller.write("b.md", name="b")
    done = await caller.call("dream", force=True, wait=True)
    last = await caller.call("dream.last")
    assert (last["job"], last["state"], last["error"]) == (done["job"], "completed", None)
    assert last["at"] == caller.clock.now()
    assert last["report"]["merged"] == done["merged"]
    assert last["markdown"].startswith("# 1 memory merged")
    assert f"`memctl undo {done['change']}`" in last["markdown"]


async def test_a_dream_that_failed_is_told_with_its_reason(caller: Caller) -> None:
    """A failed dream and a cancelled one have no report but say what they ended with."""
    await caller.plain("pause")
    job = (await caller.call("dream", force=True))["job"]
    database = open_database(caller.home.places.database, SCHEMAS)
    table = JobTable(database)
    table.start(job, 5.0)
    table.finish(job, JobState.FAILED, 7.0, error={"kind": "x", "message": "the disk is full"})
    database.close()
    last = await caller.call("dream.last")
    assert (last["state"], last["at"], last["report"]) == ("failed", 7.0, None)
    assert last["error"] == "the disk is full"
    assert "What went wrong: `the disk is full`" in last["markdown"]


async def test_the_status_says_when_the_next_dream_is_due(caller: Caller) -> None:
    """Before the first dream only sessions are missing; after it, time, and until when."""
    fresh = await caller.call("dream.status")
    assert (fresh["enabled"], fresh["auto"], fresh["engine"]) == (True, True, "local")
    assert (fresh["last"], fresh["due"], fresh["gate"]) == (None, None, "sessions")
    assert (fresh["sessions"], fresh["min_sessions"], fresh["waits"]) == (0, 5, "")
    assert [gate["name"] for gate in fresh["gates"]] == ["switches", "time", "sessions", "lock"]
    assert [gate["open"] for gate in fresh["gates"]] == [True, True, False, True]
    assert (fresh["running"], fresh["proposals"]) == (None, 0)
    folder = await caller.folder()
    assert not folder.exists() or not list(folder.glob(".consolidate-lock*"))
    await caller.call("dream", force=True, wait=True)
    now = caller.clock.now()
    after = await caller.call("dream.status")
    assert (after["gate"], after["last"], after["due"]) == ("time", now, now + 24 * 3600)
    caller.clock.advance(24 * 3600.0)
    assert (await caller.call("dream.status"))["due"] is None


async def test_the_status_names_what_is_under_way_and_what_is_off(caller: Caller) -> None:
    """A dream that waits is named, and so is the switch that keeps dreams away, and the model."""
    await caller.plain("pause")
    job = (await caller.call("dream", force=True))["job"]
    assert (await caller.call("dream.status"))["running"] == job
    config = Path(caller.home.places.config)
    config.parent.mkdir(parents=True)
    config.write_text(
        "[dream]\nenabled = false\nauto = false\n"
        '[model]\nbase_url = "http://127.0.0.1:9"\napi_key = "k"\ndream = "claude-test"\n'
    )
    config.chmod(0o600)
    status = await caller.call("dream.status")
    assert (status["enabled"], status["auto"], status["gate"]) == (False, False, "dream_off")
    assert status["engine"] == "claude-test"
    config.write_text(config.read_text().replace("[dream]", "[dream]\nuse_model = false"))
    assert (await caller.call("dream.status"))["engine"] == "local"


async def test_a_dream_that_is_not_due_names_its_gate(caller: Caller) -> None:
    """Right after a dream the time gate is closed, and so it says."""
    await caller.write("a.md")
    started = await caller.call("dream", force=True)
    assert started["status"] == "started"
    await caller.plain("job.wait", job=started["job"])
    skipped = await caller.call("dream")
    assert (skipped["status"], skipped["gate"]) == ("skipped", "time")

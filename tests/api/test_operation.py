"""hello, subscriptions, status, doctor and shutdown over the socket."""

import json
import os
from pathlib import Path

import anyio
import pytest
from msgspec.structs import asdict

from memd.api.doctor import state_check
from memd.client.aio import AsyncClient
from memd.core import limits
from memd.core.values import Actor, Provenance
from memd.daemon.app import SCHEMAS
from memd.jobs.breaker import breaker_after_failure
from memd.jobs.service import Jobs
from memd.rpc.hub import Hub
from memd.state.database import open_database
from memd.state.jobs import JobState, JobTable
from memd.state.pauses import Breaker
from memd.state.proposals import Proposal, ProposalTable
from memd.state.proposed import ProposedEdit
from memd.testing.clock import FakeClock
from memd.testing.daemon import Home, daemon_here
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_hello_tells_and_remembers(caller: Caller) -> None:
    """Any version is served, and the variables of the list count for this connection alone."""
    override = f"{caller.home.path}/elsewhere/memory"
    answer = await caller.plain(
        "hello",
        client="old",
        version="0.0.0",
        environment={"MEMD_MEMORY_PATH": override, "LD_PRELOAD": "x"},
    )
    assert (answer["name"], answer["protocol"]) == ("memd", 1)
    assert "undo" in answer["capabilities"]
    assert (await caller.call("memory.list"))["memory_dir"] == override
    async with AsyncClient(caller.home.places.socket, name="other") as other:
        listed = await other.call("memory.list", {"cwd": caller.cwd})
    assert listed["memory_dir"] != override


async def test_subscribers_hear_of_changes(caller: Caller) -> None:
    """A connection that subscribed to a project hears of its changes until it unsubscribes."""
    async with AsyncClient(caller.home.places.socket, name="watcher") as watcher:
        await watcher.call("subscribe", {"topics": ["memory.changed"], "cwd": caller.cwd})
        written = await caller.write()
        with anyio.fail_after(60):
            notification = await anext(aiter(watcher.notifications))
        assert notification.method == "memory.changed"
        assert notification.params["change"] == written["change"]
        gone = await watcher.call("unsubscribe", {"cwd": caller.cwd})
        assert "job.done" in gone["topics"]


async def test_status_tells_how_the_daemon_is(caller: Caller) -> None:
    """Status has the process, its places, its connections and the projects it changed."""
    await caller.write()
    caller.clock.advance(5)
    status = await caller.plain("status")
    assert (status["pid"], status["uptime"]) == (os.getpid(), 5.0)
    assert status["socket"] == caller.home.places.socket
    assert status["connections"] == 1
    assert status["projects"] == [str(await caller.folder())]
    assert status["rss"] > 0


async def test_doctor_finds_what_is_wrong(caller: Caller) -> None:
    """Each check names its state; a bad option and a damaged file are told with a remedy."""
    await caller.write()
    config = Path(caller.home.places.config)
    config.parent.mkdir(parents=True)
    config.write_text("[recall]\nlimit = 0\n")
    config.chmod(0o600)
    (await caller.folder() / "broken.md").write_text("---\nname: a\n")
    diagnosis = await caller.call("doctor")
    states = {check["name"]: check["state"] for check in diagnosis["checks"]}
    assert diagnosis["ok"]
    assert states == {
        "python": "ok",
        "Claude Code's switches": "ok",
        "state": "ok",
        "socket": "ok",
        "settings": "warning",
        "model": "ok",
        "notes": "ok",
        "stored results": "ok",
        "teams": "ok",
        "recovery": "ok",
        "extraction": "ok",
        "watching": "ok",
        "project": "ok",
        "project settings": "ok",
        "paths": "ok",
        "client memory": "ok",
        "files": "warning",
        "index": "ok",
        "instruction files": "ok",
        "rules": "ok",
    }


async def test_doctor_sees_a_lost_socket_and_a_project_that_is_none(caller: Caller) -> None:
    """A socket that was removed is a failure, and so is a home as a project."""
    Path(caller.home.places.socket).unlink()
    diagnosis = await caller.client.call("doctor", {"cwd": f"{caller.home.path}/none"})
    failed = {check["name"] for check in diagnosis["checks"] if check["state"] == "failed"}
    assert (diagnosis["ok"], failed) == (False, {"socket", "project"})


async def test_shutdown_answers_first(caller: Caller) -> None:
    """A client that ends the daemon gets its answer."""
    assert await caller.plain("shutdown") == {"stopping": True}


async def test_doctor_sees_a_state_file_that_cannot_be_used(tmp_path: Path) -> None:
    """A state file that does not answer is a failed check with its remedy."""
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    database.close()
    jobs = Jobs(JobTable(database), FakeClock(), Hub(), on_unexpected=str)
    check = await state_check(jobs, "state.db")
    assert (check.state, "no restart is needed" in check.remedy) == ("failed", True)


async def test_the_status_counts_what_waits_for_a_person(caller: Caller) -> None:
    """Open proposals of dreams are counted by directory; where there is none, nothing is."""
    await caller.write()
    assert (await caller.plain("status"))["proposals"] == {}
    directory = str(await caller.folder())
    database = open_database(caller.home.places.database, SCHEMAS)
    wanted = Proposal("", directory, 1.0, edits=(ProposedEdit("n.md", b"new"),))
    ProposalTable(database).propose(wanted, Provenance(Actor.DREAM))
    database.close()
    assert (await caller.plain("status"))["proposals"] == {directory: 1}


async def test_the_status_tells_who_was_there_lately(caller: Caller) -> None:
    """Sessions of prompts and of hooks are named with their project, the newest first."""
    assert (await caller.plain("status"))["sessions"] == []
    await caller.plain("hello", client="editor")
    await caller.call("prefetch", session_id="one", query="tests")
    caller.clock.advance(5)
    payload = {"session_id": "two", "cwd": caller.cwd, "prompt": "tests"}
    await caller.plain("hook", client="claude-code", event="UserPromptSubmit", payload=payload)
    seen = [dict(each) for each in (await caller.plain("status"))["sessions"]]
    assert [(each["client"], each["session"]) for each in seen] == [
        ("claude-code", "two"),
        ("editor", "one"),
    ]
    assert seen[0]["at"] == seen[1]["at"] + 5
    assert {each["project"] for each in seen} == {caller.cwd}


async def test_the_status_tells_of_the_last_dream_and_what_is_wrong(caller: Caller) -> None:
    """The newest dream has its counts, and self-checks that are not ok come with their remedy."""
    await caller.write()
    status = await caller.plain("status")
    assert (status["last_dream"], status["health"], status["held"]) == (None, [], 0)
    await caller.call("dream", force=True, wait=True)
    Path(caller.home.places.socket).chmod(0o666)
    status = await caller.plain("status")
    assert status["last_dream"]["directory"] == str(await caller.folder())
    assert (status["last_dream"]["state"], status["last_dream"]["counts"]["removed"]) == (
        "completed",
        0,
    )
    (check,) = status["health"]
    assert (check["name"], check["state"], bool(check["remedy"])) == ("socket", "failed", True)


async def test_the_status_counts_messages_for_the_person(caller: Caller) -> None:
    """A message that somebody has to decide is counted until it is decided."""
    await caller.call("agent.register", name="ben")
    sent = await caller.call("message.send", to="ben", body="hello")
    assert (await caller.plain("status"))["held"] == 1
    await caller.call("message.decide", cwd=None, id=sent["id"], accept=True)
    assert (await caller.plain("status"))["held"] == 0


WORDS = [{"role": "user", "content": "From now on, always write the tests first."}]


async def test_a_pause_keeps_jobs_and_lets_prompts_through(caller: Caller) -> None:
    """In a pause jobs are accepted and wait, prompts are answered; resume lets the jobs run."""
    await caller.write()
    paused = await caller.plain("pause")
    assert (paused["paused_since"], paused["waiting"]) == (caller.clock.now(), 0)
    accepted = await caller.call("extract", session_id="s", messages=WORDS)
    assert accepted["status"] == "accepted"
    results = await caller.call("prefetch", session_id="s", query="integration tests database")
    assert [memory["name"] for memory in results["memories"]] == ["test-policy"]
    status = await caller.plain("status")
    assert (status["paused_since"], status["jobs"]) == (caller.clock.now(), {"queued": 1})
    assert (await caller.plain("pause", now=True))["waiting"] == 1
    assert (await caller.plain("resume"))["paused_since"] is None
    ended = await caller.plain("job.wait", job=accepted["job"])
    assert ended["state"] == "completed"
    assert (await caller.plain("status"))["paused_since"] is None


async def test_an_open_breaker_is_told(home: Home, clock: FakeClock) -> None:
    """The status names each directory that does without a model, why, and until when."""
    row: Breaker | None = None
    for _ in range(limits.BREAKER_AFTER):
        row = breaker_after_failure(row, "/m", "the server is overloaded", clock.now())
    assert row is not None
    os.makedirs(home.places.state_dir, mode=0o700)
    database = open_database(home.places.database, SCHEMAS)
    JobTable(database).pauses.save(row)
    database.close()
    async with daemon_here(home, clock), AsyncClient(home.places.socket, name="t") as client:
        reported = (await client.call("status", {}))["breakers"]
        paused = await client.call("pause", {})
    assert reported == paused["breakers"] == [asdict(row)]
    assert reported[0]["until"] == clock.now() + limits.BREAKER_SECONDS


async def test_the_table_discovers_itself(caller: Caller) -> None:
    """rpc.discover serves an OpenRPC document with every method."""
    document = await caller.plain("rpc.discover")
    names = {method["name"] for method in document["methods"]}
    assert document["openrpc"].startswith("1.")
    assert {"load_prompt", "memory.write", "hook", "job.wait"} <= names


async def test_doctor_names_a_session_whose_extractions_fail(caller: Caller) -> None:
    """Two failures in a row are a warning in doctor and status, until an extraction works."""

    async def extraction() -> dict[str, str]:
        checks = (await caller.plain("doctor"))["checks"]
        return next(check for check in checks if check["name"] == "extraction")

    await caller.plain("pause")
    jobs = []
    for words in ("one", "two"):
        said = [{"role": "user", "content": words}]
        jobs.append((await caller.call("extract", session_id=words, messages=said))["job"])
    database = open_database(caller.home.places.database, SCHEMAS)
    database.write("UPDATE jobs SET session = 's'")
    error = {"kind": "secret", "message": "line 3 looks like a secret"}
    table = JobTable(database)
    table.finish(jobs[0], JobState.FAILED, caller.clock.now(), error=error)
    assert (await extraction())["state"] == "ok"
    table.finish(jobs[1], JobState.FAILED, caller.clock.now(), error=error)
    database.close()
    check = await extraction()
    assert check["state"] == "warning"
    assert "last 2 of session s failed: line 3 looks like a secret" in check["detail"]
    assert jobs[1] in check["remedy"]
    assert [check["name"] for check in (await caller.plain("status"))["health"]] == ["extraction"]
    await caller.plain("resume")
    await caller.call("extract", session_id="s", messages=WORDS, wait=True)
    assert (await extraction())["state"] == "ok"


async def test_doctor_sees_memory_that_is_off(caller: Caller) -> None:
    """A switch that is off is a warning with its reason."""
    await caller.plain("hello", environment={"MEMD_DISABLE": "1"})
    checks = (await caller.call("doctor"))["checks"]
    project = next(check for check in checks if check["name"] == "project")
    assert (project["state"], "memory is off" in project["detail"]) == ("warning", True)


async def test_doctor_compares_the_directories(caller: Caller) -> None:
    """Two directories are a warning that names both; a client without memory is none."""
    settings = Path(caller.home.path) / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    theirs = {"autoMemoryDirectory": f"{caller.home.path}/mine"}
    for options, environ, state in (
        (theirs, {}, "ok"),
        (theirs, {"MEMD_MEMORY_PATH": "/m/other"}, "warning"),
        ({"autoMemoryEnabled": False}, {"MEMD_MEMORY_PATH": "/m/other"}, "ok"),
    ):
        settings.write_text(json.dumps(options))
        hello = {"client": "test", "version": "1", "environment": environ}
        await caller.plain("hello", **hello)
        checks = {check["name"]: check for check in (await caller.call("doctor"))["checks"]}
        check = checks["client memory"]
        assert check["state"] == state
        assert bool(check.get("remedy")) == (state == "warning")

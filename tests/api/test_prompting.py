"""load_prompt, prefetch and session.* over the socket."""

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio

QUERY = "may I mock the database in this integration test?"


async def test_a_prompt_names_its_directory_and_its_index(caller: Caller) -> None:
    """The section has the index, the same bytes for the same inputs, and an etag."""
    await caller.write()
    loaded = await caller.call("load_prompt", session_id="s1")
    assert loaded["memory_dir"] in loaded["prompt"]
    assert "(feedback_tests.md)" in loaded["prompt"]
    assert loaded["index"] == {"lines": 1, "bytes": 76, "cut": ""}
    caller.clock.advance(86400)
    again = await caller.call("load_prompt", session_id="s2")
    assert (again["prompt"], again["etag"]) == (loaded["prompt"], loaded["etag"])


async def test_variants_are_asked_for_by_name(caller: Caller) -> None:
    """Daily log, agent and skip_index give other texts; an unknown mode is refused."""
    plain = (await caller.call("load_prompt"))["prompt"]
    daily = (await caller.call("load_prompt", mode="daily_log"))["prompt"]
    agent = (await caller.call("load_prompt", mode="agent", agent="a:b", scope="local"))["prompt"]
    bare = (await caller.call("load_prompt", skip_index=True))["prompt"]
    assert "logs/YYYY/MM/YYYY-MM-DD.md" in daily
    assert "agent-memory-local/a-b" in agent
    assert len({plain, daily, agent, bare}) == 4
    assert (await caller.refused("load_prompt", mode="loud")).code == -32602


async def test_the_right_memory_comes_once_per_session(caller: Caller) -> None:
    """A fitting memory goes out whole with its header, and again only after a compaction."""
    await caller.write()
    results = await caller.call("prefetch", session_id="s", query=QUERY)
    (memory,) = results["memories"]
    assert (memory["name"], memory["type"], memory["scope"]) == (
        "test-policy",
        "feedback",
        "private",
    )
    assert memory["path"].startswith("/")
    assert memory["path"] in memory["header"]
    assert "Never mock" in memory["content"]
    assert "Never mock" in results["block"]
    assert (results["strategy"], results["session_bytes"] > 0) == ("local", True)
    assert not (await caller.call("prefetch", session_id="s", query=QUERY))["memories"]
    for method, again in (("session.compacted", True), ("session.end", False)):
        await caller.call("session.start", session_id="s")
        assert await caller.call(method, session_id="s") == {"ok": True}
        results = await caller.call("prefetch", session_id="s", query=QUERY)
        assert bool(results["memories"]) == again


async def test_an_explanation_marks_nothing(caller: Caller) -> None:
    """Asked why, the answer has a row for each memory weighed, and the memory may still come."""
    await caller.write()
    await caller.write("project_lunch.md", name="lunch", description="Lunch is at noon", body="x")
    results = await caller.call("prefetch", session_id="s", query=QUERY, explain=True)
    explanation = results["explanation"]
    assert (explanation["strategy"], explanation["candidates"]) == ("local", 2)
    assert (explanation["surfaced_bytes"], explanation["cap"]) == (0, 60_000)
    row = explanation["rows"][0]
    assert (row["path"], row["kept"], row["reason"]) == ("feedback_tests.md", True, "")
    assert row["last_surfaced"] is None
    assert "databas" in row["terms"]
    assert sum(row["parts"].values()) == pytest.approx(row["score"], abs=1e-3)
    results = await caller.call("prefetch", session_id="s", query=QUERY)
    assert (len(results["memories"]), results["explanation"]) == (1, None)
    again = await caller.call("prefetch", session_id="s", query=QUERY, explain=True)
    (row,) = again["explanation"]["rows"]
    assert row["reason"] == "already surfaced in this session"
    assert row["last_surfaced"].endswith("Z")


async def test_two_roots_that_meet_in_one_directory_are_told(caller: Caller) -> None:
    """Names that differ only in what a slug cannot keep share a directory, and doctor says so."""
    first, second = caller.home.project("中文"), caller.home.project("日本")
    await caller.call("load_prompt", cwd=first)
    loaded = await caller.call("load_prompt", cwd=second)
    assert first in loaded["problems"][0]
    checks = (await caller.call("doctor", cwd=second))["checks"]
    assert next(check for check in checks if check["name"] == "paths")["state"] == "warning"

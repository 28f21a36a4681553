"""Dreams over a real socket: the gates, the job, and those that begin by themselves."""

from pathlib import Path

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio

WORDS = "From now on, always run the integration tests against a real database."


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


async def test_a_dream_that_is_not_due_names_its_gate(caller: Caller) -> None:
    """Right after a dream the time gate is closed, and so it says."""
    await caller.write("a.md")
    started = await caller.call("dream", force=True)
    assert started["status"] == "started"
    await caller.plain("job.wait", job=started["job"])
    skipped = await caller.call("dream")
    assert (skipped["status"], skipped["gate"]) == ("skipped", "time")


@pytest.mark.parametrize(("options", "kinds"), [("", {"dream"}), ("auto = false\n", set())])
async def test_the_end_of_a_session_lets_a_due_dream_begin(
    caller: Caller, options: str, kinds: set[str]
) -> None:
    """When the gates are open, session.end starts a dream, unless that is switched off."""
    config = Path(caller.home.places.config)
    config.parent.mkdir(parents=True)
    config.write_text(f"[dream]\nmin_sessions = 0\n{options}")
    config.chmod(0o600)
    await caller.call("session.end", session_id="s")
    jobs = (await caller.call("job.list"))["jobs"]
    assert {job["kind"] for job in jobs} == kinds

"""report: what memd did in some days."""

import os
import shutil

import pytest

from memd.core.clock_check import DAY_SECONDS
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
QUERY = "may I mock the database in the integration tests?"
OTHER = {"name": "b", "description": "about b", "type": "user", "body": "text"}


async def test_a_report_tells_of_all_projects_or_of_one(caller: Caller) -> None:
    """Memories with their project, uses, and nothing of the days before."""
    other = caller.home.project("other")
    await caller.plain("memory.write", cwd=other, path="old.md", **OTHER)
    caller.clock.advance(8 * DAY_SECONDS)
    await caller.write()
    await caller.plain("memory.write", cwd=other, path="b.md", **OTHER)
    await caller.plain("memory.delete", cwd=other, path="old.md")
    await caller.call("prefetch", session_id="s", query=QUERY)
    await caller.call("memory.read", path="feedback_tests.md")
    await caller.write(body="Never, ever mock it.", session_id="s")
    for cwd in (caller.cwd, other):
        await caller.plain("session.end", cwd=cwd, session_id="s")
    whole = await caller.plain("report")
    assert (whole["days"], whole["since"]) == (7, "2026-03-04T12:00:00.000Z")
    names = [(row["path"], row["project"], row["cwd"]) for row in whole["learnt"]["memories"]]
    assert names == [("feedback_tests.md", "project", caller.cwd), ("b.md", "other", other)]
    assert whole["removed"]["count"] == 1
    assert [whole[name]["count"] for name in ("changed", "merged", "unused")] == [0, 0, 0]
    assert whole["surfaced"] == {"times": 1, "memories": 1, "sessions": 1}
    assert (whole["read"], whole["acted"], whole["dreams"]) == (1, 1, 0)
    (most,) = whole["most"]
    assert (most["path"], most["surfaced"], most["read"], most["acted"]) == (
        "feedback_tests.md", 1, 1, 1,
    )  # fmt: skip
    assert (whole["tokens"], whole["dollars"], whole["questions"]) == (0, 0.0, [])
    assert set(whole["suggestions"].values()) == {0}
    mine = await caller.call("report", days=30)
    assert (mine["learnt"]["count"], mine["removed"]["count"]) == (1, 0)
    theirs = await caller.plain("report", cwd=other)
    assert (theirs["most"], theirs["surfaced"]["times"]) == ([], 0)
    assert await caller.plain("report") == whole


async def test_a_report_names_what_nobody_uses(caller: Caller) -> None:
    """In 90 days, the longest unused first; those of a team are theirs."""
    folder = await caller.folder()
    (folder / "team").mkdir(parents=True)
    for name in ("a.md", "b.md", "team/c.md"):
        (folder / name).write_text("text")
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    await caller.write()
    await caller.day()
    await caller.day()
    await caller.call("memory.read", path="a.md")
    for _ in range(92):
        await caller.day()
    found = (await caller.plain("report"))["unused"]
    *never, last = (row["path"] for row in found["memories"])
    assert (sorted(never), last) == (["b.md", "feedback_tests.md"], "a.md")
    assert found["count"] == 3
    await caller.call("memory.read", path="b.md")
    assert (await caller.call("report"))["unused"]["count"] == 2
    shutil.rmtree(folder.parent)
    assert (await caller.plain("report"))["unused"]["count"] == 0  # nobody could decide of them

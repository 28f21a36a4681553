"""memory.list comes in pages."""

import os

import pytest

from memd.core import limits
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
DAY = 1_780_000_000


async def fill(caller: Caller, count: int, description: str = "short") -> None:
    """Write memories as another program may, each pair of them with one time."""
    folder = await caller.folder()
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path = folder / f"m{number:05}.md"
        head = f"name: m{number}\ndescription: {description}\nmetadata:\n  type: project"
        path.write_text(f"---\n{head}\n---\n\ntext\n")
        os.utime(path, (DAY + number // 2, DAY + number // 2))


async def pages(caller: Caller, **params: object) -> list[list[str]]:
    """Return the paths of each page, following ``next`` to the end."""
    results: list[list[str]] = []
    after: dict[str, object] = {}
    while True:
        page = await caller.call("memory.list", **params, **after)
        results.append([memory["path"] for memory in page["memories"]])
        if page["next"] is None:
            return results
        after = {"after": page["next"]}


async def test_pages_together_are_the_list(caller: Caller) -> None:
    """Each memory is in one page, newest first, whatever the pages' length."""
    await fill(caller, 25)
    (whole,) = await pages(caller)
    assert len(set(whole)) == 25
    for limit in (1, 7, 25):
        results = await pages(caller, limit=limit)
        assert max(len(page) for page in results) == limit
        assert [path for page in results for path in page] == whole


async def test_what_goes_or_comes_between_pages_moves_nothing(caller: Caller) -> None:
    """A page begins behind the last memory of the one before, also when that one is gone."""
    await fill(caller, 6)
    (whole,) = await pages(caller)
    first = await caller.call("memory.list", limit=2)
    os.unlink(await caller.folder() / whole[1])
    await caller.write("new.md")
    rest = await caller.call("memory.list", after=first["next"])
    assert [memory["path"] for memory in rest["memories"]] == whole[2:]


async def test_a_list_larger_than_an_answer_comes_whole(caller: Caller) -> None:
    """Without a limit a page ends where an answer ends, and names the next one."""
    count = 3 * limits.FRAME_BYTES // 2 // 12_000
    await fill(caller, count, "d" * 12_000)
    results = await pages(caller)
    assert len(results) > 1
    assert sum(map(len, results)) == count


async def test_a_list_is_narrowed_by_words_and_type(caller: Caller) -> None:
    """Each word is in the path, name or description, in any case; the count is of all pages."""
    await fill(caller, 12)
    await caller.write("feedback_tests.md")
    (await caller.folder() / "bare.md").write_text("no head")
    found = await caller.call("memory.list", contains="REAL integration")
    assert [one["path"] for one in found["memories"]] == ["feedback_tests.md"]
    narrowed = await caller.call("memory.list", contains="m0000", type="project", limit=4)
    assert (len(narrowed["memories"]), narrowed["count"]) == (4, 10)
    later = await caller.call(
        "memory.list", contains="m0000", type="project", after=narrowed["next"]
    )
    assert (len(later["memories"]), later["count"], later["next"]) == (6, 10, None)
    untyped = await caller.call("memory.list", type="none")
    assert [one["path"] for one in untyped["memories"]] == ["bare.md"]
    assert (await caller.call("memory.list", contains="nowhere"))["count"] == 0
    refused = await caller.refused("memory.list", contains="x" * 1001)
    assert refused.code == -32602

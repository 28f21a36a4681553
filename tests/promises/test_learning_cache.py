"""What learning costs: the cache serves it, and a client's own prefix goes out as it came."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.base.prices import price
from tests.promises.learning import MODEL, WISH, Desk, desk, learns, nothing
from tests.promises.transcripts import Conversation
from tests.support.messages import text
from tests.support.prompt_cache import PromptCache
from tests.support.steps import ReceivedMessage, ScriptedReply

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
WORDS = (
    "the parser reads each record once and keeps what it needs of it before the next one comes; "
    "a test with a real database showed that the second pass had never found anything new; "
)
TOOL = {
    "name": "Read",
    "description": "Read a file \u2013 d\u00e9j\u00e0 vu \u8bfb\u53d6",
    "input_schema": {"type": "object", "properties": {"limit": {"type": "number", "minimum": 0.5}}},
}


class Cache(PromptCache):
    """A script whose answers say what a prompt cache gave back of each request."""

    def __init__(self, script: Any, now: Callable[[], float]) -> None:
        super().__init__(now)
        self.usages: list[dict[str, int]] = []  # of each answer
        self._script = script

    def __call__(self, request: ReceivedMessage) -> ScriptedReply:
        """Answer a request by the script, with its usage."""
        usage = self.usage(request.json)
        reply: ScriptedReply = self._script(request)
        self.usages.append(usage | {"output_tokens": len(str(reply.content)) // 4})
        return replace(reply, usage=usage)


def talk(said: Conversation, turns: int) -> None:
    """Add turns of some 550 tokens: a question, a file that is read, an answer."""
    for _ in range(turns):
        said.user(f"Question {said.lines}: {WORDS[:120]}")
        said.tool("Read", {"file_path": f"/p/src/part{said.lines}.py"}, WORDS * 6)
        said.assistant(f"Answer {said.lines}: {WORDS * 4}")


async def test_extractions_read_the_cache() -> None:
    """Tools and system text come from the cache in each turn and in each request of a run."""
    folder: list[Path] = []

    def script(request: ReceivedMessage) -> Any:
        number = len(here.server.messages)
        return text("nothing new") if number % 3 == 0 else learns(folder, f"m{number}.md")(request)

    cache = Cache(script, lambda: 0.0)
    async with desk(cache) as here:
        folder.append(here.memory)
        said = here.conversation("s1")
        said.user(WISH)
        await extracted(here, said, 1)
        known = len(here.server.messages)
        rates = await extracted(here, said, 10)
        usages = cache.usages[known:]
    assert len(usages) == 15
    read = {usage["cache_read_input_tokens"] for usage in usages}
    assert len(read) == 1
    assert min(read) > 1_500
    assert min(rates) > 0.4


async def extracted(here: Desk, said: Conversation, turns: int) -> list[float]:
    """Add so many turns, each extracted at once; return the hit rates."""
    rates = []
    for _ in range(turns):
        talk(said, 1)
        done = await here.extract(said)
        assert done["status"] == "completed"
        assert not done.get("prefix_changed")
        rates.append(done.get("hit_rate", 0.0))
    return rates


@pytest.mark.parametrize(
    ("mode", "each"),
    [
        ("mixed", 6),
        pytest.param("warm", 61, marks=pytest.mark.soak),
        pytest.param("cold", 1, marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize(
    "before",
    [pytest.param(1, marks=pytest.mark.soak), 50, pytest.param(150, marks=pytest.mark.soak)],
)
async def test_a_turn_without_news_costs_a_cent(mode: str, each: int, before: int) -> None:
    """In sixty turns none without news costs more, however long the conversation is by then."""
    now = [1000.0]
    cache = Cache(nothing, lambda: now[0])
    async with desk(cache) as here:
        said = here.conversation("s1")
        talk(said, before)
        await here.extract(said)
        for number in range(1, 61):
            talk(said, 1)
            await here.extract(said)
            pause = 900.0 if number % each == 0 else 60.0
            here.clock.advance(pause)
            now[0] += pause
        costs = [100 * dollars(usage) for usage in cache.usages[1:]]
    assert len(costs) == 60
    last = f"first {costs[0]:.2f}, last {costs[-1]:.2f}, dearest {max(costs):.2f}"
    print(f"{mode}, {before} turns before: {sum(costs):.1f} cents; {last}")  # noqa: T201 - the proof's figures
    assert max(costs) <= 1.0


def dollars(usage: Mapping[str, Any]) -> float:
    """Return what a request cost at the default model."""
    names = ("input", "output", "cache_read_input", "cache_creation_input")
    return price(MODEL).money(*(usage.get(f"{name}_tokens", 0) for name in names))

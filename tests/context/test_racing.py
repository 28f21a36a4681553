"""Sub-agents and forks that plan at the same moment: one session, one decision about each block."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.context.errors import ConversationChangedError
from memd.context.requests import PlannedContext
from tests.context.bench import TALK, Bench, call

pytestmark = pytest.mark.anyio

AGENTS, TURNS = 8, 6


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Make a bench in a folder of its own."""
    made = Bench(tmp_path)
    with closing(made):
        yield made


async def test_forks_that_go_on_together_are_sent_the_same(bench: Bench) -> None:
    """Whoever comes too late plans again, and all of them agree with what a restart says."""
    sent: dict[str, dict[str, str | None]] = {str(number): {} for number in range(AGENTS)}

    async def planned(name: str, messages: list[Any]) -> PlannedContext:
        while True:
            try:
                return await bench.plan(messages, conversation=name)
            except ConversationChangedError:
                continue

    async def agent(name: str) -> None:
        messages: list[Any] = [*TALK]
        for turn in range(2, 2 + TURNS):
            edits = (await planned(name, messages)).edits
            now = {edit.tool_use_id: edit.content for edit in edits}
            assert sent[name].items() <= now.items()
            sent[name] = now
            messages += call(turn)

    async with anyio.create_task_group() as group:
        for name in sent:
            group.start_soon(agent, name)
    assert len(sent["0"]) == TURNS
    assert [each for each in sent.values() if each != sent["0"]] == []
    bench.restart()
    messages = [*TALK, *(message for turn in range(2, 1 + TURNS) for message in call(turn))]
    again = await planned("0", messages)
    assert {edit.tool_use_id: edit.content for edit in again.edits} == sent["0"]

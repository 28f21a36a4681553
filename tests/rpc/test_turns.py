"""Who goes next when all want to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from memd.core import limits
from memd.rpc.turns import Party, Turn, Turns
from tests.support.clock import FakeClock


class Bench:
    """Turns on a clock of the test's own, and who got one in which order."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self.clock = FakeClock()
        self.turns = Turns(self.clock)
        self.begun: list[Turn] = []
        self.parties: dict[str, Party] = {}
        self._group = group

    def want(self, party: str, load: int = 0) -> None:
        """Ask for a turn for somebody."""
        self._group.start_soon(self._begin, party, load)

    async def _begin(self, party: str, load: int) -> None:
        turn = await self.turns.begin(self._party(party), load)
        self.begun.append(turn)

    def _party(self, name: str) -> Party:
        if name not in self.parties:
            self.parties[name] = self.turns.party(len(self.parties))
        return self.parties[name]

    async def take_all(self) -> None:
        """Have as many parties as there are turns take one each."""
        for number in range(limits.TURNS):
            self.want(f"{number}")
        await self.order()

    async def order(self) -> list[str]:
        """Return who has begun, once everybody had the time to."""
        for _ in range(20):
            await checkpoint()
        names = {each: name for name, each in self.parties.items()}
        return [names[turn.party] for turn in self.begun]


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    """Make turns and end what waits for them afterwards."""
    async with anyio.create_task_group() as group:
        made = Bench(group)
        group.start_soon(made.turns.watch)
        yield made
        group.cancel_scope.cancel()


@pytest.mark.anyio
async def test_so_many_run_at_once_and_fewer_of_one() -> None:
    """One party cannot have all turns, and a turn that ends is the next one's."""
    async with bench() as table:
        for _ in range(limits.TURNS):
            table.want("flood", 9)
        assert await table.order() == ["flood"] * limits.TURNS_PER_PROCESS
        for number in range(limits.TURNS):
            table.want(f"other {number}")
        assert len(await table.order()) == limits.TURNS
        assert "flood" not in (await table.order())[limits.TURNS_PER_PROCESS :]
        for _ in range(2):
            table.turns.end(table.begun[-1])  # giving back twice is once
        assert len(await table.order()) == limits.TURNS + 1


@pytest.mark.anyio
async def test_who_has_least_to_do_goes_first_and_nobody_waits_for_ever() -> None:
    """Three in four turns are for the light, each fourth for the one that has waited longest."""
    async with bench() as table:
        await table.take_all()
        table.want("heavy", 32)
        for number in range(20):
            table.want(f"light {number}")
        for _ in range(4):
            await table.order()
            table.turns.end(table.begun[-1])
        assert (await table.order())[limits.TURNS :].count("heavy") == 1


@pytest.mark.anyio
async def test_a_turn_does_not_last() -> None:
    """Work that only waits loses its turn after a moment, one at a time, and goes on."""
    async with bench() as table:
        await table.take_all()
        table.want("next")
        table.want("after")
        waited = []
        while "after" not in await table.order():
            waited.append("next" in await table.order())
            table.clock.advance(limits.TURN_SECONDS / 10)
        assert waited.count(False) * limits.TURN_SECONDS / 10 >= limits.TURN_SECONDS
        assert waited.count(True) * limits.TURN_SECONDS / 10 >= limits.TURN_SECONDS / 2
        for turn in table.begun:
            table.turns.end(turn)


@pytest.mark.anyio
async def test_a_flood_holds_back_while_others_work() -> None:
    """It begins one turn in a moment while a process works that had fewer, and any number after."""
    async with bench() as table:
        await flood(table, 9)
        assert (await table.order()).count("flood") == 9
        table.want("other")
        assert (await table.order())[-1] == "other"
        for expected in (10, 11, 12):
            await flood(table, 9)
            assert (await table.order()).count("flood") == expected
            table.clock.advance(limits.TURN_SECONDS / 5)
        table.turns.end(next(turn for turn in table.begun if turn.rank == (0, 0)))
        await flood(table, 0)
        assert (await table.order()).count("flood") == 9 + 3 * 9


async def flood(table: Bench, frames: int) -> None:
    """Have one party ask for so many turns and end each that it has."""
    for _ in range(frames):
        table.want("flood", 9)
    for _ in range(30):
        await table.order()
        for turn in table.begun:
            if turn.party is table.parties["flood"]:
                table.turns.end(turn)


@pytest.mark.anyio
async def test_who_leaves_gives_its_place_up() -> None:
    """A party that is cancelled while it waits keeps nothing."""
    async with bench() as table:
        await table.take_all()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(table.turns.begin, table.turns.party(0), 0)
                await table.order()
                scope.cancel()
        table.turns.end(table.begun[0])
        table.want("next")
        assert "next" in await table.order()

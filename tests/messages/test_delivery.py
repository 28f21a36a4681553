"""Messages come to who waits for them, and to the hooks of a session."""

from pathlib import Path

import anyio
import pytest

from memd.messages.service import LeaseHolder
from tests.messages.mailrooms import mailroom

pytestmark = pytest.mark.anyio


async def test_who_waits_has_a_message_as_it_comes(tmp_path: Path) -> None:
    """A receiver that waits gets what is sent meanwhile, and nothing when its time is over."""
    async with mailroom(tmp_path) as room:
        await room.two()
        got: list[int] = []

        async def wait() -> None:
            got.append(len((await room.receive("ben", wait=10.0)).messages))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await room.send("ann", "ben")
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            room.clock.advance(10)
        assert got == [1, 0]


async def test_who_waits_has_a_message_whose_lease_ends(tmp_path: Path) -> None:
    """A receiver that waits gets what another one leased and never acknowledged."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.send("ann", "ben")
        await room.receive("ben", holder=LeaseHolder("dead", lambda: True))
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                assert len((await room.receive("ben", wait=60.0)).messages) == 1

            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            room.clock.advance(30)


async def test_a_hook_s_messages_are_read_at_the_next_event(tmp_path: Path) -> None:
    """What a hook printed is read at the session's next event, what it did not comes again."""
    async with mailroom(tmp_path) as room:
        await room.two()
        messages = room.messages
        assert not messages.waiting("test", "ben")
        sent = await room.send("ann", "ben", "hello")
        assert messages.waiting("test", "ben")
        text, _ = await messages.deliver("test", "ben")
        assert "> hello" in text
        again, receipt = await messages.deliver("test", "ben")  # the hook died before it printed
        assert ("> hello" in again, "delivery 2" in again) == (True, True)
        messages.printed(receipt)
        await room.pass_time(3_600)
        assert await room.state(sent.id) == "leased"
        assert await messages.deliver("test", "ben") == ("", 0)
        assert await room.state(sent.id) == "read"
        assert not messages.waiting("test", "ben")


async def test_a_session_that_ends_first_has_its_messages_again(tmp_path: Path) -> None:
    """What was printed is queued again when the session ends before its next event."""
    async with mailroom(tmp_path) as room:
        await room.two()
        await room.send("ann", "ben", "hello")
        room.messages.printed((await room.messages.deliver("test", "ben"))[1])
        await room.messages.requeue_session("test", "ben")
        assert "> hello" in (await room.messages.deliver("test", "ben"))[0]


async def test_a_hook_that_never_prints_parks(tmp_path: Path) -> None:
    """A message that five events could not show is parked, and its sender told."""
    async with mailroom(tmp_path) as room:
        await room.two()
        sent = await room.send("ann", "ben", "hello")
        for _ in range(5):
            assert (await room.messages.deliver("test", "ben"))[1]
        assert await room.messages.deliver("test", "ben") == ("", 0)
        assert await room.state(sent.id) == "parked"

"""What clients see of a server that ends: what was not begun, and what was not done."""

from typing import Any

import anyio
import pytest
from anyio import to_thread

from memd.client.aio import AsyncClient
from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.rpc.call import Call
from tests.wire_server import serving

pytestmark = pytest.mark.anyio


async def echo(_call: Call, params: dict[str, Any]) -> Any:
    """Return what came."""
    return params


async def test_a_request_that_was_not_taken_is_told_from_others() -> None:
    """What is sent after the end was not begun, so anybody may send it again."""
    async with serving({"hello": echo, "echo": echo}) as server:
        with Client(server.path, environment={}) as client:
            assert await to_thread.run_sync(client.call, "echo") == {}
            server.ending.set()
            await server.ended.wait()
            with pytest.raises(DaemonUnavailableError):
                await to_thread.run_sync(client.call, "echo")


async def test_a_request_that_was_not_done_is_as_if_memd_had_gone() -> None:
    """Clients repeat it by the rules that they have for that: it is no answer of the method."""
    failures: list[Exception] = []
    started = anyio.Event()

    async def wait(_call: Call, _params: dict[str, Any]) -> None:
        started.set()
        await anyio.sleep_forever()

    async def later(path: str) -> None:
        async with AsyncClient(path, environment={}) as client:
            try:
                await client.call("wait")
            except DaemonUnavailableError as error:
                failures.append(error)

    def blocking(path: str) -> None:
        with Client(path, environment={}) as client:
            try:
                client.call("wait")
            except DaemonUnavailableError as error:
                failures.append(error)

    async with (
        serving({"hello": echo, "wait": wait}, answer_seconds=0.01) as server,
        anyio.create_task_group() as group,
    ):
        group.start_soon(later, server.path)
        group.start_soon(to_thread.run_sync, blocking, server.path)
        while server.hub.connections() < 2:
            await anyio.lowlevel.checkpoint()
        await started.wait()
        server.ending.set()
    assert {type(error) for error in failures} <= {DaemonUnavailableError}
    assert len(failures) == 2

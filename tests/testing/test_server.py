"""The server for tests."""

from typing import Any

import pytest

from memd.rpc.connection import Call
from memd.testing.server import exchange, serving


async def fail(_call: Call, _params: dict[str, Any]) -> None:
    """Fail with something nobody foresaw."""
    raise ZeroDivisionError


@pytest.mark.anyio
async def test_serves_given_handlers_and_keeps_what_is_logged() -> None:
    """Its log keeps an unexpected exception and the answer names the id it got."""
    async with serving({"fail": fail}) as server:
        answer = await exchange(server.path, b'{"jsonrpc":"2.0","id":1,"method":"fail"}')
    assert b"error-1" in answer
    assert [type(error) for error in server.log.errors] == [ZeroDivisionError]
    assert server.log.notes == []

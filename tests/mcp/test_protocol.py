"""Messages of both eras as values."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.mcp import protocol
from memd.mcp.protocol import McpReply, McpRequest, ProtocolError, parse
from tests.mcp.program import META, modern_meta

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_MEMBERS = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "result", "error", "_meta", f"{META}protocolVersion"]
)
_JSON = st.recursive(
    _SCALARS | st.sampled_from(["2.0", "initialize", "ping", "2026-07-28"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_MEMBERS, inner, max_size=6),
    max_leaves=20,
)


@given(_JSON)
def test_any_json_is_a_message_or_a_refusal(message: Any) -> None:
    """Whatever comes in is a request, a reply or an error that can be written as JSON."""
    try:
        parsed = parse(message)
    except ProtocolError as error:
        refused = json.loads(json.dumps(protocol.error_answer(error), allow_nan=False))
        assert isinstance(refused["id"], int | str | None)
    else:
        assert isinstance(parsed, McpRequest | McpReply)


@pytest.mark.parametrize("id_", [None, True, 1.5, [], {}, 2**64])
def test_an_id_is_a_text_or_a_whole_number(id_: object) -> None:
    """A request with another id is refused without one."""
    with pytest.raises(ProtocolError) as caught:
        parse({"jsonrpc": "2.0", "id": id_, "method": "ping"})
    assert (caught.value.code, caught.value.id) == (protocol.INVALID, None)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"id": 1, "method": "ping"}, protocol.INVALID),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, protocol.INVALID),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, protocol.INVALID),
        ({"jsonrpc": "2.0", "id": 1}, protocol.INVALID),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, protocol.PARAMS),
        ("ping", protocol.INVALID),
    ],
)
def test_what_is_no_request_is_refused(message: object, code: int) -> None:
    """The code says what is wrong, and the id is the message's."""
    with pytest.raises(ProtocolError) as caught:
        parse(message)
    assert caught.value.code == code
    assert caught.value.id == (1 if isinstance(message, dict) else None)


def test_a_version_that_is_not_served_is_named() -> None:
    """The error has what was asked for and what can be had instead."""
    params = modern_meta()
    params["_meta"][f"{META}protocolVersion"] = "2031-01-01"
    with pytest.raises(ProtocolError) as caught:
        parse({"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": params})
    assert (caught.value.code, caught.value.id) == (-32022, "a")
    assert caught.value.data["requested"] == "2031-01-01"
    assert caught.value.data["supported"][:2] == ["2026-07-28", "2025-11-25"]


def test_a_modern_request_brings_its_capabilities() -> None:
    """Without them it is refused with the member's name."""
    params = modern_meta()
    del params["_meta"][f"{META}clientCapabilities"]
    with pytest.raises(ProtocolError, match="clientCapabilities"):
        parse({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})

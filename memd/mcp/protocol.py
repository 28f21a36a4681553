"""Parse messages and build answers for both eras of the protocol.

Rules of this file
- A request with a protocol version in its ``_meta`` is modern (2026-07-28, no handshake, every
  request stands alone), any other is of the handshake era (2024-11-05 to 2025-11-25). Both may come
  over one connection.
- An invalid message never crashes: it raises a ``ProtocolError`` with the message's id.
"""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct, field

from memd import __version__

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED = -32022  # the modern era's code for a version that is not served
NO_RESOURCE = -32002  # the handshake era's; the modern one calls it invalid parameters
SERVER = {"name": "memd", "title": "Memories of this project", "version": __version__}
CAPABILITIES: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}}
_PREFIX = "io.modelcontextprotocol/"
_NO_OBJECT = "a message is one JSON object"
_NO_VERSION = 'jsonrpc must be "2.0"'
_NO_ID = "an id is a string or a whole number"
_NO_METHOD = "method must be a string"
_NO_PARAMS = "params must be an object"
_NO_META = f"_meta must have {_PREFIX}clientCapabilities, an object"
_NOT_SERVED = "this protocol version is not served"
# For the results of _FIXED_METHODS, which change only with the version of memd.
_CACHE_MS = 60 * 60 * 1000
_FIXED_METHODS = ("server/discover", "tools/list", "prompts/list", "resources/templates/list")
# Methods whose results have a time to live; it is 0 where memories can change the result.
_CACHED_METHODS = (*_FIXED_METHODS, "resources/list", "resources/read")
_HIGHEST_ID = 2**63  # some clients cannot represent higher numbers exactly

Id = str | int


class ProtocolError(Exception):
    """An invalid message or request; the client's program gets it, its model does not."""

    def __init__(self, code: int, sentence: str, data: Any = None, id_: Id | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.data = data
        self.id = id_


class McpRequest(Struct, frozen=True):
    """A request, or a notification where ``id`` is ``None``. ``client`` is the caller's name."""

    id: Id | None
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    modern: bool = False
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    client: str = ""


class McpReply(Struct, frozen=True):
    """The client's answer to our request; ``result`` is empty where the answer is an error."""

    id: Any
    result: Mapping[str, Any]


def parse(message: Any) -> McpRequest | McpReply:
    """Return the request or the client's answer in a message. Raises ProtocolError."""
    if not isinstance(message, dict):
        raise ProtocolError(INVALID, _NO_OBJECT)
    id_ = message.get("id")
    if "id" in message and not _is_id(id_):
        raise ProtocolError(INVALID, _NO_ID)
    if "method" not in message and ("result" in message or "error" in message):
        return McpReply(id_, _object(message.get("result")))
    method, params = message.get("method"), message.get("params")
    if message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID, _NO_VERSION, id_=id_)
    if not isinstance(method, str):
        raise ProtocolError(INVALID, _NO_METHOD, id_=id_)
    if params is not None and not isinstance(params, dict):
        raise ProtocolError(PARAMS, _NO_PARAMS, id_=id_)
    params = params or {}
    meta = _object(params.get("_meta"))
    if method == "initialize":
        capabilities, client = _object(params.get("capabilities")), _name(params.get("clientInfo"))
        return McpRequest(id_, method, params, capabilities=capabilities, client=client)
    if id_ is None or f"{_PREFIX}protocolVersion" not in meta:
        return McpRequest(id_, method, params)
    return _modern_request(id_, method, params, meta)


def _is_id(value: Any) -> bool:
    """Return whether a value may be the id of a request: a string or a whole number."""
    if isinstance(value, str):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _HIGHEST_ID


def _modern_request(
    id_: Id, method: str, params: dict[str, Any], meta: Mapping[str, Any]
) -> McpRequest:
    """Return a request of the modern era. Raises ProtocolError for another version."""
    version = meta[f"{_PREFIX}protocolVersion"]
    capabilities = meta.get(f"{_PREFIX}clientCapabilities")
    if version != MODERN:
        data = {"supported": [MODERN, *reversed(HANDSHAKE)], "requested": str(version)}
        raise ProtocolError(UNSUPPORTED, _NOT_SERVED, data, id_)
    if not isinstance(capabilities, dict):
        raise ProtocolError(PARAMS, _NO_META, id_=id_)
    client = _name(meta.get(f"{_PREFIX}clientInfo"))
    return McpRequest(id_, method, params, modern=True, capabilities=capabilities, client=client)


def result_answer(request: McpRequest, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request, with the members that its era requires in a result."""
    if request.modern:
        meta = {f"{_PREFIX}serverInfo": SERVER}
        result = {"resultType": "complete", **result, "_meta": meta}
        if request.method in _CACHED_METHODS:
            milliseconds = _CACHE_MS if request.method in _FIXED_METHODS else 0
            result |= {"ttlMs": milliseconds, "cacheScope": "private"}
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def error_answer(error: ProtocolError, id_: Id | None = None) -> dict[str, Any]:
    """Return an error answer, with the error's id or else ``id_``.

    The id is ``None`` if the message that it answers has no valid id.
    """
    body = {"code": error.code, "message": error.sentence}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": id_ if error.id is None else error.id, "error": body}


def server_description(request: McpRequest) -> dict[str, Any]:
    """Return the server's name and capabilities, for ``initialize`` and ``server/discover``.

    A handshake gets the client's version if memd serves it, else the newest of that era.
    """
    if request.modern:
        versions: dict[str, Any] = {"supportedVersions": [MODERN, *reversed(HANDSHAKE)]}
    else:
        client_version = request.params.get("protocolVersion")
        version = client_version if client_version in HANDSHAKE else HANDSHAKE[-1]
        versions = {"protocolVersion": version}
    return {
        **versions,
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": declaration("instructions"),
    }


def declaration(name: str) -> Any:
    """Return the value of a top-level key in ``declared.toml``."""
    return _declarations()[name]


@cache
def _declarations() -> Mapping[str, Any]:
    """Return the content of ``declared.toml``: the tools, prompts and resources."""
    import tomllib  # noqa: PLC0415 - not needed by every client, so not imported at the start

    with open(f"{os.path.dirname(__file__)}/declared.toml", "rb") as file:
        return tomllib.load(file)


def text_of(value: Any) -> str:
    """Return a string as it is, "" for any other value."""
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, Any]:
    """Return a value if it is a JSON object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def _name(implementation: Any) -> str:
    """Return the name in a client's description of itself, "" if there is none."""
    return text_of(_object(implementation).get("name"))

"""Read requests and finish results of both eras of the protocol.

A request with a protocol version in its ``_meta`` is modern (2026-07-28, no handshake, every
request stands alone), any other is of the handshake era (2024-11-05 to 2025-11-25). Both may come
over one connection.
"""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from memd import __version__
from memd.base.errors import Invalid, NotFound
from memd.rpc.call import Call, Handler

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
UNSUPPORTED = -32022  # the modern era's code for a version that is not served
NO_RESOURCE = -32002  # the handshake era's; the modern one calls it invalid parameters
SERVER = {"name": "memd", "title": "Memories of this project", "version": __version__}
_PREFIX = "io.modelcontextprotocol/"
_NO_CAPABILITIES = f"_meta must have {_PREFIX}clientCapabilities, an object"
_NOT_SERVED = "this protocol version is not served"
# Methods whose results change only with the version of memd, and for how long they may be cached.
_FIXED_METHODS = ("server/discover", "tools/list", "prompts/list", "resources/templates/list")
_CACHE_MS = 60 * 60 * 1000
# Methods whose results have a time to live; it is 0 where memories can change the result.
_CACHED_METHODS = (*_FIXED_METHODS, "resources/list", "resources/read")
_METHODS_WITHOUT_CWD = ("message.receive", "message.ack")


class McpRequest(Struct, frozen=True):
    """A request or notification; ``client`` is the name of the client's program, if it says one."""

    method: str
    params: Mapping[str, Any]
    call: Call
    capabilities: Mapping[str, Any]
    client: str
    modern: bool = False


class MethodCaller(Struct, frozen=True):
    """Calls methods of the daemon in the name of one request, for its working directory."""

    methods: Mapping[str, Handler]
    call: Call
    directory: str

    async def __call__(self, method: str, **params: Any) -> Any:
        """Return the result of a method as a JSON value. Raises what the method raises."""
        if method not in _METHODS_WITHOUT_CWD:
            params["cwd"] = self.directory
        return msgspec.to_builtins(await self.methods[method](self.call, params))


def read_request(method: str, call: Call, params: Mapping[str, Any]) -> McpRequest:
    """Return a request in either era's form. Raises Invalid."""
    meta = call.meta
    if method == "initialize" or f"{_PREFIX}protocolVersion" not in meta:
        capabilities, client = object_of(params.get("capabilities")), params.get("clientInfo")
        return McpRequest(method, params, call, capabilities, _name(client))
    version = meta[f"{_PREFIX}protocolVersion"]
    if version != MODERN:
        versions = ", ".join((MODERN, *reversed(HANDSHAKE)))
        error = Invalid(_NOT_SERVED, hint=f"memd serves {versions}", requested=str(version))
        error.code = UNSUPPORTED
        error.facts["supported"] = cast("Any", [MODERN, *reversed(HANDSHAKE)])
        raise error
    own_capabilities = meta.get(f"{_PREFIX}clientCapabilities")
    if not isinstance(own_capabilities, dict):
        raise Invalid(_NO_CAPABILITIES)
    client = meta.get(f"{_PREFIX}clientInfo")
    return McpRequest(method, params, call, own_capabilities, _name(client), modern=True)


def finished(request: McpRequest, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a result with the members that the request's era requires in it."""
    if not request.modern:
        return result
    meta = {f"{_PREFIX}serverInfo": SERVER}
    result = {"resultType": "complete", **result, "_meta": meta}
    if request.method in _CACHED_METHODS:
        milliseconds = _CACHE_MS if request.method in _FIXED_METHODS else 0
        result |= {"ttlMs": milliseconds, "cacheScope": "private"}
    return result


def description(request: McpRequest) -> dict[str, Any]:
    """Return the server's name and capabilities, for ``initialize`` and ``server/discover``.

    A handshake gets the client's version if memd serves it, else the newest of that era.
    """
    if request.method == "initialize":
        version = request.params.get("protocolVersion")
        versions = {"protocolVersion": version if version in HANDSHAKE else HANDSHAKE[-1]}
    else:
        versions = {"supportedVersions": [MODERN, *reversed(HANDSHAKE)]}
    return {
        **versions,
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": SERVER,
        "instructions": declaration("instructions"),
    }


def no_resource(request: McpRequest, sentence: str) -> NotFound:
    """Return the error that there is no such resource, with the code of the request's era."""
    error = NotFound(sentence, uri=text_of(request.params.get("uri")))
    error.code = Invalid.code if request.modern else NO_RESOURCE
    return error


def declaration(name: str) -> Any:
    """Return the value of a top-level key in ``declared.toml``."""
    return _declarations()[name]


@cache
def _declarations() -> Mapping[str, Any]:
    """Return the content of ``declared.toml``: the tools, prompts and resources."""
    with open(f"{os.path.dirname(__file__)}/declared.toml", "rb") as file:
        declarations: Mapping[str, Any] = msgspec.toml.decode(file.read())
    return declarations


def text_of(value: Any) -> str:
    """Return a string as it is, "" for any other value."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> Mapping[str, Any]:
    """Return a value if it is a JSON object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def _name(implementation: Any) -> str:
    """Return the name in a client's description of itself, "" if there is none."""
    return text_of(object_of(implementation).get("name"))

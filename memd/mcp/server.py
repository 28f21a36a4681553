"""Answer the methods of the protocol at the socket, each with methods of the daemon's own table.

Rules of this file
- A connection's first message may be ``notifications/memd/directory`` with ``path``, the working
  directory of the client's process; ``memctl mcp`` sends it. With ``fixed`` the client's roots are
  ignored.
- The client is asked for its roots after its handshake and when they change; until it answers, at
  most ``_ROOTS_SECONDS``, requests for the working directory wait. A modern client is asked in a
  result, where the process's directory is the home or one above it, as for desktop clients.
- Parameters that a method does not know are ignored.
- What a model can correct is a tool's result with a sentence, never an error.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from memd.base.agents import FindProcess
from memd.base.errors import Invalid, MemdError
from memd.base.waiting import waits_outside
from memd.mcp import protocol, resources, tools
from memd.mcp.messages import MessageTools
from memd.mcp.protocol import McpRequest, MethodCaller, object_of, text_of
from memd.rpc.call import Call, Connection, Handler

_ROOTS_SECONDS = 2.0  # to wait for the client's roots
_ROOTS_REQUEST = {"method": "roots/list"}
_MAY_NEED_ROOTS = ("tools/call", "resources/read", "prompts/get")
# A modern client repeats the request with its roots.
_ROOTS_NEEDED = {"resultType": "input_required", "inputRequests": {"roots": _ROOTS_REQUEST}}
_ROOTS_ID = "roots"  # of the request to the client
_NAME_CHARACTERS = 60
_NO_TOOL = "there is no such tool; tools/list has those that there are"
Result = Mapping[str, Any]


class McpSession:
    """What is known of one client of the protocol: its working directory, roots and agent."""

    def __init__(self, methods: Mapping[str, Handler], home: str, find: FindProcess) -> None:
        self._methods = methods
        self._home = home
        self._messages = MessageTools(find)
        self._directory = ""
        self._is_fixed = False  # the client's roots are ignored
        self._is_vague = False  # the directory is the home or one above it
        self._has_roots = False
        self._roots_known = anyio.Event()  # not set while the client's answer is awaited
        self._roots_known.set()

    async def set_directory(self, request: McpRequest) -> Result:
        """Use the working directory that ``memctl mcp`` sends."""
        path = text_of(request.params.get("path"))
        self._directory, self._is_fixed = path, bool(request.params.get("fixed"))
        is_home_or_above = f"{self._home}/".startswith(f"{path.rstrip('/')}/")
        self._is_vague = is_home_or_above and not self._is_fixed
        return {}

    async def initialize(self, request: McpRequest) -> Result:
        """Shake hands."""
        self._has_roots = "roots" in request.capabilities
        return protocol.description(request)

    async def ask_for_roots(self, request: McpRequest) -> Result:
        """Ask the client for its roots, after the handshake or when they have changed."""
        if self._has_roots and not self._is_fixed:
            self._roots_known = anyio.Event()
            message = {"jsonrpc": "2.0", "id": _ROOTS_ID, **_ROOTS_REQUEST}
            request.call.connection.send(msgspec.json.encode(message))
        return {}

    async def take_answer(self, request: McpRequest) -> Result:
        """Take the client's answer to the request for its roots."""
        if request.params.get("id") == _ROOTS_ID:
            await self.adopt(request.params.get("result"))
        return {}

    async def adopt(self, result: Any) -> None:
        """Use the first root in a client's answer that is a directory on this machine, if any."""
        self._is_vague = False  # even without a usable root the client is not asked again
        roots = object_of(result).get("roots")
        for root in roots if isinstance(roots, list) and not self._is_fixed else ():
            path = _path(text_of(object_of(root).get("uri")))
            if not path:
                continue
            if await to_thread.run_sync(os.path.isdir, path):
                self._directory = path
                break
        self._roots_known.set()

    async def needs_roots(self, request: McpRequest) -> bool:
        """Take the roots that a modern client's request brings; return whether it lacks them."""
        answers = request.params.get("inputResponses")
        if isinstance(answers, dict):
            await self.adopt(answers.get("roots"))
        return self._is_vague and request.modern and "roots" in request.capabilities

    async def call_tool(self, request: McpRequest) -> Result:
        """Run a tool. Raises Invalid where there is none of this name."""
        name, arguments = text_of(request.params.get("name")), request.params.get("arguments") or {}
        tool = next((tool for tool in protocol.declaration("tool") if tool["name"] == name), None)
        if tool is None or not isinstance(arguments, dict):
            raise Invalid(_NO_TOOL)
        try:
            return await tools.call(
                await self._caller(request), tool, arguments, self._messages.tools
            )
        except MemdError as error:
            return tools.error_result(_in_words(error))

    async def list_resources(self, request: McpRequest) -> Result:
        """Return a page of the resources."""
        return await resources.list_page(await self._caller(request), request.params)

    async def read_resource(self, request: McpRequest) -> Result:
        """Return the text of a resource. Raises NotFound, with the code of the request's era."""
        try:
            return await resources.read(await self._caller(request), request)
        except MemdError as error:
            if error.kind in ("not_found", "name_refused") and "uri" not in error.facts:
                raise protocol.no_resource(request, _in_words(error)) from error
            raise

    async def get_prompt(self, request: McpRequest) -> Result:
        """Return the messages of a prompt. Raises Invalid for an unknown one."""
        return await resources.prompt(await self._caller(request), request.params)

    async def _caller(self, request: McpRequest) -> MethodCaller:
        """Return what calls methods for a request, once the working directory is known."""
        if not self._roots_known.is_set():
            waits_outside()
            with anyio.move_on_after(_ROOTS_SECONDS):
                await self._roots_known.wait()
        return MethodCaller(self._methods, request.call, self._directory)


Answer = Callable[[McpSession, McpRequest], Awaitable[Result]]


def _constant(member: str, name: str) -> Answer:
    """Return the answer that lists what ``declared.toml`` has under a name."""

    async def answer(_session: McpSession, _request: McpRequest) -> Result:
        """Return the list."""
        return {member: protocol.declaration(name)}

    return answer


async def _ping(_session: McpSession, _request: McpRequest) -> Result:
    """Return an empty result."""
    return {}


async def _discover(_session: McpSession, request: McpRequest) -> Result:
    """Return the server's name and capabilities."""
    return protocol.description(request)


_METHODS: Mapping[str, Answer] = {
    "notifications/memd/directory": McpSession.set_directory,
    "initialize": McpSession.initialize,
    "notifications/initialized": McpSession.ask_for_roots,
    "notifications/roots/list_changed": McpSession.ask_for_roots,
    "$/answer": McpSession.take_answer,
    "server/discover": _discover,
    "ping": _ping,
    "tools/list": _constant("tools", "tool"),
    "tools/call": McpSession.call_tool,
    "resources/list": McpSession.list_resources,
    "resources/templates/list": _constant("resourceTemplates", "template"),
    "resources/read": McpSession.read_resource,
    "prompts/list": _constant("prompts", "prompt"),
    "prompts/get": McpSession.get_prompt,
}


def handlers(methods: Mapping[str, Handler], home: str, find: FindProcess) -> dict[str, Handler]:
    """Return the handlers of the protocol's methods; ``methods`` are those of the daemon.

    ``home`` is the user's home directory, and ``find`` describes a process.
    """
    sessions: WeakKeyDictionary[Connection, McpSession] = WeakKeyDictionary()

    async def handle(name: str, answer: Answer, call: Call, params: dict[str, Any]) -> Result:
        """Answer a request in the form of its era."""
        request = protocol.read_request(name, call, params)
        session = sessions.get(call.connection)
        if session is None:
            session = sessions[call.connection] = McpSession(methods, home, find)
        if request.client:
            # The history stores the name of the client's program with its changes.
            client = f"mcp {request.client}"[:_NAME_CHARACTERS]
            call.connection.caller = replace(call.caller, client=client)
        if name in _MAY_NEED_ROOTS and await session.needs_roots(request):
            return protocol.finished(request, _ROOTS_NEEDED)
        return protocol.finished(request, await answer(session, request))

    return {name: partial(handle, name, answer) for name, answer in _METHODS.items()}


def _in_words(error: MemdError) -> str:
    """Return an error's sentence and what to do about it."""
    return f"{error}. {error.hint}." if error.hint else f"{error}."


def _path(uri: str) -> str:
    """Return the path of a file URI, "" for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    path = unquote(parts.path)
    return path if parts.scheme == "file" and "\0" not in path else ""

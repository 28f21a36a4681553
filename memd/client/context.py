"""A middleware for the Anthropic SDK that lets memd keep an agent's conversation small.

    keeper = Keeper(".", "session-1")
    model = Anthropic(middleware=[keeper])
    runner = model.beta.messages.tool_runner(..., tools=[..., keeper.reader_tool()])

memd stores large results of tools; a request has their beginning and the path of the whole, which
the model reads with the reader tool. The program's own messages are not changed. Needs the extra
``anthropic``; only this file and ``memory_tool`` use that library.

Rules of this file
- memd makes no request fail, changes none in place, and delays none by over 150 ms. Without an
  answer in time a request is sent with earlier decisions, and results without one are sent whole
  from then on.
- Each attempt at a request sends the same bytes, and a reply is passed on as it comes.
"""

import copy
import json
import operator
import os
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import anthropic
from anyio import CapacityLimiter, to_thread

from memd.client.errors import SdkTooOldError
from memd.client.planner import Planner
from memd.client.sent import ObservedReply, compacted, outlines
from memd.client.stored import USUAL_BYTES, read_stored
from memd.core.text import read_object

try:
    from anthropic import APIRequest, Middleware, beta_async_tool, beta_tool
    from anthropic.lib.tools import BetaAsyncFunctionTool, BetaFunctionTool, ToolError
except ImportError as missing:
    raise SdkTooOldError(anthropic.__version__) from missing

READER = "read_stored_result"
SECONDS = 0.1  # for memd's answer, of the 150 ms by which a request may be delayed
_CREATE, _COUNT = "/v1/messages", "/v1/messages/count_tokens"
_SELF_MANAGED = {"context_management", "thread"}  # with these the program shortens its context
_COMPACTION_SECONDS = 300.0
_BETAS = "anthropic-beta"
_OK = 200
_UNKNOWN = "no result of this session is stored there"

T = TypeVar("T")


class Keeper(Middleware):
    """One conversation of a program, which memd keeps small; for blocking and async clients.

    ``conversation`` names a sub-agent of the session. ``socket`` is the daemon's; by default it is
    that of the user's own daemon, which is started where none runs. ``reader`` names the tool with
    which the model reads files: nothing is stored for a request without this tool. ``model`` is the
    result of ``client.models.retrieve``, from which memd knows what the model can do.
    ``may_drop_thinking`` lets memd drop the thinking that a cleared result makes invalid. A request
    waits at most ``seconds`` for memd. ``plan`` is memd's last answer (docs/protocol.md:
    ``context.plan``).
    """

    def __init__(
        self,
        cwd: str,
        session_id: str,
        *,
        conversation: str = "",
        socket: str | None = None,
        reader: str = READER,
        model: Any = None,
        may_drop_thinking: bool = False,
        seconds: float = SECONDS,
    ) -> None:
        self.plan: Mapping[str, Any] = {}
        self._members: Mapping[str, Any] = {}
        self._session = {"cwd": os.path.abspath(cwd), "session_id": session_id}
        self._planner = Planner(socket, self._session)
        self._reader = reader
        self._given = {
            "conversation": conversation,
            "window": getattr(model, "max_input_tokens", None) or 0,
            "may_drop_thinking": may_drop_thinking,
        }
        self._supports = _supports(model)
        self._seconds = seconds
        self._can_read = False
        self._reply = ObservedReply(0)
        self._attempt: tuple[Any, Any, Sequence[str]] = (None, None, ())

    def handle(self, request: APIRequest, call_next: anthropic.CallNext) -> Any:
        """Send a request of a blocking client."""
        response = call_next(_tried(self._changed, request) or request)
        _tried(self._observe, request, response)
        return response

    async def handle_async(self, request: APIRequest, call_next: anthropic.AsyncCallNext) -> Any:
        """Send a request of an async client."""
        # A limiter of its own, since the program's worker threads may all be busy.
        changing = partial(_tried, self._changed, request)
        changed = await to_thread.run_sync(changing, limiter=CapacityLimiter(1))
        response = await call_next(changed or request)
        _tried(self._observe, request, response)
        return response

    def reader_tool(self) -> BetaFunctionTool[Any]:
        """Return the tool that reads stored results; ``to_dict`` and ``call`` serve other loops."""
        return beta_tool(self.read, name=self._reader)

    def async_reader_tool(self) -> BetaAsyncFunctionTool[Any]:
        """Return the tool for the runner of an async client."""

        async def read(path: str, offset: int = 0, limit: int = USUAL_BYTES) -> str:
            """Read a stored result in a worker thread."""
            return await to_thread.run_sync(self.read, path, offset, limit)

        same = self.reader_tool()
        return beta_async_tool(
            read,
            name=same.name,
            description=same.description,
            input_schema=same.input_schema,
        )

    def read(self, path: str, offset: int = 0, limit: int = USUAL_BYTES) -> str:
        """Read a part of a tool result that was too long to be shown and was stored instead.

        Args:
            path: The path, as the shortened result gives it.
            offset: The byte to begin at.
            limit: How many bytes to read, 40000 at most.
        """
        decisions = list(self._planner.sent.decisions.values())
        if not path or path not in (decision["path"] for decision in decisions):
            raise ToolError(_UNKNOWN)
        try:
            return read_stored(path, offset, limit)
        except OSError as error:
            raise ToolError(str(error)) from error

    def after_turn(self, runner: Any) -> bool:
        """Let a tool runner compact its conversation if that is due, and return whether it will.

        Call it in the loop over the runner. It is never due for a model without compaction.
        """
        compact = self.plan.get("compact") or {}
        due = compact.get("due") is True and "compaction" in self._supports
        if due:
            self.plan = {}
            runner.compact_before_next_turn()
        return due

    def compacted(self, messages: Sequence[Any], **given: Any) -> list[Any]:
        """Return a shortened conversation, or the same where no strategy helps.

        It is for programs with a loop of their own, and may take minutes. ``given`` are further
        parameters of ``context.compact`` (docs/protocol.md). Raises RemoteError,
        AnswerTimeoutError and DaemonUnavailableError.
        """
        plain = json.loads(json.dumps(messages, default=_as_sent))
        params = {
            **self._session,
            "conversation": self._given["conversation"],
            "messages": outlines(self._planner.sent.applied(plain)),
            "skip": ["api"],  # for which the program itself would have to send a request
            **given,
        }
        with self._planner.connected() as client:
            answer = client.call("context.compact", params, _COMPACTION_SECONDS)
        return compacted(messages, answer) if answer["strategy"] else list(messages)

    def dump(self) -> dict[str, Any]:
        """Return the state with which another process sends the same bytes, as JSON values."""
        decisions = list(self._planner.sent.decisions.values())
        return {"decisions": decisions, "request": dict(self._members)}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore what ``dump`` returned, in the same session or in a fork of it."""
        self._planner.sent.learn(dumped["decisions"], unreported=True)
        self._members = dict(dumped["request"])

    def _changed(self, request: APIRequest) -> APIRequest:
        """Return a changed copy of a request, or the request itself where nothing changes.

        Further attempts at the same request get the same body.
        """
        body: Any = request.json
        attempt = self._attempt
        if attempt[0] is not body:
            attempt = self._attempt = body, *self._edited(request, body)
        _, edited, betas = attempt
        return request if edited is body else _copied(request, edited, betas)

    def _edited(self, request: APIRequest, body: Any) -> tuple[Any, Sequence[str]]:
        """Return the body to send, and the betas that it needs; ``body`` where nothing changes."""
        path, more = request.url.partition("?")[0], request.options.extra_json or {}
        if path not in (_CREATE, _COUNT) or "messages" in more:
            return body, ()
        messages, whole = body["messages"], {**body, **more}
        plans = path == _CREATE and "compaction" not in whole
        answer = _tried(self._planned, whole, _betas(request))
        if answer is None:  # undecided results are sent whole now, so they stay whole
            self._planner.sent.freeze(messages)
        elif plans:
            self.plan, self._members = answer, answer["request"]
        # Members that memd added to earlier requests are repeated, so that the prompt stays equal.
        members = dict(self._members) if plans and _SELF_MANAGED.isdisjoint(whole) else {}
        betas = members.pop("betas", ())
        sent = self._planner.sent.applied(messages)
        if not members and all(map(operator.is_, sent, messages)):
            return body, ()
        return {**body, **members, "messages": sent}, betas

    def _planned(self, body: Mapping[str, Any], betas: Sequence[str]) -> Mapping[str, Any]:
        """Have memd decide about new messages, and return its answer. Raises anything."""
        until = time.monotonic() + self._seconds
        messages, tools = body["messages"], body.get("tools")
        if tools is not None:  # a later request of a thread has the tools of its first one
            self._can_read = any(tool.get("name") == self._reader for tool in tools)
        reader = self._reader if self._can_read else ""
        if body.get("thread"):
            # The server has the earlier messages, so memd cannot plan the whole conversation.
            self._planner.store(messages, reader, self._reply.calls, until)
            return {"request": {}}
        thinks = (body.get("thinking") or {}).get("type", "disabled") != "disabled"
        used = {"managed": body.get("context_management"), "thinking": thinks}
        supports = [*self._supports, *(name for name, value in used.items() if value)]
        newest = self._reply if self._reply.is_last_of(messages) else ObservedReply(0)
        given = {
            **self._given,
            "model": body["model"],
            "system": body.get("system"),
            "tools": tools,
            "betas": betas,
            "usage": newest.usage or None,
            "diagnostics": newest.diagnostics,
            "reader": reader,
            "supports": supports,
        }
        return self._planner.plan(messages, given, until)

    def _observe(self, request: APIRequest, response: Any) -> None:
        """Read usage and tool calls from a reply, at once or while the program reads it."""
        body: Any = request.json
        http = response.http_response
        if http.status_code == _OK and request.url.partition("?")[0] == _CREATE:
            self._reply = ObservedReply(len(body["messages"]), self._reply.calls)
            if http.is_closed:
                self._reply.take(read_object(http.content))
            else:
                _observe_stream(http, self._reply)


def _tried(work: Callable[..., T], *arguments: Any) -> T | None:
    """Return the result of ``work``, ``None`` where it fails."""
    try:
        return work(*arguments)
    except Exception:  # noqa: BLE001 - the edge: whatever is wrong here, the request is sent
        return None


def _observe_stream(http: Any, reply: ObservedReply) -> None:
    """Pass the bytes of a streamed response to ``reply`` as well, when the SDK reads them.

    It replaces the two methods with which every version of the SDK reads decoded bytes; they yield
    the same bytes as before.
    """
    # A weak reference: otherwise a response that is dropped half-read would not be closed at once.
    response = weakref.ref(http)

    def passed(chunk_size: int | None = None) -> Iterator[bytes]:
        """Yield the chunks of the response, and feed them to the reply."""
        for chunk in type(http).iter_bytes(response(), chunk_size):
            reply.feed(chunk)
            yield chunk

    async def passed_async(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """Yield the chunks of the response, and feed them to the reply."""
        async for chunk in type(http).aiter_bytes(response(), chunk_size):
            reply.feed(chunk)
            yield chunk

    http.iter_bytes, http.aiter_bytes = passed, passed_async


def _copied(request: APIRequest, body: Any, betas: Sequence[str]) -> APIRequest:
    """Return a copy of a request with another body and further betas."""
    # Not the request's own copy(), which copies each block of a long history.
    changed = copy.copy(request)
    named = _betas(request)
    headers = {name: value for name, value in request.headers.items() if name.lower() != _BETAS}
    if all_betas := [*named, *(beta for beta in betas if beta not in named)]:
        headers[_BETAS] = ",".join(all_betas)
    changed.options = request.options.model_copy(update={"json_data": body, "headers": headers})
    return changed


def _betas(request: APIRequest) -> list[str]:
    """Return the beta features that a request names in its headers."""
    values = [value for name, value in request.headers.items() if name.lower() == _BETAS]
    named = ",".join(value for value in values if isinstance(value, str))
    return [beta for beta in named.split(",") if beta]


def _supports(model: Any) -> frozenset[str]:
    """Return the features that memd uses and the API lists for a model."""
    listed = getattr(model, "capabilities", None)
    names = ("context_management", "compaction")
    return frozenset(n for n in names if getattr(getattr(listed, n, None), "supported", False))


def _as_sent(value: Any) -> Any:
    """Return an SDK object as a request contains it. Raises AttributeError for anything else."""
    return value.model_dump(mode="json", exclude_unset=True)

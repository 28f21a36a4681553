"""A middleware for the Anthropic SDK: memd's whole memory for one conversation of a program.

    keeper = Keeper(".", "session-1")
    model = Anthropic(middleware=[keeper])
    runner = model.beta.messages.tool_runner(..., tools=[..., keeper.reader_tool()])

- The first request has the memory section in its system prompt, and each later one the same bytes.
- A prompt has the memories that matter for it, in its own message.
- Large results of tools are stored; a request has their beginning and the path of the whole, which
  the model reads with the reader tool.
- After a turn memd takes notes and extracts memories, in a thread, with the request as it was sent.
- Where the window is nearly full the notes take the place of what they cover.

Needs the extra ``anthropic``; only this file and ``memory_tool`` use that library.

Rules of this file
- memd makes no request fail, changes none in place, and delays none by over 150 ms. Without an
  answer in time a request is sent with earlier decisions, and results without one are sent whole
  from then on.
- Each attempt at a request sends the same bytes, and a reply is passed on as it comes.
- What a server or the program itself shortens (``thread``, ``context_management``) gets no more
  than stored results.
"""

import copy
import json
import operator
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import anthropic
from anyio import CapacityLimiter, to_thread

from memd.base.extras import install_command
from memd.base.text import read_object
from memd.client.memory import (
    BackgroundWork,
    BroughtMemories,
    EndedTurn,
    learning_params,
    with_names,
    without_name,
)
from memd.client.planner import Planner
from memd.client.reply import ObservedReply, observe_stream
from memd.client.sent import apply_compaction, outlines_in_frame
from memd.client.stored import USUAL_BYTES, read_stored

try:
    from anthropic import APIRequest, Middleware, beta_async_tool, beta_tool
    from anthropic.lib.tools import BetaAsyncFunctionTool, BetaFunctionTool, ToolError
except ImportError as missing:
    sentence = f"anthropic {anthropic.__version__} has no middleware"
    raise ImportError(f"{sentence}; {install_command('anthropic')}") from missing

READER = "read_stored_result"
SECONDS = 0.1  # for memd's answer, of the 150 ms by which a request may be delayed
_CREATE_PATH, _COUNT_PATH = "/v1/messages", "/v1/messages/count_tokens"
# Members of a request with which the program shortens its context itself.
_SELF_MANAGED = {"context_management", "thread"}
_COMPACTION = "compaction"  # the member of a request, and the feature of a model
_COMPACTION_SECONDS = 300.0
_LEARNING_SECONDS = 5.0  # for memd to take an ended turn
_NOTES_SECONDS = 15.0  # that a compaction waits until memd has the last turn
_RUNNER_SECONDS = 2.0  # for a compaction by notes in the loop over a tool runner
_BETA_HEADER = "anthropic-beta"
_OK = 200
_NO_SUCH_RESULT = "no result of this session is stored there"

T = TypeVar("T")


class Keeper(Middleware):
    """The memory of one conversation of a program; for blocking and async clients.

    ``prompt`` (the memory section), ``recall`` (memories with a prompt), ``context`` (large results
    and the window), ``extract`` and ``notes`` (after a turn) are its parts, each with its switch.
    ``conversation`` names a sub-agent of the session, whose conversation is neither learnt from nor
    compacted. ``socket`` is the daemon's; by default it is
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
        prompt: bool = True,
        recall: bool = True,
        context: bool = True,
        extract: bool = True,
        notes: bool = True,
        socket: str | None = None,
        reader: str = READER,
        model: Any = None,
        may_drop_thinking: bool = False,
        seconds: float = SECONDS,
    ) -> None:
        self.plan: Mapping[str, Any] = {}
        # Members that memd's plans add to requests, and the betas that they need; None before the
        # first plan.
        self._added_members: Mapping[str, Any] | None = None
        self._baseline: Any = None  # of the last plan
        self._session = {"cwd": os.path.abspath(cwd), "session_id": session_id}
        self._planner = Planner(socket, self._session)
        # A sub-agent has a context of its own, so that it may need what the session has been given.
        name = f"{session_id}/{conversation}" if conversation else session_id
        reading = {**self._session, "session_id": name}
        self._memories = BroughtMemories(self._planner.call, reading, prompt=prompt, recall=recall)
        methods = {"notes.update": notes, "extract": extract}  # in this order
        is_main = not conversation
        self._learning_methods = [name for name, is_on in methods.items() if is_on and is_main]
        self._ended_turns = BackgroundWork[EndedTurn](partial(_result_or_none, self._learn))
        self._plans = context
        self._reader = reader  # the name of the tool
        self._fixed_params = {  # parameters of ``context.plan`` that never change
            "conversation": conversation,
            "window": getattr(model, "max_input_tokens", None) or 0,
            "may_drop_thinking": may_drop_thinking,
        }
        self._features = _features(model)
        self._seconds = seconds  # for memd's answer to one request
        self._thinks = False  # whether the model may think in the reply to the last request
        self._has_reader = False  # whether the last request with tools has the reader tool
        self._reply = ObservedReply(0)  # the newest
        self._replied_at: float | None = None  # when it came, in monotonic seconds
        # The body of the last request as the program made it, the body that was sent in its place,
        # and the betas of that.
        self._attempt: tuple[Any, Any, Sequence[str]] = (None, None, ())
        threading.Thread(target=_result_or_none, args=(self._prepare,), daemon=True).start()

    def handle(self, request: APIRequest, call_next: anthropic.CallNext) -> Any:
        """Send a request of a blocking client."""
        sent = _result_or_none(self._request_to_send, request) or request
        response = call_next(sent)
        _result_or_none(self._observe, request, sent, response)
        return response

    async def handle_async(self, request: APIRequest, call_next: anthropic.AsyncCallNext) -> Any:
        """Send a request of an async client."""
        # A limiter of its own, since the program's worker threads may all be busy.
        change = partial(_result_or_none, self._request_to_send, request)
        sent = await to_thread.run_sync(change, limiter=CapacityLimiter(1)) or request
        response = await call_next(sent)
        _result_or_none(self._observe, request, sent, response)
        return response

    def reader_tool(self) -> BetaFunctionTool[Any]:
        """Return the tool that reads stored results; ``to_dict`` and ``call`` serve other loops."""
        return beta_tool(self.read, name=self._reader)

    def async_reader_tool(self) -> BetaAsyncFunctionTool[Any]:
        """Return the tool for the runner of an async client."""

        async def read(path: str, offset: int = 0, limit: int = USUAL_BYTES) -> str:
            """Read a stored result in a worker thread."""
            return await to_thread.run_sync(self.read, path, offset, limit)

        tool = self.reader_tool()
        return beta_async_tool(
            read,
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
        )

    def read(self, path: str, offset: int = 0, limit: int = USUAL_BYTES) -> str:
        """Read a part of a tool result that was too long to be shown and was stored instead.

        Args:
            path: The path, as the shortened result gives it.
            offset: The byte to begin at.
            limit: How many bytes to read, 40000 at most.
        """
        decisions = list(self._planner.sent.decisions.values())
        stored_paths = [decision["path"] for decision in decisions if decision["path"]]
        if path not in stored_paths:
            raise ToolError(_NO_SUCH_RESULT)
        try:
            return read_stored(path, offset, limit)
        except OSError as error:
            raise ToolError(str(error)) from error

    def after_turn(self, runner: Any) -> bool:
        """Make a tool runner's conversation short if that is due, and return whether it will be.

        Call it in the loop over the runner. The session's notes take the place of what they cover;
        where they do not help, the API compacts, for a model that can.
        """
        compact = self.plan.get("compact") or {}
        if compact.get("due") is not True:
            return False
        self.plan = {}  # so that it is not due again before memd's next answer
        # What the model thought in the reply under way is valid only behind the same messages.
        if not self._thinks and _result_or_none(self._compact_by_notes, runner):
            return True
        if _COMPACTION in self._features:
            runner.compact_before_next_turn()
            return True
        return False

    def compacted(self, messages: Sequence[Any], **more_params: Any) -> list[Any]:
        """Return a shortened conversation, or the same where no strategy helps.

        It is for programs with a loop of their own, and may take minutes: the session's notes take
        the place of what they cover, without a call of a model, or else memd's model sums up.
        ``more_params`` are further parameters of ``context.compact`` (docs/protocol.md).
        """
        # Without the strategy for which the program itself would have to send a request.
        more_params = {"skip": ["api"], **more_params}
        compact = partial(self._compacted, messages, more_params, _COMPACTION_SECONDS)
        return _result_or_none(compact) or list(messages)

    def dump(self) -> dict[str, Any]:
        """Return the state with which another process sends the same bytes, as JSON values."""
        decisions = list(self._planner.sent.decisions.values())
        return {
            "decisions": decisions,
            "request": self._added_members,
            "section": self._memories.section,
            "memories": dict(self._memories.prompts),
        }

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore what ``dump`` returned, in the same session or in a fork of it."""
        self._planner.sent.add_decisions(dumped["decisions"])
        self._added_members = dumped["request"]
        self._memories.section = dumped["section"]
        self._memories.prompts |= dumped["memories"]

    def _prepare(self) -> None:
        """Start a daemon if none runs, and load the memory section. Raises anything."""
        with self._planner.new_client(start=True) as client:
            self._memories.load_early(client.call)

    def _compact_by_notes(self, runner: Any) -> bool:
        """Put a runner's notes in the place of what they cover, if that helps. Raises anything."""
        shorter: list[Any] | None = None

        def with_shorter(params: dict[str, Any]) -> dict[str, Any]:
            nonlocal shorter
            by_notes = {"strategy": "notes", "wait": False}
            shorter = self._compacted(params["messages"], by_notes, _RUNNER_SECONDS)
            return {**params, "messages": shorter} if shorter else params

        runner.set_messages_params(with_shorter)
        return shorter is not None

    def _compacted(
        self, messages: Sequence[Any], more_params: Mapping[str, Any], seconds: float
    ) -> list[Any] | None:
        """Return a shortened conversation, ``None`` where nothing helps. Raises MemdError."""
        plain_messages = json.loads(json.dumps(messages, default=_as_sent))
        self._ended_turns.wait(min(seconds, _NOTES_SECONDS))  # so that notes know the last turn
        sent = self._planner.sent.with_replacements(self._memories.in_messages(plain_messages))
        params = {
            **self._session,
            "conversation": self._fixed_params["conversation"],
            "messages": outlines_in_frame(with_names(sent, plain_messages)),
            **more_params,
        }
        with self._planner.new_client() as client:
            answer = client.call("context.compact", params, seconds)
        if not answer["strategy"]:
            return None
        self._memories.is_compacted = True
        new_messages = [without_name(message) for message in answer["messages"]]
        return apply_compaction(messages, {**answer, "messages": new_messages})

    def _request_to_send(self, request: APIRequest) -> APIRequest:
        """Return a changed copy of a request, or the request itself where nothing changes.

        Further attempts at the same request get the same body.
        """
        body: Any = request.json
        original_body, new_body, betas = self._attempt
        if original_body is not body:
            new_body, betas = self._body_to_send(request, body)
            self._attempt = body, new_body, betas
        return request if new_body is body else _request_with_body(request, new_body, betas)

    def _body_to_send(self, request: APIRequest, body: Any) -> tuple[Any, Sequence[str]]:
        """Return the body to send, and the betas that it needs; ``body`` where nothing changes.

        ``extra_json`` of a request are members that the SDK adds to the body when it sends it.
        """
        path, extra = request.url.partition("?")[0], request.options.extra_json or {}
        if path not in (_CREATE_PATH, _COUNT_PATH) or "messages" in extra:
            return body, ()
        full_body, deadline = {**body, **extra}, time.monotonic() + self._seconds
        is_turn = path == _CREATE_PATH and _COMPACTION not in full_body
        may_add = _SELF_MANAGED.isdisjoint(full_body)
        _result_or_none(self._memories.load_section, deadline, asks=may_add)
        if is_turn:
            _result_or_none(self._memories.recall, body["messages"], deadline, asks=may_add)
        # Of a thread the server has the earlier messages, as they were sent.
        new_body = body if full_body.get("thread") else self._memories.in_body(body)
        if self._plans:
            planned_body = {**new_body, **extra}
            answer = _result_or_none(self._ask_for_plan, planned_body, _betas(request), deadline)
            self._take_plan(answer, new_body["messages"], is_turn=is_turn)
        # Members that memd added to earlier requests are repeated, so that the prompt stays equal.
        members = dict(self._added_members or {}) if is_turn and may_add else {}
        betas = members.pop("betas", ())
        messages = self._planner.sent.with_replacements(new_body["messages"])
        if not members and all(map(operator.is_, messages, new_body["messages"])):
            return new_body, ()
        return {**new_body, **members, "messages": messages}, betas

    def _take_plan(
        self, answer: Mapping[str, Any] | None, messages: Sequence[Any], *, is_turn: bool
    ) -> None:
        """Remember memd's plan for the messages of a request, ``None`` where there is none."""
        if answer is None:  # undecided results are sent whole now, so they stay whole
            self._planner.sent.freeze(messages)
            self._baseline = None
        elif is_turn:
            self.plan, self._added_members = answer, answer["request"]
            self._baseline = answer.get("baseline")

    def _ask_for_plan(
        self, body: Mapping[str, Any], betas: Sequence[str], deadline: float
    ) -> Mapping[str, Any]:
        """Have memd decide about new messages, and return its answer. Raises anything."""
        messages, tools = body["messages"], body.get("tools")
        if tools is not None:  # a later request of a thread has the tools of its first one
            self._has_reader = any(tool.get("name") == self._reader for tool in tools)
        reader = self._reader if self._has_reader else ""
        if body.get("thread"):
            # The server has the earlier messages, so memd cannot plan the whole conversation.
            self._planner.store(messages, reader, self._reply.calls, deadline)
            return {"request": {}}
        supports = [*self._features]
        if body.get("context_management"):
            supports.append("managed")
        self._thinks = (body.get("thinking") or {}).get("type", "disabled") != "disabled"
        if self._thinks:
            supports.append("thinking")
        reply = self._reply if self._reply.is_last_of(messages) else ObservedReply(0)
        replied_at = time.monotonic() if self._replied_at is None else self._replied_at
        plan_params = {
            **self._fixed_params,
            "model": body["model"],
            "system": body.get("system"),
            "tools": tools,
            "betas": betas,
            "usage": reply.usage or None,
            "diagnostics": reply.diagnostics,
            "reader": reader,
            "supports": supports,
            "idle_seconds": time.monotonic() - replied_at,
            "request": self._added_members,
            "baseline": self._baseline,
        }
        answer = self._planner.plan(messages, plan_params, deadline)
        return {**answer, "request": dict(answer["request"])}

    def _observe(self, request: APIRequest, sent: APIRequest, response: Any) -> None:
        """Read a reply, at once or while the program reads it, and learn of the turn it ends.

        ``sent`` is what was sent in the place of the program's ``request``.
        """
        http = response.http_response
        if http.status_code != _OK or request.url.partition("?")[0] != _CREATE_PATH:
            return
        body: Any = request.json
        sent_body: Any = sent.json
        reply = self._reply = ObservedReply(len(body["messages"]), self._reply.calls)
        self._replied_at = time.monotonic()
        ended = partial(self._reply_ended, body, sent_body, request.options.extra_json or {}, reply)
        if http.is_closed:
            reply.take(read_object(http.content))
            ended()
        else:
            observe_stream(
                http, lambda data: _result_or_none(reply.feed, data) and _result_or_none(ended)
            )

    def _reply_ended(
        self, body: Any, sent_body: Any, extra: Mapping[str, Any], reply: ObservedReply
    ) -> None:
        """Have memd learn of a turn if it ends with a reply."""
        full_body: dict[str, Any] = {**sent_body, **extra}
        if _COMPACTION in full_body:
            self._memories.is_compacted = True
        message = reply.end_of_turn()
        is_own = _SELF_MANAGED.isdisjoint([*body, *extra]) and _COMPACTION not in full_body
        if message is not None and is_own and self._learning_methods:
            self._ended_turns.give(EndedTurn(full_body, body["messages"], message, reply.usage))

    def _learn(self, turn: EndedTurn) -> None:
        """Have memd take notes of a turn and extract memories from it. Raises anything."""
        params = {**self._session, **learning_params(turn)}
        with self._planner.new_client(start=True) as client:
            deadline = time.monotonic() + _LEARNING_SECONDS
            for method in self._learning_methods:
                seconds = max(deadline - time.monotonic(), 0)
                _result_or_none(client.call, method, params, seconds)


def _result_or_none(work: Callable[..., T], *arguments: Any, **named: Any) -> T | None:
    """Call ``work`` and return its result, ``None`` if it raises anything."""
    try:
        return work(*arguments, **named)
    except Exception:  # noqa: BLE001 - the edge: whatever is wrong here, the request is sent
        return None


def _request_with_body(request: APIRequest, body: Any, betas: Sequence[str]) -> APIRequest:
    """Return a copy of a request with another body and further betas."""
    # Not the request's own copy(), which copies each block of a long history.
    changed = copy.copy(request)
    named = _betas(request)
    headers = {
        name: value for name, value in request.headers.items() if name.lower() != _BETA_HEADER
    }
    if all_betas := [*named, *(beta for beta in betas if beta not in named)]:
        headers[_BETA_HEADER] = ",".join(all_betas)
    changed.options = request.options.model_copy(update={"json_data": body, "headers": headers})
    return changed


def _betas(request: APIRequest) -> list[str]:
    """Return the beta features that a request names in its headers."""
    values = [value for name, value in request.headers.items() if name.lower() == _BETA_HEADER]
    named = ",".join(value for value in values if isinstance(value, str))
    return [beta for beta in named.split(",") if beta]


def _features(model: Any) -> frozenset[str]:
    """Return the features that memd uses and the API lists for a model, none without a model."""
    capabilities = getattr(model, "capabilities", None)
    features = set()
    for name in ("context_management", _COMPACTION):
        capability = getattr(capabilities, name, None)
        if getattr(capability, "supported", False):
            features.add(name)
    return frozenset(features)


def _as_sent(value: Any) -> Any:
    """Return an SDK object as a request contains it. Raises AttributeError for anything else."""
    return value.model_dump(mode="json", exclude_unset=True)

"""A scripted server that speaks the Anthropic Messages API over real HTTP, for tests.

    with messages_server([text("hello"), Failure(529)]) as server:
        ...  # give server.url to a client as its base URL
        assert server.messages[0].json["model"] == "claude-haiku-5-5"

It listens on loopback alone, counts tokens and caches prompts as the API documents it
(``messages_cache``), refuses what the API refuses (``messages_checks``) and keeps every request
with its exact bytes. ``memd-testing-server --help`` tells of the command.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from tests.support.messages_bound import COMPACTION, bound, compaction, signed
from tests.support.messages_cache import PromptCache, count, minimum
from tests.support.messages_checks import COMPACT_BETA, refused
from tests.support.messages_connection import MessagesListener, ReplyBody
from tests.support.messages_edits import shown
from tests.support.messages_gate import ReplyGate
from tests.support.messages_memory import ServerMemory
from tests.support.messages_replies import (
    dump,
    error_event,
    events,
    failure_body,
    finished,
    message,
)
from tests.support.messages_request import ReceivedMessage as ReceivedMessage
from tests.support.messages_steps import Answer, Script, Step, Whole
from tests.support.messages_steps import Cut as Cut
from tests.support.messages_steps import Drip as Drip
from tests.support.messages_steps import Failure as Failure
from tests.support.messages_steps import Hang as Hang
from tests.support.messages_steps import Interrupt as Interrupt
from tests.support.messages_steps import Raw as Raw
from tests.support.messages_steps import ScriptedReply as ScriptedReply
from tests.support.messages_steps import error_with_200 as error_with_200
from tests.support.messages_steps import html as html
from tests.support.messages_steps import refusal as refusal
from tests.support.messages_steps import structured as structured
from tests.support.messages_steps import text as text
from tests.support.messages_steps import thinking as thinking
from tests.support.messages_steps import too_long as too_long
from tests.support.messages_steps import tools as tools

MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
MOST_BYTES = 32 * 1024 * 1024  # of one request, as the API has it
_JSON = {"Content-Type": "application/json"}
_EVENTS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_SCRIPT_IS_OVER = Failure(418, "the script has no more steps", "script_is_over")


class MessagesServer:
    """The server's answers and its memory; ``messages_server`` makes one that listens.

    ``script`` is one answer for ever, a list of answers for POST /v1/messages in order of
    arrival, or a list that holds functions. An answer is a step or a function of the request that
    returns one. A list that is used up answers 418.
    ``without`` names what this server does not know: members of the request at any depth (answered
    with 400), ``stream``, ``count_tokens`` and ``models`` (answered with 404).
    ``keys`` are the credentials that are let in (any, when ``None``), given in one of ``schemes``.
    ``window`` bounds a prompt in tokens. ``least`` is the shortest prefix in tokens that is cached
    (the model family's own when ``None``), ``now`` the cache's clock in seconds. ``counting``
    answers count_tokens instead of a count. ``on_end`` is called with each request that has ended.
    """

    def __init__(
        self,
        script: Script,
        *,
        without: Collection[str] = (),
        keys: Collection[str] | None = None,
        schemes: Collection[str] = ("bearer", "x-api-key"),
        window: int | None = None,
        least: int | None = None,
        now: Callable[[], float] = time.time,
        models: Sequence[str] = MODELS,
        counting: Answer | None = None,
        on_end: Callable[[ReceivedMessage], None] = lambda _: None,
    ) -> None:
        self.url = ""  # set once it listens
        self.requests: list[ReceivedMessage] = []  # in order of arrival
        self.gate = ReplyGate()
        self.on_end = on_end
        self._script = script
        self.without = frozenset(without)
        self._keys = keys
        self._schemes = schemes
        self._window = window
        self._cache = PromptCache(now, minimum if least is None else lambda _: least)
        self._memory = ServerMemory(now)
        self._models = models
        self._counting = counting
        self._used_steps = 0  # of a script that is a list
        self._changed = threading.Condition()  # guards the requests and the used steps

    @property
    def messages(self) -> list[ReceivedMessage]:
        """The requests to POST /v1/messages, in order of arrival."""
        return [r for r in self.requests if (r.method, r.route) == ("POST", "/v1/messages")]

    @property
    def usage(self) -> dict[str, int]:
        """The tokens of all answers together, by the API's names."""
        total: dict[str, int] = {}
        for request in list(self.requests):
            for name, tokens in request.usage.items():
                if isinstance(tokens, int):
                    total[name] = total.get(name, 0) + tokens
        return total

    @property
    def hit_rate(self) -> float:
        """The share of all input tokens that was read from the cache, 0 where there was none."""
        usage = self.usage
        read = usage.get("cache_read_input_tokens", 0)
        created = usage.get("cache_creation_input_tokens", 0)
        return read / (read + created + usage.get("input_tokens", 0) or 1)

    def release(self, times: int = 1) -> None:
        """Let so many waits of ``Hang`` and ``Drip`` go on, now or when they come."""
        self.gate.release(times)

    def wait_for(self, requests: int, seconds: float = 60.0) -> bool:
        """Return whether so many requests of any kind have come in so many seconds. Blocks."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= requests, seconds)

    def receive(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> ReceivedMessage:
        """Record a request."""
        with self._changed:
            request = ReceivedMessage(len(self.requests) + 1, method, path, headers, body)
            self.requests.append(request)
            self._changed.notify_all()
        return request

    def decide(self, request: ReceivedMessage) -> Step:
        """Return what a request gets."""
        if not self.let_in(request):
            return Failure(401)
        if len(request.body) > MOST_BYTES:
            return Failure(413)
        match request.method, request.route:
            case "POST", "/v1/messages":
                failure = self._check(request, request.json, self._window)
                return failure or self.next_step(request)
            case "POST", "/v1/messages/count_tokens" if "count_tokens" not in self.without:
                return self._count(request)
            case "GET", route if "models" not in self.without:
                return self._list_models(route)
        return Failure(404)

    def render(self, request: ReceivedMessage, step: Whole) -> ReplyBody:
        """Return a step as bytes; the prompt cache is asked when the reply begins."""
        request_id = f"req_{request.number:06}"
        id_header = {"Request-Id": request_id}
        if isinstance(step, Raw):
            headers = {**id_header, "Content-Type": step.content_type, **step.headers}
            return ReplyBody(step.status, headers, (step.body,))
        is_streamed = bool(request.members.get("stream"))
        if isinstance(step, Interrupt) and not is_streamed:
            step = step.failure
        if isinstance(step, Failure):
            retry = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
            headers = {**id_header, **_JSON, **retry, **step.headers}
            return ReplyBody(step.status, headers, (failure_body(step, request_id),))
        reply = step.step if isinstance(step, Interrupt) else step
        reply_message = self._message(request, reply)
        if not is_streamed:
            return ReplyBody(200, {**id_header, **_JSON}, (dump(reply_message),))
        pieces = tuple(events(reply_message))
        if isinstance(step, Interrupt):
            pieces = (*pieces[: step.events], error_event(step.failure, request_id))
        return ReplyBody(200, {**id_header, **_EVENTS}, pieces, streamed=True)

    def _check(
        self, request: ReceivedMessage, body: Any, window: int | None = None
    ) -> Failure | None:
        """Return why a request is refused, ``None`` if it is good.

        Then ``request.whole`` has all messages of its thread.
        """
        if isinstance(body, dict):
            body = self._memory.unrolled(body)
        if isinstance(body, Failure):
            return body
        request.whole = body
        return refused(body, without=self.without, window=window, betas=request.betas)

    def _message(self, request: ReceivedMessage, reply: ScriptedReply) -> dict[str, Any]:
        """Return the body of a reply, with usage, signatures and the reports of betas."""
        body, prompt = request.whole, shown(request.whole, request.betas)
        input_usage = self._cache.visit(prompt.body).usage()
        if body.get("compaction"):
            reply = _compacted(body, reply)
        else:
            reply = finished(reply, request.number, body["max_tokens"])
            reply = replace(reply, content=tuple(signed(body, reply.content)))
        result = {**message(reply, request.number, body["model"], input_usage), **prompt.report}
        if body.get("diagnostics") is not None:
            result["diagnostics"] = self._memory.diagnosis(body)
        if COMPACT_BETA in request.betas:
            result["usage"] = _iterated(result["usage"], reply)
        self._memory.remember(result["id"], body, result["content"])
        request.usage = result["usage"]
        return result

    def let_in(self, request: ReceivedMessage) -> bool:
        """Return whether a request has a key that counts."""
        if self._keys is None:
            return True
        scheme = "bearer" if "authorization" in request.headers else "x-api-key"
        return scheme in self._schemes and request.key in self._keys

    def next_step(self, request: ReceivedMessage) -> Step:
        """Return the script's next step."""
        answer = self._script
        if isinstance(answer, Sequence):
            with self._changed:
                index, self._used_steps = self._used_steps, self._used_steps + 1
            answer = answer[index] if index < len(answer) else _SCRIPT_IS_OVER
        return answer(request) if callable(answer) else answer

    def _count(self, request: ReceivedMessage) -> Step:
        """Return the reply to a request that counts tokens."""
        if self._counting is not None:
            return self._counting(request) if callable(self._counting) else self._counting
        # Such a request has no ``max_tokens``, which the checks need.
        failure = self._check(request, {"max_tokens": 1, **request.members})
        if failure is not None:
            return failure
        result: dict[str, Any] = {"input_tokens": count(shown(request.whole).body)}
        if request.whole.get("context_management") is not None:
            result["context_management"] = {"original_input_tokens": count(request.whole)}
        return Raw(dump(result))

    def _list_models(self, route: str) -> Step:
        """Return the reply to a request for all models or for one."""
        models = {name: _model(name, self._window) for name in self._models}
        if route == "/v1/models":
            ends = {"first_id": min(models, default=None), "last_id": max(models, default=None)}
            return Raw(dump({"data": list(models.values()), "has_more": False, **ends}))
        name = route.removeprefix("/v1/models/")
        return Raw(dump(models[name])) if name in models else Failure(404)


@contextmanager
def messages_server(
    script: Script, *, port: int = 0, kind: type[MessagesServer] | None = None, **options: Any
) -> Iterator[MessagesServer]:
    """Serve a script on loopback while the block runs; ``options`` are those of MessagesServer.

    ``kind`` is a class of servers in another form (``chat.py``). Every thread and socket ends with
    the block. Raises OSError when the port is taken.
    """
    server = (kind or MessagesServer)(script, **options)
    with MessagesListener(server, port) as listener:
        server.url = listener.url
        yield server


def _compacted(body: Mapping[str, Any], reply: ScriptedReply) -> ScriptedReply:
    """Return the answer to a request for a compaction: the reply's text as a signed block."""
    summary = "".join(str(block.get("text", "")) for block in reply.content)
    return replace(reply, content=(compaction(body, summary),), stop=COMPACTION)


def _iterated(usage: Mapping[str, Any], reply: ScriptedReply) -> dict[str, Any]:
    """Return a usage with its iterations; what a compaction cost stands there alone."""
    kind = COMPACTION if reply.stop == COMPACTION else "message"
    iterations = [{"type": kind, **usage}]
    if kind == COMPACTION:
        usage = {name: 0 for name, tokens in usage.items() if isinstance(tokens, int)}
    return {**usage, "iterations": iterations}


def _model(name: str, window: int | None) -> dict[str, Any]:
    """Return the facts of a model, as the API lists them."""
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": window or 200_000,
        "max_tokens": 64_000,
        "capabilities": _capabilities(name),
    }


def _capabilities(model: str) -> dict[str, Any]:
    """Return what a model can do, of that which this server does."""
    yes, edits = {"supported": True}, ("clear_thinking_20251015", "clear_tool_uses_20250919")
    kinds = dict.fromkeys(("adaptive", "between_tools", "disabled", "enabled"), yes)
    return {
        "compaction": {"supported": bound(model), "summarize": {"supported": bound(model)}},
        "context_management": {**yes, **dict.fromkeys(edits, yes)},
        "structured_outputs": yes,
        "thinking": {**yes, "types": kinds},
    }

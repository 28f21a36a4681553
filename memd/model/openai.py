"""A server of the OpenAI chat form as a Model: llama.cpp, LM Studio, vLLM, OpenRouter and others.

Rules of this file
- The rules of ``claude.py`` hold: the address that the user configured or nothing, no redirect, one
  POST that is read in full up to a bound, no credential in an error.
- It takes requests of text alone. What a server refuses of the form is left out once and for all.
- The HTTP library is imported in a worker thread at first use.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from memd.model import plain, probe, wire
from memd.model.endpoint import Endpoint
from memd.model.errors import ModelError, ModelRefusedError, ModelReplyError, SdkMissingError
from memd.model.http import CLOSE_SECONDS, IDLE_CONNECTIONS, cut, read
from memd.model.key_file import read_key
from memd.model.patient import overdue
from memd.model.port import Ask, Reply, Usage

if TYPE_CHECKING:
    import httpx2

_PATH = "/v1/chat/completions"
_MODELS_PATH = "/v1/models"
_FORM, _LENGTH, _LENGTH_NOW = "response_format", "max_tokens", "max_completion_tokens"
_STOPS = {"length": "max_tokens", "content_filter": "refusal"}


class ChatServer:
    """A server of the OpenAI chat form; one try for each request.

    ``problem`` is why the last request failed for good, in words; empty when it did not.
    """

    calls_tools = False

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.problem = ""
        self._client: httpx2.AsyncClient | None = None
        self._refused: frozenset[str] = frozenset()
        self._lock = anyio.Lock()

    @property
    def host(self) -> str:
        """The server's host and port."""
        return self.endpoint.host

    @property
    def source(self) -> str:
        """What named it."""
        return self.endpoint.source

    async def warm(self) -> None:
        """Load the library; what goes wrong is in ``problem``."""
        try:
            await self._connected()
        except ModelError as error:
            self.problem = error.sentence

    async def reach(self, seconds: float) -> ModelError | None:
        """Return why the server cannot be used, ``None`` when it answers; no model is asked."""
        try:
            with anyio.fail_after(seconds):
                answer = await self._sent("GET", _MODELS_PATH)
        except TimeoutError:
            return overdue(seconds)
        except ModelError as error:
            return error
        return wire.failure(answer, self._secrets) if answer.status in (401, 403) else None

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply within ``ask.seconds``. Raises ModelError."""
        try:
            with anyio.fail_after(ask.seconds):
                payload = await self._requested(ask)
        except TimeoutError:
            raise overdue(ask.seconds) from None
        except ModelError as error:
            self.problem = "" if error.retryable else error.sentence
            raise
        self.problem = ""
        usage = _usage(payload)
        if on_usage is not None:
            on_usage(usage)
        return _reply(payload, usage)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await client.aclose()

    async def _requested(self, ask: Ask) -> Any:
        while True:
            body = _body(ask, self._refused)
            answer = await self._sent("POST", _PATH, json.dumps(body).encode())
            error = wire.failure(answer, self._secrets)
            if error is None:
                return answer.payload
            left = [part for part in (_FORM, _LENGTH) if part in body]
            if not isinstance(error, ModelRefusedError) or answer.status not in probe.REFUSALS:
                raise error
            named = [part for part in left if part in error.sentence]
            if not named and _FORM not in left:
                raise error
            self._refused |= {*(named or (_FORM,))}

    async def _sent(self, method: str, path: str, body: bytes = b"") -> wire.HttpAnswer:
        client = await self._connected()
        import httpx2  # noqa: PLC0415 - loaded by now, in a thread

        try:
            request = client.build_request(method, f"{self.endpoint.base_url}{path}", content=body)
            response = await client.send(request, stream=True)
            answer = await read(response)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise cut(error) from None
        return wire.HttpAnswer(answer.status, answer.payload, wire.retry_after(response.headers))

    async def _connected(self) -> "httpx2.AsyncClient":
        async with self._lock:
            if self._client is None:
                self._client = await to_thread.run_sync(self._connect, abandon_on_cancel=True)
            return self._client

    def _connect(self) -> "httpx2.AsyncClient":
        """Return a client that sends the key. Blocks. Raises ModelNotConfiguredError."""
        try:
            import httpx2  # noqa: PLC0415 - in a thread, only where such a server is named
        except ImportError:  # pragma: no cover - as with the SDK
            raise SdkMissingError from None
        headers = {"Content-Type": "application/json"}
        if self._secrets:
            headers["Authorization"] = f"Bearer {self._secrets[0]}"
        remote = self.endpoint.base_url.startswith("https:")
        return httpx2.AsyncClient(
            headers=headers,
            follow_redirects=False,
            trust_env=remote,
            timeout=None,
            limits=httpx2.Limits(max_keepalive_connections=IDLE_CONNECTIONS),
        )

    @property
    def _secrets(self) -> tuple[str, ...]:
        given = self.endpoint.api_key or self.endpoint.auth_token
        if not given and self.endpoint.key_file:
            given = read_key(self.endpoint.key_file)
        return (given,) if given else ()


def _body(ask: Ask, refused: frozenset[str]) -> dict[str, Any]:
    in_form = ask.schema is not None and _FORM not in refused
    length = _LENGTH_NOW if _LENGTH in refused else _LENGTH
    body: dict[str, Any] = {
        "model": ask.model,
        "messages": plain.turns(ask, in_words=not in_form),
        length: ask.max_tokens,
        "stream": False,
    }
    if in_form:
        schema = {"name": "answer", "schema": ask.schema}
        body[_FORM] = {"type": "json_schema", "json_schema": schema}
    return body


def _reply(payload: Any, usage: Usage) -> Reply:
    """Return the reply that a body holds. Raises ModelReplyError."""
    selections = payload.get("choices") if isinstance(payload, dict) else None
    first = selections[0] if isinstance(selections, list) and selections else None
    message = first.get("message") if isinstance(first, dict) else None
    text = message.get("content") if isinstance(message, dict) else None
    if not isinstance(first, dict) or not isinstance(text, str):
        raise ModelReplyError(cause="it has no choice with a text")
    stop = _STOPS.get(str(first.get("finish_reason")), "end_turn")
    content = ({"type": "text", "text": text},)
    return Reply(text, (), stop, content, usage, str(payload.get("model", "")))


def _usage(payload: Any) -> Usage:
    counts = payload.get("usage") if isinstance(payload, dict) else None
    if not isinstance(counts, Mapping):
        return Usage()
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    read_anew = wire.usage({"usage": {"input_tokens": counts.get("prompt_tokens")}}).input
    named = {"output_tokens": counts.get("completion_tokens"), "cache_read_input_tokens": cached}
    rest = wire.usage({"usage": named})
    return Usage(max(read_anew - rest.cache_read, 0), rest.output, rest.cache_read)

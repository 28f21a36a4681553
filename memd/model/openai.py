"""Send requests to servers of OpenAI's chat API: llama.cpp, LM Studio, vLLM, OpenRouter and others.

Rules of this file
- The rules of ``claude.py`` hold: only the configured address, no redirect, one POST that is read
  in full up to a limit, no credential in an error.
- Requests are text only. A parameter that a server refused is not sent to it again.
- The HTTP library is imported in a worker thread at first use.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from msgspec.structs import replace

from memd.model import plain, probe, wire
from memd.model.endpoint import Endpoint
from memd.model.errors import ModelError, ModelRefusedError, ModelReplyError, SdkMissingError
from memd.model.http import CLOSE_SECONDS, IDLE_CONNECTIONS, connection_error, read
from memd.model.key_file import read_key
from memd.model.patient import overdue
from memd.model.port import Ask, Reply, Usage

if TYPE_CHECKING:
    import httpx2

_PATH = "/v1/chat/completions"
_MODELS_PATH = "/v1/models"
# Older servers only know the first name of the reply's length, newer models only the second.
_FORMAT, _LENGTH, _NEW_LENGTH = "response_format", "max_tokens", "max_completion_tokens"
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}  # in the Messages API's words


class ChatServer:
    """A server of OpenAI's chat API as a Model; it does not retry (``patient.py`` does).

    ``problem`` is the sentence why the last request failed for good, "" if it did not.
    """

    calls_tools = False

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.problem = ""
        self._client: httpx2.AsyncClient | None = None  # from the first request on
        self._refused_parameters: frozenset[str] = frozenset()  # not sent to this server again
        self._lock = anyio.Lock()  # so that only one client is created

    @property
    def host(self) -> str:
        """The server's host and port."""
        return self.endpoint.host

    @property
    def source(self) -> str:
        """The setting or variable that names the server or its key."""
        return self.endpoint.source

    async def warm(self) -> None:
        """Load the HTTP library and read the key; an error is stored in ``problem``."""
        try:
            await self._open_client()
        except ModelError as error:
            self.problem = error.sentence

    async def reach(self, seconds: float) -> ModelError | None:
        """Return the error if the server cannot be used, by listing its models.

        ``seconds`` limit the request and the loading of the library.
        """
        try:
            with anyio.fail_after(seconds):
                answer = await self._send("GET", _MODELS_PATH)
        except TimeoutError:
            return overdue(seconds)
        except ModelError as error:
            return error
        # Not every server has a list of models, so another status than these is no error.
        if answer.status not in wire.UNAUTHORISED:
            return None
        return wire.failure(answer, self._secrets)

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply of one try within ``ask.seconds``. Raises ModelError."""
        try:
            with anyio.fail_after(ask.seconds):
                payload = await self._request(ask)
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
        """Close the connections, waiting at most ``CLOSE_SECONDS``."""
        client, self._client = self._client, None
        if client is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await client.aclose()

    async def _request(self, ask: Ask) -> Any:
        """Return the response's body; send again without the parameters that the server refuses.

        Raises ModelError.
        """
        while True:
            body = _body(ask, self._refused_parameters)
            answer = await self._send("POST", _PATH, json.dumps(body).encode())
            error = wire.failure(answer, self._secrets)
            if error is None:
                return answer.payload
            if not isinstance(error, ModelRefusedError) or answer.status not in probe.REFUSALS:
                raise error
            parameters = [name for name in (_FORMAT, _LENGTH) if name in body]
            named = [name for name in parameters if name in error.sentence]
            if not named and _FORMAT not in parameters:
                raise error
            # A refusal without a name is most likely about the format, which few servers know.
            self._refused_parameters |= frozenset(named or (_FORMAT,))

    async def _send(self, method: str, path: str, body: bytes = b"") -> wire.HttpAnswer:
        """Return the response to one HTTP request. Raises ModelError if there is none."""
        client = await self._open_client()
        import httpx2  # noqa: PLC0415 - ``_open_client`` has imported it, in a thread

        try:
            request = client.build_request(method, f"{self.endpoint.base_url}{path}", content=body)
            response = await client.send(request, stream=True)
            answer = await read(response)  # at most its bound of bytes; it closes the response
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise connection_error(error) from None
        return wire.HttpAnswer(answer.status, answer.payload, wire.retry_after(response.headers))

    async def _open_client(self) -> "httpx2.AsyncClient":
        """Return the HTTP client, created at first use. Raises ModelNotConfiguredError."""
        async with self._lock:
            if self._client is None:
                self._client = await to_thread.run_sync(self._connect, abandon_on_cancel=True)
            return self._client

    def _connect(self) -> "httpx2.AsyncClient":
        """Return a new HTTP client that sends the key. Blocks. Raises ModelNotConfiguredError."""
        try:
            import httpx2  # noqa: PLC0415 - in a thread, only where such a server is named
        except ImportError:  # pragma: no cover - as with the SDK
            raise SdkMissingError from None
        headers = {"Content-Type": "application/json"}
        if self._secrets:
            headers["Authorization"] = f"Bearer {self._secrets[0]}"
        is_remote = self.endpoint.base_url.startswith("https:")
        return httpx2.AsyncClient(
            headers=headers,
            follow_redirects=False,
            trust_env=is_remote,  # a proxy of the environment
            timeout=None,  # callers limit the time of each request
            limits=httpx2.Limits(max_keepalive_connections=IDLE_CONNECTIONS),
        )

    @property
    def _secrets(self) -> tuple[str, ...]:
        """The key or token of the endpoint, if it has one. Raises KeyFileUnusableError."""
        secret = self.endpoint.api_key or self.endpoint.auth_token
        if not secret and self.endpoint.key_file:
            secret = read_key(self.endpoint.key_file)
        return (secret,) if secret else ()


def _body(ask: Ask, refused: frozenset[str]) -> dict[str, Any]:
    """Return the JSON body of a request without the parameters that the server ``refused``.

    Without ``response_format`` the JSON schema is described in words.
    """
    with_format = ask.schema is not None and _FORMAT not in refused
    length = _NEW_LENGTH if _LENGTH in refused else _LENGTH
    body: dict[str, Any] = {
        "model": ask.model,
        "messages": plain.turns(ask, in_words=not with_format),
        length: ask.max_tokens,
        "stream": False,
    }
    if with_format:
        schema = {"name": "answer", "schema": ask.schema}
        body[_FORMAT] = {"type": "json_schema", "json_schema": schema}
    return body


def _reply(payload: Any, usage: Usage) -> Reply:
    """Return the reply in a response's body. Raises ModelReplyError."""
    choices = payload.get("choices") if isinstance(payload, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    text = message.get("content") if isinstance(message, dict) else None
    if not isinstance(first, dict) or not isinstance(text, str):
        raise ModelReplyError(cause="it has no choice with a text")
    stop = _STOP_REASONS.get(str(first.get("finish_reason")), "end_turn")
    content = ({"type": "text", "text": text},)
    return Reply(text, (), stop, content, usage, str(payload.get("model", "")))


def _usage(payload: Any) -> Usage:
    """Return the usage that a response's body reports; missing numbers are 0."""
    counts = payload.get("usage") if isinstance(payload, dict) else None
    if not isinstance(counts, Mapping):
        return Usage()
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    renamed = {
        "input_tokens": counts.get("prompt_tokens"),
        "output_tokens": counts.get("completion_tokens"),
        "cache_read_input_tokens": cached,
    }
    usage = wire.usage({"usage": renamed})
    # In this API the prompt's tokens include those from the cache.
    return replace(usage, input=max(usage.input - usage.cache_read, 0))

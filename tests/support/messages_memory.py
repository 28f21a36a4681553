"""Remember earlier requests of a scripted Messages server: threads, and what caching compares.

Any thread may call any method.
"""

import threading
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from msgspec import Struct

from tests.support.messages_bound import Body
from tests.support.messages_cache import Part, row
from tests.support.messages_steps import Failure

THREAD_BETA = "message-threads-2026-08-12"
_THREAD_SECONDS = 300.0  # that a thread lives after its last request
_THREAD_MEMBERS = ("tools", "system")  # a thread has them from its first request on


class _Thread(Struct):
    """A conversation up to and with one reply, which is continued once."""

    body: Body  # its last request, with all messages and the reply
    used: float  # when, in seconds
    continued: bool = False


class ServerMemory:
    """The threads and the compared requests of one server; ``now`` tells the time in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()  # guards both dicts
        self._threads: dict[str, _Thread] = {}  # by the reply's id
        self._compared: dict[str, Body] = {}  # requests by the reply's id, for ``diagnosis``

    def unrolled(self, body: Body) -> Body | Failure:
        """Return a request with all messages of its thread, or why the thread does not go on."""
        thread = body.get("thread")
        if not isinstance(thread, Mapping) or thread.get("type") != "continue":
            return body
        with self._lock:
            before = self._threads.get(str(thread.get("previous_message_id")))
        if before is None or before.used + _THREAD_SECONDS <= self._now():
            return Failure(404, "the thread is not there", code="thread_not_found")
        if before.continued:
            code = "thread_already_continued"
            return Failure(400, "a reply of a thread is continued once", code=code)
        for name in _THREAD_MEMBERS:
            if body.get(name) and body[name] != before.body.get(name):
                words = f"{name}: differs from the thread's"
                return Failure(400, words, code="thread_fingerprint_mismatch")
        members = {name: before.body[name] for name in _THREAD_MEMBERS if name in before.body}
        new = body.get("messages") or []
        return {**body, **members, "messages": [*before.body["messages"], *new]}

    def remember(self, name: str, body: Body, content: list[dict[str, Any]]) -> None:
        """Keep what later requests may name: a reply's id, its request and its blocks."""
        with self._lock:
            if body.get("diagnostics") is not None:
                self._compared[name] = body
            if thread := body.get("thread"):
                reply = {"role": "assistant", "content": content}
                with_reply = {**body, "messages": [*body["messages"], reply]}
                self._threads[name] = _Thread(with_reply, self._now())
                before = self._threads.get(str(thread.get("previous_message_id")))
                if before is not None:
                    before.continued = True

    def diagnosis(self, body: Body) -> dict[str, Any] | None:
        """Return what kept a request from being read from the cache, by the request it names."""
        previous = body["diagnostics"].get("previous_message_id")
        if previous is None:
            return None
        with self._lock:
            before = self._compared.get(previous)
        reason = _divergence(before, body) if before else {"type": "previous_message_not_found"}
        return None if reason is None else {"cache_miss_reason": reason}


def _divergence(before: Body, body: Body) -> dict[str, Any] | None:
    """Return why a request cannot use the cache of the one before, ``None`` if it continues it."""
    old, new = row(before), row(body)
    common = _count_common(old, new)
    if any(before.get(name) != body.get(name) for name in ("model", "speed")):
        return _cache_miss("model", old)
    for name in _THREAD_MEMBERS:
        if _contents(row({name: before.get(name)})) != _contents(row({name: body.get(name)})):
            return _cache_miss(name, old[common:])
    if any(before.get(name) != body.get(name) for name in ("tool_choice", "thinking")):
        return {"type": "unavailable"}
    return _cache_miss("messages", old[common:]) if common < len(old) else None


def _contents(parts: list[Part]) -> list[bytes]:
    """Return the contents of parts of a request."""
    return [part.content for part in parts]


def _count_common(old: list[Part], new: list[Part]) -> int:
    """Return how many blocks two rows share from their start."""
    pairs = zip(_contents(old), _contents(new), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _cache_miss(name: str, parts: list[Part]) -> dict[str, Any]:
    """Return why the cache was missed, and the tokens that this cost.

    ``name`` is what changed, ``parts`` are the earlier request's parts from there on.
    """
    tokens = sum(part.tokens for part in parts)
    return {"type": f"{name}_changed", "cache_missed_input_tokens": tokens}

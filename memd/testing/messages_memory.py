"""Remember earlier requests of a scripted Messages server: threads, and what caching compares.

Any thread may call any method.
"""

import threading
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from msgspec import Struct

from memd.testing.messages_bound import Body
from memd.testing.messages_cache import Part, row
from memd.testing.messages_steps import Failure

THREAD_BETA = "message-threads-2026-08-12"
_THREAD_LIFE = 300.0  # seconds
_HELD = ("tools", "system")  # a thread has them from its first request on


class _Thread(Struct):
    """A conversation up to and with one reply, which is continued once."""

    body: Body
    used: float
    continued: bool = False


class ServerMemory:
    """The threads and the compared requests of one server; ``now`` tells the time in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._threads: dict[str, _Thread] = {}
        self._compared: dict[str, Body] = {}

    def unrolled(self, body: Body) -> Body | Failure:
        """Return a request with all messages of its thread, or why the thread does not go on."""
        thread = body.get("thread")
        if not isinstance(thread, Mapping) or thread.get("type") != "continue":
            return body
        with self._lock:
            known = self._threads.get(str(thread.get("previous_message_id")))
        if known is None or known.used + _THREAD_LIFE <= self._now():
            return Failure(404, "the thread is not there", code="thread_not_found")
        if known.continued:
            code = "thread_already_continued"
            return Failure(400, "a reply of a thread is continued once", code=code)
        changed = [n for n in _HELD if body.get(n) and body[n] != known.body.get(n)]
        if changed:
            words = f"{changed[0]}: differs from the thread's"
            return Failure(400, words, code="thread_fingerprint_mismatch")
        held = {name: known.body[name] for name in _HELD if name in known.body}
        new = body.get("messages") or []
        return {**body, **held, "messages": [*known.body["messages"], *new]}

    def remember(self, name: str, body: Body, content: list[dict[str, Any]]) -> None:
        """Keep what later requests may name: a reply's id, its request and its blocks."""
        with self._lock:
            if body.get("diagnostics") is not None:
                self._compared[name] = body
            if thread := body.get("thread"):
                reply = {"role": "assistant", "content": content}
                whole = {**body, "messages": [*body["messages"], reply]}
                self._threads[name] = _Thread(whole, self._now())
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
    """Return where two requests part, ``None`` where one continues the other."""
    old, new = row(before), row(body)
    same = _same(old, new)
    if any(before.get(name) != body.get(name) for name in ("model", "speed")):
        return _missed("model", old)
    for name in _HELD:
        if _contents(row({name: before.get(name)})) != _contents(row({name: body.get(name)})):
            return _missed(name, old[same:])
    if any(before.get(name) != body.get(name) for name in ("tool_choice", "thinking")):
        return {"type": "unavailable"}
    return _missed("messages", old[same:]) if same < len(old) else None


def _contents(parts: list[Part]) -> list[bytes]:
    """Return the contents of parts of a request."""
    return [part.content for part in parts]


def _same(old: list[Part], new: list[Part]) -> int:
    """Return how many blocks two rows share from their start."""
    pairs = zip(_contents(old), _contents(new), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _missed(name: str, parts: list[Part]) -> dict[str, Any]:
    """Return why the cache was missed, and the tokens that this cost."""
    tokens = sum(part.tokens for part in parts)
    return {"type": f"{name}_changed", "cache_missed_input_tokens": tokens}

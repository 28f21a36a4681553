"""Which requests are changed, and how.

Rules of this file
- Only results behind the last reply are new: they were never sent, so their first form may be the
  short one. What was sent once in the place of a result is sent again, whatever memd says.
- In doubt a request passes as it is, and so does one whose model has no tool to read files with.
- memd gets a moment. Without its answer what is known is sent, and the rest as it is, for good.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from memd.client.planner import Message, Planner, SentConversation, results
from memd.core.canonical import START, canonical, chained
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.gateway import spans
from memd.gateway.spans import Place, RequestBody

READERS = frozenset(("Read",))
MOST_BYTES = 32 * 1024 * 1024
SECONDS = 0.1
RESUMED_SECONDS = 2.0  # of the first that this process sees of a conversation with results
_SESSIONS = 16
_FEW = 3  # messages of a conversation that has just begun
_CONVERSATIONS = 4  # of one session: the same beginning, gone on with in several ways
_MESSAGES, _COUNT = b"/v1/messages", b"/v1/messages/count_tokens"
_BILLING = "x-anthropic-billing-header"
# Why memd gives no answer, or none of use; then what is known is sent.
_UNPLANNED = (MemdError, OSError, LookupError, TypeError, ValueError, AttributeError, RuntimeError)
# A history that the server holds cannot be followed.
_UNFOLLOWED = frozenset(("thread", "previous_message_id"))
# What the API takes no ``context_management`` beside, or only one.
_UNMANAGED = frozenset(("compaction", "context_management"))


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A body to send, and betas that it needs.

    ``fallback`` returns the body to send once where this one is refused, with what is new in it as
    it came.
    """

    body: bytes
    betas: Sequence[str] = ()
    fallback: Callable[[], bytes] | None = None


@dataclass(slots=True)
class _Followed:
    """A conversation that this process has seen; ``members`` are added to its requests."""

    planner: Planner
    name: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    members: dict[str, Any] = field(default_factory=dict)

    def goes_on_as(self, messages: Sequence[Message]) -> bool:
        """Return whether messages hold the last reply that was sent, in its place."""
        known = [each.message for each in self.planner.sent.messages]
        place = _last_reply(known)
        if place >= len(messages):
            return False
        return place < 0 or canonical(known[place]) == canonical(messages[place])


@dataclass(slots=True)
class Rewriter:
    """Has memd decide about the results in requests, and exchanges those that it stored.

    ``socket`` is the daemon's, ``cwd`` the project that results belong to. ``readers`` are names of
    tools that read any file. With ``manage`` the API is asked to clear old results by itself.
    ``seconds`` are for memd, of each request.
    """

    socket: str
    cwd: str
    readers: frozenset[str] = READERS
    manage: bool = False
    seconds: float = SECONDS
    _sessions: Recent[str, list[_Followed]] = field(default_factory=lambda: Recent(_SESSIONS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def concerns(self, method: bytes, path: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a request may be changed, so that its body is read as a whole.

        ``path`` is without the query, the names of headers are in lower case.
        """
        return (
            method == b"POST"
            and path in {_MESSAGES, _COUNT}
            and int(headers.get(b"content-length", 0)) <= MOST_BYTES
            and headers.get(b"content-encoding", b"identity") == b"identity"
            and _BILLING.encode() not in headers
            and not headers.get(b"user-agent", b"").lower().startswith(b"claude-cli")
        )

    def rewritten(self, path: bytes, data: bytes) -> Rewritten:
        """Return what to send in the place of a body. Blocks."""
        try:
            body = spans.read(data)
            reader = _reader(body.members, self.readers) if body else ""
            if body and reader and (followed := self._followed(body.members["messages"])):
                with followed.lock:
                    return self._changed(path, data, body, reader, followed)
        except Exception:  # noqa: BLE001, S110 - the edge: whatever is wrong here, it goes out
            pass
        return Rewritten(data)

    def _changed(
        self, path: bytes, data: bytes, body: RequestBody, reader: str, followed: _Followed
    ) -> Rewritten:
        messages, sent = body.members["messages"], followed.planner.sent
        newest = messages[_last_reply(messages) + 1 :]
        manages = self.manage and not _UNMANAGED & body.members.keys()
        supports = ["context_management"] if manages else ["managed"]
        self._plan(body.members, newest, {"reader": reader, "supports": supports}, followed)
        added = dict(followed.members) if manages and path == _MESSAGES else {}
        betas = added.pop("betas", ())
        contents = _exchanged(messages, sent)
        if not contents and not added:
            return Rewritten(data)

        def fallback() -> bytes:
            with followed.lock:
                for name, _ in results(newest):
                    sent.decisions.pop(name, None)
                sent.freeze(newest)
                return body.spliced(_exchanged(messages, sent), added)

        new = any(place >= len(messages) - len(newest) for place, _ in contents)
        return Rewritten(body.spliced(contents, added), betas, fallback if new else None)

    def _plan(
        self,
        members: Mapping[str, Any],
        newest: Sequence[Message],
        given: dict[str, Any],
        followed: _Followed,
    ) -> None:
        """Have memd decide about what is new. What it cannot decide in time is decided here."""
        messages, planner = members["messages"], followed.planner
        resumed = not planner.sent.messages
        undecided = messages if resumed else newest
        managed = "managed" in given["supports"]
        if (members.get("thinking") or {}).get("type", "disabled") != "disabled":
            given["supports"].append("thinking")
        given |= {name: members.get(name) for name in ("model", "system", "tools")}
        given["conversation"] = followed.name
        waits = any(name not in planner.sent.decisions for name, _ in results(undecided))
        if not waits and (managed or followed.members):
            planner.tell(messages, given)
            return
        seconds = max(self.seconds, RESUMED_SECONDS if resumed and len(messages) > _FEW else 0)
        try:
            answer = planner.plan(messages, given, time.monotonic() + seconds)
            followed.members = dict(answer["request"])
        except _UNPLANNED:
            pass
        finally:
            planner.close()
        planner.sent.freeze(undecided)

    def _followed(self, messages: Sequence[Message]) -> _Followed | None:
        """Return the conversation of messages, ``None`` before its first reply.

        Its session is known by all up to that reply, so that another process finds it too.
        """
        first = next((n for n, each in enumerate(messages) if each["role"] == "assistant"), None)
        if first is None:
            return None
        session = f"gateway-{reduce(chained, messages[: first + 1], START).hex()[:32]}"
        with self._lock:
            conversations = self._sessions.renewed(session, [])
            for each in reversed(conversations):
                if each.goes_on_as(messages):
                    return each
            followed = _Followed(Planner(self.socket, {"cwd": self.cwd, "session_id": session}))
            if conversations:
                followed.name = chained(START, messages[_last_reply(messages)]).hex()[:32]
                sent, known = followed.planner.sent, conversations[0].planner.sent
                sent.decisions, sent.unreported = known.decisions, known.unreported
            conversations.append(followed)
            del conversations[:-_CONVERSATIONS]
            return followed


def _reader(members: Mapping[str, Any], readers: frozenset[str]) -> str:
    """Return the request's tool that reads files, "" where the request passes as it is."""
    system, tools = members.get("system") or "", members.get("tools")
    texts = [block.get("text") for block in system] if isinstance(system, list) else [system]
    billed = any(str(text).startswith(_BILLING) for text in texts)
    if billed or _UNFOLLOWED & members.keys() or not isinstance(tools, list):
        return ""
    # A tool with another type runs on the server, which has not these files.
    own = (tool["name"] for tool in tools if tool.get("type", "custom") == "custom")
    return next((name for name in own if name in readers), "")


def _last_reply(messages: Sequence[Message]) -> int:
    roles = [message["role"] for message in messages]
    return len(roles) - 1 - roles[::-1].index("assistant") if "assistant" in roles else -1


def _exchanged(
    messages: Sequence[Message], sent: SentConversation
) -> dict[Place, Mapping[str, Any]]:
    """Return the new members of the blocks in whose place something else is sent."""
    return {
        (n, m): {name: new[name] for name in new if new[name] is not old.get(name)}
        for n, (before, after) in enumerate(zip(messages, sent.applied(messages), strict=True))
        if after is not before
        for m, (old, new) in enumerate(zip(before["content"], after["content"], strict=True))
        if new is not old
    }

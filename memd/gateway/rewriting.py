"""Replace large tool results in requests by the short forms that the daemon decides on.

Rules of this file
- Only results behind the last reply are new: they were never sent, so they may be shortened. A
  result that was sent in a short form is always sent so again, whatever the daemon answers.
- In doubt a request passes unchanged, and so does one whose model has no tool to read files with.
- The daemon gets ``seconds`` to answer. Without its answer, earlier decisions are applied, and new
  results are sent unchanged from then on.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import msgspec
from msgspec import Struct

from memd.client.planner import Message, Planner, SentConversation, results
from memd.core.canonical import START, canonical, chained
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.gateway import spans
from memd.gateway.spans import Place, RequestBody

READERS = frozenset(("Read",))
MOST_BYTES = 32 * 1024 * 1024
SECONDS = 0.1
RESUMED_SECONDS = 2.0  # for the first request of a longer conversation in this process
_SESSIONS = 16
_FEW = 3  # messages of a conversation that has just begun
_CONVERSATIONS = 4  # branches of one session, which begin with the same messages
_MESSAGES, _COUNT = b"/v1/messages", b"/v1/messages/count_tokens"
_BILLING = "x-anthropic-billing-header"
# Raised if the daemon does not answer, or not usefully; then earlier decisions are applied.
_UNPLANNED = (MemdError, OSError, LookupError, TypeError, ValueError, AttributeError, RuntimeError)
# A history that the server holds cannot be followed.
_UNFOLLOWED = frozenset(("thread", "previous_message_id"))
# Members that the API does not accept beside a ``context_management`` of ours.
_UNMANAGED = frozenset(("compaction", "context_management"))


class Rewritten(Struct, frozen=True):
    """A body to send, and betas that it needs.

    ``fallback`` returns the body to send if this one is refused, with its new results unchanged.
    """

    body: bytes
    betas: Sequence[str] = ()
    fallback: Callable[[], bytes] | None = None


class _Followed(Struct):
    """A conversation that this process has seen; ``members`` are added to its requests."""

    planner: Planner
    name: str = ""
    lock: threading.Lock = msgspec.field(default_factory=threading.Lock)
    members: dict[str, Any] = msgspec.field(default_factory=dict)

    def goes_on_as(self, messages: Sequence[Message]) -> bool:
        """Return whether messages have this conversation's last sent reply at the same index."""
        known = [each.message for each in self.planner.sent.messages]
        index = _last_reply(known)
        if index >= len(messages):
            return False
        return index < 0 or canonical(known[index]) == canonical(messages[index])


@dataclass(slots=True)
class Rewriter:
    """Asks the daemon which results in requests to store, and replaces those by a short form.

    ``socket`` is the daemon's, ``cwd`` the project that results belong to. ``readers`` are names of
    tools that read any file. With ``manage`` the API is asked to clear old results by itself.
    ``seconds`` is the time that the daemon gets per request.
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
        """Return the body to send for a request's body, unchanged after any error. Blocks."""
        try:
            body = spans.read(data)
            reader = _reader(body.members, self.readers) if body else ""
            if body and reader and (followed := self._followed(body.members["messages"])):
                with followed.lock:
                    return self._with_short_results(path, data, body, reader, followed)
        except Exception:  # noqa: BLE001, S110 - the edge: after any error it goes out unchanged
            pass
        return Rewritten(data)

    def _with_short_results(
        self, path: bytes, data: bytes, body: RequestBody, reader: str, followed: _Followed
    ) -> Rewritten:
        """Return the body with the short forms of results that the daemon decided on."""
        messages, sent = body.members["messages"], followed.planner.sent
        newest = messages[_last_reply(messages) + 1 :]
        manages = self.manage and not _UNMANAGED & body.members.keys()
        supports = ["context_management"] if manages else ["managed"]
        self._plan(body.members, newest, {"reader": reader, "supports": supports}, followed)
        added = dict(followed.members) if manages and path == _MESSAGES else {}
        betas = added.pop("betas", ())
        contents = _changed_blocks(messages, sent)
        if not contents and not added:
            return Rewritten(data)

        def fallback() -> bytes:
            """Return the body with the newest results whole; they are never shortened later."""
            with followed.lock:
                for name, _ in results(newest):
                    sent.decisions.pop(name, None)
                sent.freeze(newest)
                return body.spliced(_changed_blocks(messages, sent), added)

        # Only new results may still be sent whole; older ones were sent in a short form before.
        has_new = any(place >= len(messages) - len(newest) for place, _ in contents)
        return Rewritten(body.spliced(contents, added), betas, fallback if has_new else None)

    def _plan(
        self,
        members: Mapping[str, Any],
        newest: Sequence[Message],
        given: dict[str, Any],
        followed: _Followed,
    ) -> None:
        """Let the daemon decide about new results; those undecided in time are never shortened."""
        messages, planner = members["messages"], followed.planner
        resumed = not planner.sent.messages
        undecided = messages if resumed else newest
        managed = "managed" in given["supports"]
        if (members.get("thinking") or {}).get("type", "disabled") != "disabled":
            given["supports"].append("thinking")
        given |= {name: members.get(name) for name in ("model", "system", "tools")}
        given["conversation"] = followed.name
        has_new = any(name not in planner.sent.decisions for name, _ in results(undecided))
        if not has_new and (managed or followed.members):
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
        """Return the followed conversation of messages, ``None`` before its first reply.

        Its session id is a hash of the messages up to that reply, so another process finds it too.
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
    """Return the name of the request's tool that reads files, "" if nothing may be changed."""
    system, tools = members.get("system") or "", members.get("tools")
    texts = [block.get("text") for block in system] if isinstance(system, list) else [system]
    billed = any(str(text).startswith(_BILLING) for text in texts)
    if billed or _UNFOLLOWED & members.keys() or not isinstance(tools, list):
        return ""
    # A tool of another type runs on the server, which does not have these files.
    own = (tool["name"] for tool in tools if tool.get("type", "custom") == "custom")
    return next((name for name in own if name in readers), "")


def _last_reply(messages: Sequence[Message]) -> int:
    """Return the index of the last reply, -1 if there is none."""
    roles = [message["role"] for message in messages]
    return len(roles) - 1 - roles[::-1].index("assistant") if "assistant" in roles else -1


def _changed_blocks(
    messages: Sequence[Message], sent: SentConversation
) -> dict[Place, Mapping[str, Any]]:
    """Return, by message and block, the members that differ in the blocks to send."""
    return {
        (n, m): {name: new[name] for name in new if new[name] is not old.get(name)}
        for n, (before, after) in enumerate(zip(messages, sent.applied(messages), strict=True))
        if after is not before
        for m, (old, new) in enumerate(zip(before["content"], after["content"], strict=True))
        if new is not old
    }

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
SECONDS = 0.1  # for the daemon's answer to a request
RESUMED_SECONDS = 2.0  # for the first request of a longer conversation in this process
_MAX_SESSIONS = 16  # that are remembered
_MAX_MESSAGES_OF_NEW = 3  # of a conversation that has just begun
_MAX_BRANCHES = 4  # conversations of one session, which begin with the same messages
_CREATE_PATH, _COUNT_PATH = b"/v1/messages", b"/v1/messages/count_tokens"
_BILLING = (
    "x-anthropic-billing-header"  # with it the client vouches for the body: it passes as it is
)
# Raised if the daemon does not answer, or not usefully; then earlier decisions are applied.
_PLAN_ERRORS = (
    MemdError,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RuntimeError,
)
# Members of a request whose history the server has, so that it cannot be seen here.
_SERVER_HISTORY = frozenset(("thread", "previous_message_id"))
# Members that the API does not accept beside a ``context_management`` of ours.
_OWN_MANAGEMENT = frozenset(("compaction", "context_management"))


class Rewritten(Struct, frozen=True):
    """A body to send, and betas that it needs.

    ``fallback`` returns the body to send if this one is refused, with its new results unchanged.
    """

    body: bytes
    betas: Sequence[str] = ()
    fallback: Callable[[], bytes] | None = None


class _SeenConversation(Struct):
    """A conversation that this process has seen.

    ``name`` tells the branches of a session apart. ``lock`` is held while a request of the
    conversation is planned. ``members`` are added to its requests.
    """

    planner: Planner
    name: str = ""
    lock: threading.Lock = msgspec.field(default_factory=threading.Lock)
    members: dict[str, Any] = msgspec.field(default_factory=dict)

    def goes_on_as(self, messages: Sequence[Message]) -> bool:
        """Return whether messages have this conversation's last sent reply at the same index."""
        sent_messages = [each.message for each in self.planner.sent.messages]
        index = _last_reply(sent_messages)
        if index >= len(messages):
            return False
        return index < 0 or canonical(sent_messages[index]) == canonical(messages[index])


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
    # The branches of each session by its id, the newest last.
    _sessions: Recent[str, list[_SeenConversation]] = field(
        default_factory=lambda: Recent(_MAX_SESSIONS)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)  # guards ``_sessions``

    def may_change(self, method: bytes, path: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a request may be changed, so that its body is read as a whole.

        ``path`` is without the query, the names of headers are in lower case.
        """
        return (
            method == b"POST"
            and path in {_CREATE_PATH, _COUNT_PATH}
            and int(headers.get(b"content-length", 0)) <= MOST_BYTES
            and headers.get(b"content-encoding", b"identity") == b"identity"
            and _BILLING.encode() not in headers
            and not headers.get(b"user-agent", b"").lower().startswith(b"claude-cli")
        )

    def rewrite(self, path: bytes, data: bytes) -> Rewritten:
        """Return the body to send for a request's body, unchanged after any error. Blocks."""
        try:
            body = spans.read(data)
            if body is None:
                return Rewritten(data)
            reader = _reader(body.members, self.readers)
            seen = self._seen_conversation(body.members["messages"]) if reader else None
            if seen is not None:
                with seen.lock:
                    return self._with_short_results(path, data, body, reader, seen)
        except Exception:  # noqa: BLE001, S110 - the edge: after any error it goes out unchanged
            pass
        return Rewritten(data)

    def _with_short_results(
        self, path: bytes, data: bytes, body: RequestBody, reader: str, seen: _SeenConversation
    ) -> Rewritten:
        """Return the body with the short forms of results that the daemon decided on."""
        messages, sent = body.members["messages"], seen.planner.sent
        newest = messages[_last_reply(messages) + 1 :]
        may_manage = self.manage and not _OWN_MANAGEMENT & body.members.keys()
        supports = ["context_management"] if may_manage else ["managed"]
        self._plan(body.members, newest, {"reader": reader, "supports": supports}, seen)
        added = dict(seen.members) if may_manage and path == _CREATE_PATH else {}
        betas = added.pop("betas", ())
        contents = _changed_blocks(messages, sent)
        if not contents and not added:
            return Rewritten(data)

        def fallback() -> bytes:
            """Return the body with the newest results whole; they are never shortened later."""
            with seen.lock:
                for name, _ in results(newest):
                    sent.decisions.pop(name, None)
                sent.freeze(newest)
                return body.with_changes(_changed_blocks(messages, sent), added)

        # Only new results may still be sent whole; older ones were sent in a short form before.
        has_new = any(place >= len(messages) - len(newest) for place, _ in contents)
        return Rewritten(body.with_changes(contents, added), betas, fallback if has_new else None)

    def _plan(
        self,
        members: Mapping[str, Any],
        newest: Sequence[Message],
        plan_params: dict[str, Any],
        seen: _SeenConversation,
    ) -> None:
        """Let the daemon decide about new results; those undecided in time are never shortened.

        ``members`` are those of the request, ``newest`` its messages behind the last reply.
        """
        messages, planner = members["messages"], seen.planner
        is_first = not planner.sent.messages  # of this conversation in this process
        undecided = messages if is_first else newest
        is_managed = "managed" in plan_params["supports"]
        if (members.get("thinking") or {}).get("type", "disabled") != "disabled":
            plan_params["supports"].append("thinking")
        plan_params |= {name: members.get(name) for name in ("model", "system", "tools")}
        plan_params["conversation"] = seen.name
        has_new = any(name not in planner.sent.decisions for name, _ in results(undecided))
        if not has_new and (is_managed or seen.members):
            planner.send_in_thread(messages, plan_params)  # this request needs no answer
            return
        is_resumed = is_first and len(messages) > _MAX_MESSAGES_OF_NEW
        seconds = max(self.seconds, RESUMED_SECONDS) if is_resumed else self.seconds
        try:
            answer = planner.plan(messages, plan_params, time.monotonic() + seconds)
            seen.members = dict(answer["request"])
        except _PLAN_ERRORS:
            pass
        finally:
            planner.close()
        planner.sent.freeze(undecided)

    def _seen_conversation(self, messages: Sequence[Message]) -> _SeenConversation | None:
        """Return the conversation that messages continue, a new one if none is known.

        Returns ``None`` before the first reply. The session id is a hash of the messages up to that
        reply, so another process finds the same one.
        """
        roles = [message["role"] for message in messages]
        if "assistant" not in roles:
            return None
        beginning = messages[: roles.index("assistant") + 1]
        session = f"gateway-{reduce(chained, beginning, START).hex()[:32]}"
        with self._lock:
            conversations = self._sessions.renewed(session, [])
            for conversation in reversed(conversations):
                if conversation.goes_on_as(messages):
                    return conversation
            seen = _SeenConversation(Planner(self.socket, {"cwd": self.cwd, "session_id": session}))
            if conversations:  # another branch, whose common blocks are sent as they were
                seen.name = chained(START, messages[_last_reply(messages)]).hex()[:32]
                sent, first_sent = seen.planner.sent, conversations[0].planner.sent
                sent.decisions, sent.unreported = first_sent.decisions, first_sent.unreported
            conversations.append(seen)
            del conversations[:-_MAX_BRANCHES]
            return seen


def _reader(members: Mapping[str, Any], readers: frozenset[str]) -> str:
    """Return the name of the request's tool that reads files, "" if nothing may be changed."""
    system, tools = members.get("system") or "", members.get("tools")
    texts = [block.get("text") for block in system] if isinstance(system, list) else [system]
    has_billing_block = any(str(text).startswith(_BILLING) for text in texts)
    if has_billing_block or _SERVER_HISTORY & members.keys() or not isinstance(tools, list):
        return ""
    # A tool of another type runs on the server, which does not have these files.
    own_tools = (tool["name"] for tool in tools if tool.get("type", "custom") == "custom")
    return next((name for name in own_tools if name in readers), "")


def _last_reply(messages: Sequence[Message]) -> int:
    """Return the index of the last reply, -1 if there is none. Raises KeyError without a role."""
    roles = [message["role"] for message in messages]
    return max((n for n, role in enumerate(roles) if role == "assistant"), default=-1)


def _changed_blocks(
    messages: Sequence[Message], sent: SentConversation
) -> dict[Place, Mapping[str, Any]]:
    """Return, by message and block, the members that differ in the blocks to send."""
    changes: dict[Place, Mapping[str, Any]] = {}
    pairs = zip(messages, sent.with_replacements(messages), strict=True)
    for message_index, (old_message, new_message) in enumerate(pairs):
        if new_message is old_message:
            continue
        blocks = zip(old_message["content"], new_message["content"], strict=True)
        for block_index, (old, new) in enumerate(blocks):
            if new is not old:
                members = {name: new[name] for name in new if new[name] is not old.get(name)}
                changes[message_index, block_index] = members
    return changes
